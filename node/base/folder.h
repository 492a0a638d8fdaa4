/* Folders of the spool that belong to one job: outbox/JOB and work/JOB. */
#ifndef TOMONODE_NODE_FOLDER_H
#define TOMONODE_NODE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

/* SPOOL/WHAT/JOB; ENAMETOOLONG when it does not fit. */
int folder_path(const char *spool, const char *what, int64_t job, char *ret_path, size_t size, struct err *err);
/* Make it (0700, synced) where it is missing. */
int folder_make(const char *path, struct err *err);
/* Remove the files in it. Not there: nothing to do. */
int folder_empty(const char *path, struct err *err);
/* Remove it with the files in it. */
int folder_remove(const char *path, struct err *err);
/* Bytes of the disk that the files in it and in folders below it take. Not there: 0. */
uint64_t folder_bytes(const char *path);
/* A number that changes when a file in it comes, goes or grows; 0: there is none. No clock has a part in it. */
uint64_t folder_fingerprint(const char *path);

/* The last part of a path: folders may be called after patients. */
const char *file_name(const char *path);

#endif
