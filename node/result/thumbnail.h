/* A small picture of a result for the status page: SPOOL/outbox/JOB/thumbnail.png, made by the worker of the objects that it has
 * just written, and removed with them. 8-bit grey; nothing of the header is in it. */
#ifndef TOMONODE_NODE_THUMBNAIL_H
#define TOMONODE_NODE_THUMBNAIL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define THUMBNAIL_SIDE 320 /* pixels, of the longer side */
#define THUMBNAIL_BYTES_MAX (512u << 10)

int thumbnail_path(const char *spool, int64_t job, char *ret_path, size_t size); /* 0, or -ENAMETOOLONG */
/* Of the middle one of the objects (those of one series), and of its middle frame. `folder` is where the files lie. */
int thumbnail_make(const char *folder, const char *const *files, size_t n, struct err *err);

#endif
