/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: is the cluster of the configuration usable, as the user that the node runs as? */
#ifndef TOMONODE_NODE_CHECK_CLUSTER_H
#define TOMONODE_NODE_CHECK_CLUSTER_H

#include "node/config/config.h"

struct check_cluster_report {
	void *ctx;
	void (*problem)(void *ctx, const char *text); /* pilots cannot work until a person corrects it */
	void (*warning)(void *ctx, const char *text); /* it may pass by itself, or could not be tested */
};

/* Test the address of the listener and, with `executor` slurm, Slurm and the program of the pilots. runs: a node runs with this
 * spool. */
void check_cluster(const struct config *config, bool runs, const struct check_cluster_report *report);

#endif
