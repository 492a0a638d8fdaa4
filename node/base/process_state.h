/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a process as the kernel shows it in /proc. */
#ifndef TOMONODE_NODE_PROCESS_STATE_H
#define TOMONODE_NODE_PROCESS_STATE_H

#include <stdbool.h>

/* Return true if the process is stopped by a signal (SIGSTOP, SIGTSTP) or by a debugger. False also if it cannot be read. */
bool process_is_stopped(long pid);

#endif
