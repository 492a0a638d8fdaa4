/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong now, as node/alert/alerts.h takes it: the problems of the node, and one entry for each case that needs a person.
 * No text has data of a patient: no UID, no accession number, no reason of a case, no answer of a peer. */
#ifndef TOMONODE_NODE_ALERT_SEEN_H
#define TOMONODE_NODE_ALERT_SEEN_H

#include "node/alert/alerts.h"
#include "node/jobs/jobs.h"
#include "node/jobs/node_problems.h"

struct alert_list { /* starts as {0} */
	struct alert_seen *list;
	size_t n, capacity;
};

/* Replace the list. Its texts are those of `problems`. jobs NULL: the journal cannot be read; the cases that were wrong before
 * (`before`) are taken to be wrong still. Returns 0 or ENOMEM. */
int alert_list_fill(struct alert_list *l, const struct node_problems *problems, const struct jobs *jobs,
		    const struct alerts *before, struct err *err);
void alert_list_clear(struct alert_list *l);

#endif
