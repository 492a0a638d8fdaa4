/* SPDX-License-Identifier: Apache-2.0 */
/* Replace a file atomically: write PATH.part, fsync it, rename it to PATH, fsync the folder. Other processes see the complete
 * file or none (or the previous one), also after a crash. */
#ifndef TOMONODE_NODE_ATOMIC_FILE_H
#define TOMONODE_NODE_ATOMIC_FILE_H

#include <stddef.h>

#include "kernels/err.h"

struct atomic_file;

/* Create PATH.part for writing; a PATH.part left by a crashed process is overwritten. */
int atomic_file_open(const char *path, struct atomic_file **ret_file, struct err *err);
int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, struct err *err);
/* Finish the file and free f, on success and on error. On error PATH.part is removed. */
int atomic_file_close(struct atomic_file *f, struct err *err);
void atomic_file_abort(struct atomic_file *f); /* remove PATH.part and free f; f may be NULL */

/* Finish n files that belong together, all in one folder; the last one is the header, which names the others. An earlier header
 * is removed before the first file is renamed, and the new one is renamed last: after a crash there is a header with its own
 * files, or none. On error all .part files are removed, and if a file cannot be completed, those that existed stay. Frees all
 * files. */
int atomic_files_close(struct atomic_file *const *files, size_t n, struct err *err);

/* Open, write n bytes and close in one call. */
int atomic_file_put(const char *path, const void *bytes, size_t n, struct err *err);

#endif
