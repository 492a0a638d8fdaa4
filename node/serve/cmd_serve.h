/* SPDX-License-Identifier: Apache-2.0 */
/* `tomonode serve`: returns an exit code (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_SERVE_H
#define TOMONODE_NODE_CMD_SERVE_H

int cmd_serve(int argc, char **argv);

#endif
