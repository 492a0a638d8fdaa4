/* audit = "file": lines at the end of a file, whole or not at all. */
#ifndef TOMONODE_NODE_AUDIT_FILE_H
#define TOMONODE_NODE_AUDIT_FILE_H

#include <stddef.h>

/* 0, or a negative errno: nothing of the line is there then. Never waits for a reader, nor long for another writer (-EBUSY). */
int audit_file_append(const char *path, const char *line, size_t n);

/* A new file for the owner of the folder that it is in, where root made it: a command that root ran must not leave one that the
 * node's user cannot write. Answers as open(2). flags: without O_CREAT. */
int audit_file_open(const char *path, int flags);

#endif
