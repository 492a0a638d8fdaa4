/* SPDX-License-Identifier: Apache-2.0 */
/* Create the picture of a result for the status page: its middle slice, 8-bit grey, without any header data, as
 * SPOOL/outbox/JOB/thumbnail.png. The worker writes it beside the objects that it has just written; it is removed together with
 * these. PET is shown as in reports (node/report/survey.h): from 0, high values dark. */
#ifndef TOMONODE_NODE_THUMBNAIL_H
#define TOMONODE_NODE_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define THUMBNAIL_SIDE 320 /* length of the longer side, pixels */
#define THUMBNAIL_BYTES_MAX (4u << 20)

int thumbnail_path(const char *spool, int64_t job, char *ret_path, size_t size); /* returns 0 or -ENAMETOOLONG */
/* Create the thumbnail from the middle frame of the middle object. files: the n objects of one series, in `folder`. */
int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err);

#endif
