/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of the spool that belong to one job, outbox/JOB and work/JOB, and folders that a person names for output. */
#ifndef TOMONODE_NODE_FOLDER_H
#define TOMONODE_NODE_FOLDER_H

#include <fts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

/* Write the path SPOOL/WHAT/JOB to ret_path. ENAMETOOLONG: it is longer than `size`. */
int folder_path(const char *spool, const char *what, int64_t job, char *ret_path, size_t size, struct err *err);
/* Create the folder (mode 0700, synced to disk) if it does not exist. */
int folder_make(const char *path, struct err *err);
/* Write its entries to disk. */
int folder_sync(const char *path, struct err *err);
int folder_sync_parent(const char *path, struct err *err); /* the folder that the path is in */
/* Return true if the path is a folder, or a link to one. */
bool folder_exists(const char *path);
/* Walk over paths, ended by NULL, and what is below them, in the order of names; links below them are not followed. NULL: errno.
 * The caller closes it with fts_close(). */
FTS *folder_walk(char *const *paths);
/* Remove the files and folders in the folder, but not the folder. Succeeds if the folder does not exist. */
int folder_empty(const char *path, struct err *err);
/* Remove the folder and all that is in it. Succeeds if the folder does not exist. */
int folder_remove(const char *path, struct err *err);
/* Return the error code for output that cannot be made because of `os`, a value of errno: EPERM for values that mean something
 * else where they come from elsewhere (EACCES: a peer refused; ENOENT: an input is missing), so that all such failures have one
 * exit code (options_code()). */
int folder_output_code(int os);
/* The same for input that cannot be opened: EBADMSG instead of EACCES, a file that may not be read. */
int folder_input_code(int os);
/* Create a folder for output (mode 0777 without the umask), with its parents. Succeeds if it exists. ENOTDIR: it, or one of its
 * parents, is not a folder; else folder_output_code(). */
int folder_create(const char *path, struct err *err);
/* The same for the folder that a file for output is in. */
int folder_create_parent(const char *file, struct err *err);
/* Return the number of files and folders in the folder; 0 if it does not exist. */
size_t folder_entries(const char *path);
/* Return the disk space used by all files in the folder and its sub-folders, bytes; 0 if the folder does not exist. */
uint64_t folder_bytes(const char *path);
/* Return a number that changes when a file in the folder is added, removed or grows; 0 if the folder does not exist. It is
 * computed from inode numbers and sizes, so that changes of the system clock do not affect it. */
uint64_t folder_fingerprint(const char *path);

/* Return the last component of a path, for messages. Do not log a full path: folders may be named after patients. */
const char *file_name(const char *path);
/* The same for an attribute of any character set: what it may not have becomes '?'. */
void file_name_plain(const char *path, char *ret, size_t size);
/* Return true if there is a name before this ending, in upper or lower case. */
bool file_name_ends(const char *path, const char *ending);

#endif
