/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that `serve` runs in processes of their own; not in --help. They return an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_WORKER_H
#define TOMONODE_NODE_CMD_WORKER_H

int cmd_index(int argc, char **argv);  /* index -c FILE: assign each new instance to its case */
int cmd_worker(int argc, char **argv); /* worker -c FILE DEVICE: reconstruct cases on one device */

#endif
