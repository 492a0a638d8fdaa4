/* SPDX-License-Identifier: Apache-2.0 */
/* Start this program again from a work process, with only the given descriptors open. Processes that the manager starts, which
 * hold the lock on the spool, are in node/process/process_table.h. */
#ifndef TOMONODE_NODE_SPAWN_H
#define TOMONODE_NODE_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "kernels/err.h"

/* Fork and exec `tomonode argv[1] ...`. The child inherits standard input, output and error and the descriptors in `keep`, with
 * the same numbers. It is killed when this process ends. The caller waits for *ret_pid. */
int spawn_start(char *const *argv, const int *keep, size_t n_keep, pid_t *ret_pid, struct err *err);

#endif
