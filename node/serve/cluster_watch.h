/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's part of the pilots on Slurm: the process `tomonode cluster` (node/fleet/cmd_cluster.c), which is started again
 * when it ends. The manager tells it which pilots are connected and how many cases wait, and passes its requests to end on to the
 * pilots. */
#ifndef TOMONODE_NODE_CLUSTER_WATCH_H
#define TOMONODE_NODE_CLUSTER_WATCH_H

#include "node/fleet/fleet_ipc.h"
#include "node/jobs/node_problems.h"
#include "node/serve/schedule.h"

struct cluster_watch { /* starts as {0} */
	double at;     /* when to start the process, on clock_seconds(); 0: none is to be started */
	int deaths;
	struct fleet_demand sent;
	bool demanded; /* `sent` was sent to the process that runs */
	struct node_cluster facts;
};

/* Apply a configuration that was read: end the process, plan a new one. */
void cluster_watch_reload(struct cluster_watch *w, struct schedule *s, double clock);
/* Start the process if it is due, read its reports, send it what has changed. Call it after schedule_step(). */
void cluster_watch_step(struct cluster_watch *w, struct schedule *s, double now);
void cluster_watch_ended(struct cluster_watch *w, const struct process *p, int status, const struct schedule *s);

#endif
