/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of the spool that belong to one job: outbox/JOB and work/JOB. */
#ifndef TOMONODE_NODE_FOLDER_H
#define TOMONODE_NODE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

/* Write the path SPOOL/WHAT/JOB to ret_path. ENAMETOOLONG: it is longer than `size`. */
int folder_path(const char *spool, const char *what, int64_t job, char *ret_path, size_t size, struct err *err);
/* Create the folder (mode 0700, synced to disk) if it does not exist. */
int folder_make(const char *path, struct err *err);
/* Remove the files in the folder. Succeed if there is no such folder. */
int folder_empty(const char *path, struct err *err);
/* Remove the folder and the files in it. */
int folder_remove(const char *path, struct err *err);
/* Return the disk space in bytes of all files in the folder and its sub-folders; 0 if there is no such folder. */
uint64_t folder_bytes(const char *path);
/* Return a number that changes when a file in the folder is added, removed or grows; 0 if there is no such folder. It does not
 * depend on any clock. */
uint64_t folder_fingerprint(const char *path);

/* Return the last component of a path. For messages: folders may be named after patients, so a full path must not be logged. */
const char *file_name(const char *path);

#endif
