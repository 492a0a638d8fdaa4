/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOMONODE_NODE_CMD_CLUSTER_H
#define TOMONODE_NODE_CMD_CLUSTER_H

int cmd_cluster(int argc, char **argv);

#endif
