/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: is the cluster of the configuration usable by this process's user? */
#ifndef TOMONODE_NODE_CHECK_CLUSTER_H
#define TOMONODE_NODE_CHECK_CLUSTER_H

#include "node/command/check_as_user.h"

/* Test the address of the listener and, with `executor` slurm, Slurm and the program of the pilots. runs: a node runs with this
 * spool. The configuration has a port for pilots. */
void check_cluster(const struct config *config, bool runs, const struct check_report *to);

#endif
