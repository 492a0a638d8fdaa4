/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that `serve` runs in processes of their own; not in --help. They return an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_WORKER_H
#define TOMONODE_NODE_CMD_WORKER_H

int cmd_index(int argc, char **argv);  /* index -c FILE: find the case of each new instance */
int cmd_worker(int argc, char **argv); /* worker -c FILE JOB: reconstruct one case */

#endif
