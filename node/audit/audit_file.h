/* SPDX-License-Identifier: Apache-2.0 */
/* audit = "file": append lines to a file, each completely or not at all. */
#ifndef TOMONODE_NODE_AUDIT_FILE_H
#define TOMONODE_NODE_AUDIT_FILE_H

#include <stddef.h>

/* Append a line. Returns 0 or a negative errno; then no part of the line is in the file. Never waits for a reader, and only
 * briefly for another writer (-EBUSY). */
int audit_file_append(const char *path, const char *line, size_t n);

/* Open a file, creating it if needed. A file that root creates is given to the owner of its folder, so that the node's user can
 * write to it later. Returns as open(2). flags: without O_CREAT. */
int audit_file_open(const char *path, int flags);

/* Lock a file, but wait only a short time, 1 ms for each try: a process that was stopped while it holds the lock must not stop the
 * others. Returns 0 or a negative errno; -EBUSY: another one has it. */
int audit_file_lock(int fd, int tries);

#endif
