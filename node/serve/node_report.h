/* SPDX-License-Identifier: Apache-2.0 */
/* Write state that only the manager has in memory to SPOOL/node.json, for the processes that display it. No decision depends on
 * the file: if it is lost or outdated, it is written again. The manager itself uses what it has in memory. */
#ifndef TOMONODE_NODE_NODE_REPORT_H
#define TOMONODE_NODE_NODE_REPORT_H

#include <jansson.h>

#include "node/jobs/node_facts.h"
#include "node/serve/schedule.h"

struct node_report {
	double started; /* s since the epoch, start of the node */
	json_t *now;	/* the present state, as the file should have it; NULL: none yet */
	char *text;	/* last text written; NULL: none yet */
	double current; /* clock_seconds() at which the file last had the present state */
};

/* Write the file if its text differs from the last one. On failure it is tried again by the next call. */
void node_report_write(struct node_report *r, const struct schedule *s, const struct manager_facts *facts, double now);
void node_report_clear(struct node_report *r);

#endif
