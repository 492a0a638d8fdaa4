/* Retention: removes the files of cases that every destination has had for so many days. Nothing else is ever removed. */
#ifndef TOMONODE_NODE_RETENTION_H
#define TOMONODE_NODE_RETENTION_H

#include <stdbool.h>

#include "node/jobs.h"

/* May this job's files go? It is delivered, to at least one destination, since `days`, and so is every other job of its case. */
bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, int days, double now);
/* Clean what may be cleaned: journal first, files second (what a crash leaves is swept at the next start). Logs. */
void retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now);

#endif
