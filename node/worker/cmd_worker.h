/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that `serve` runs in processes of their own; not in --help. They return an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_WORKER_H
#define TOMONODE_NODE_CMD_WORKER_H

int cmd_index(int argc, char **argv);  /* index -c FILE: assign each new instance to its case */
int cmd_worker(int argc, char **argv); /* worker -c FILE DEVICE: reconstruct cases on one device */
int cmd_case(int argc, char **argv);   /* case ROOT DEVICE: the same without a journal, for a pilot */
int cmd_seat(int argc, char **argv);   /* seat -c FILE: have the cases reconstructed by a pilot that connects to the node */

#endif
