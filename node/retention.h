/* Retention: removes the files of cases that every destination has had for so many days, and results that nobody will ask for.
 * Nothing else is ever removed. */
#ifndef TOMONODE_NODE_RETENTION_H
#define TOMONODE_NODE_RETENTION_H

#include <stdbool.h>

#include "node/jobs.h"

/* May this job's files go? It is delivered, to at least one destination, since `days`, and so is every other job of its case. */
bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, int days, double now);
/* Clean what may be cleaned: journal first, files second (what a crash leaves is swept at the next start). Logs. */
void retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now);

/* Will this job never send what lies in its outbox? Then it is made again, if anything: it was cancelled, failed, held, cleaned.
 */
bool retention_outbox_idle(const struct job_view *v);
/* Remove the outbox of every such job that `busy` does not name (a process that may still read or write it). Logs. */
void retention_clean_outbox(const struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx);

#endif
