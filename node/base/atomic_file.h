/* A file that is there whole or not at all: PATH.part, fsync, rename, fsync of the folder. */
#ifndef TOMONODE_NODE_ATOMIC_FILE_H
#define TOMONODE_NODE_ATOMIC_FILE_H

#include <stddef.h>

#include "kernels/err.h"

struct atomic_file;

/* Replaces a leftover PATH.part. */
int atomic_file_open(const char *path, struct atomic_file **ret_file, struct err *err);
int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, struct err *err);
/* Frees it in every case; after an error PATH.part is gone. */
int atomic_file_close(struct atomic_file *f, struct err *err);
void atomic_file_abort(struct atomic_file *f); /* takes NULL */

/* All in one call. */
int atomic_file_put(const char *path, const void *bytes, size_t n, struct err *err);

#endif
