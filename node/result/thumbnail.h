/* SPDX-License-Identifier: Apache-2.0 */
/* Create pictures of a result for the status page: 8-bit grey, without any header data.
 *
 * - SPOOL/outbox/JOB/thumbnail.png is the middle slice. The worker writes it beside the objects that it has just written; it is
 *   removed together with these.
 * - Slices from the first to the last, side by side, each in a square of the picture's height, all with the same grey levels, are
 *   made when they are looked at (node/status/cmd_report_page.c). Of an object with many frames only those shown are read. */
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
/* Create the thumbnail from the middle frame of the middle object. files: the n objects of one series, in `folder`. */
int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err);
/* Index, from 0, of the slice that is picture k of `pictures` at equal distances. */
long thumbnail_slice_at(int k, int pictures, long total);
/* Make a PNG of up to THUMBNAIL_SLICES frames of the only object, or slices of n objects; the caller frees *ret_png. */
int thumbnail_slices(const char *folder, const char *const *files, size_t n, unsigned char **ret_png, size_t *ret_size,
		     struct err *err);

#endif
