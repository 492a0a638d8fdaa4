/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that `serve` runs in processes of their own; not in --help. They return an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_DELIVER_H
#define TOMONODE_NODE_CMD_DELIVER_H

int cmd_deliver(int argc, char **argv); /* deliver -c FILE JOB DESTINATION: send one result */
int cmd_commit(int argc, char **argv);	/* commit -c FILE JOB DESTINATION: ask for storage commitment of it */

#endif
