/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that return an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_PILOT_H
#define TOMONODE_NODE_CMD_PILOT_H

int cmd_pilot(int argc, char **argv);	    /* reconstruct on this machine for a node on another one */
int cmd_pilot_token(int argc, char **argv); /* make the secret that pilots and a node share */

#endif
