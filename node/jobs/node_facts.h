/* SPDX-License-Identifier: Apache-2.0 */
/* Collect the facts of node/jobs/node_problems.h from the configuration, the jobs and the spool. Any process may do it; nothing
 * is changed. */
#ifndef TOMONODE_NODE_NODE_FACTS_H
#define TOMONODE_NODE_NODE_FACTS_H

#include <jansson.h>

#include "node/jobs/node_problems.h"
#include "node/store/journal.h"

/* Facts that need no journal: the spool's disk, its lock, the manager's report, the configuration. */
void node_facts_of_spool(const struct config *config, double now, struct node_facts *ret);
/* Add the facts that come from the journal: instances that wait for the indexer. */
int node_facts_of_journal(struct journal *journal, struct node_facts *facts, struct err *err);
/* Add the facts that come from the jobs: destinations, cases that need a person. */
void node_facts_of_jobs(const struct config *config, const struct jobs *jobs, struct node_facts *facts);
/* Return true if a person has to act on the job. */
bool node_facts_job_needs_attention(const struct job_view *v);

/* {"id", "critical": bool, "text", "remedy"}: a new reference. */
json_t *node_problem_json(const struct node_problem *p);

/* [{"last", "count", "calling", "host", "reason"}], the newest first: a new reference. */
json_t *node_associations_json(const struct manager_facts *m);

/* Describe the pilots of Slurm in a sentence. */
void node_cluster_text(const struct node_cluster *c, char *ret, size_t size);
/* The members of struct node_cluster: a new reference. */
json_t *node_cluster_json(const struct node_cluster *c);

/* The manager's part of SPOOL/node.json. The first returns a new reference. */
json_t *manager_facts_json(const struct manager_facts *m);
void manager_facts_read(const json_t *report, struct manager_facts *ret);

#endif
