/* Compaction of the journal: cases that retention removed long ago are forgotten. */
#ifndef TOMONODE_NODE_JOURNAL_RETENTION_H
#define TOMONODE_NODE_JOURNAL_RETENTION_H

#include "node/jobs/jobs.h"

#define JOURNAL_RETENTION_CASES_MAX 100 /* at a time: each is a commit */

/* May the case of this job be forgotten? Every job of it is cleaned, since `days`. */
bool journal_retention_may_forget(const struct jobs *jobs, const struct job_view *v, int days, double now);
/* Forget such cases, in the journal and then in the view; not one that still has a folder in the spool. Logs. Answers how many
 * cases there were; JOURNAL_RETENTION_CASES_MAX: there may be more. */
size_t journal_retention_compact(struct journal *j, struct jobs *jobs, const char *spool, int days, double now);
/* Forget instances that belonged to no case and were removed so long ago (0: never). Logs. Answers how many;
 * JOURNAL_UNASSIGNED_MAX: there may be more. */
size_t journal_retention_forget_unassigned(struct journal *j, int days, double now);

#endif
