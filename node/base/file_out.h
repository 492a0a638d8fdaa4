/* A file that is there whole or not at all: PATH.part, fsync, rename, fsync of the folder. */
#ifndef TOMONODE_NODE_FILE_OUT_H
#define TOMONODE_NODE_FILE_OUT_H

#include <stddef.h>

#include "kernels/err.h"

struct file_out;

/* Replaces a leftover PATH.part. */
int file_out_open(const char *path, struct file_out **ret_file, struct err *err);
int file_out_write(struct file_out *f, const void *bytes, size_t n, struct err *err);
/* Frees it in every case; after an error PATH.part is gone. */
int file_out_close(struct file_out *f, struct err *err);
void file_out_abort(struct file_out *f); /* takes NULL */

/* All in one call. */
int file_out_put(const char *path, const void *bytes, size_t n, struct err *err);

#endif
