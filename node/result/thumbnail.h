/* SPDX-License-Identifier: Apache-2.0 */
/* Create pictures of a result for the status page, in SPOOL/outbox/JOB/: thumbnail.png is the middle slice; slices.png has slices
 * from the first to the last side by side, each in a square of the picture's height, all with the same grey levels. The worker
 * makes them from the objects that it has just written; they are removed together with these. 8-bit grey, without any header
 * data. */
#ifndef TOMONODE_NODE_THUMBNAIL_H
#define TOMONODE_NODE_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define THUMBNAIL_SIDE 320	 /* length of the longer side, pixels */
#define THUMBNAIL_SLICES 16	 /* maximum number of slices side by side */
#define THUMBNAIL_SLICE_SIDE 400 /* length of the longer side of each, pixels */
#define THUMBNAIL_BYTES_MAX (4u << 20)

int thumbnail_path(const char *spool, int64_t job, char *ret_path, size_t size); /* returns 0 or -ENAMETOOLONG */
int thumbnail_slices_path(const char *spool, int64_t job, char *ret_path, size_t size);
/* Create the thumbnail from the middle frame of the middle object. files: the n objects of one series, in `folder`. */
int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err);
/* Create slices.png from the frames of the only object, or from all objects; a result of one slice gets none. */
int thumbnail_make_slices(const char *folder, const char *const *files, size_t n, struct err *err);

#endif
