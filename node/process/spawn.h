/* A process that a work process starts for itself: this program again, with nothing open but what it is given.
 * (What the manager starts, with the lock on the spool, is node/process/process_table.h.) */
#ifndef TOMONODE_NODE_SPAWN_H
#define TOMONODE_NODE_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "kernels/err.h"

/* fork and exec `tomonode argv[1] ...`; standard input, output and error are ours, of the other descriptors it gets `keep` under
 * their numbers. It dies with us. *ret_pid: to be waited for. */
int spawn_start(char *const *argv, const int *keep, size_t n_keep, pid_t *ret_pid, struct err *err);

#endif
