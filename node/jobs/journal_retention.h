/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction of the journal: delete the rows of cases whose files retention removed long ago. */
#ifndef TOMONODE_NODE_JOURNAL_RETENTION_H
#define TOMONODE_NODE_JOURNAL_RETENTION_H

#include "node/jobs/jobs.h"

#define JOURNAL_RETENTION_CASES_MAX 100 /* per call: each case is one commit */

/* Return true if the rows of this job's case may be deleted: all its jobs have been cleaned for at least `days` days. */
bool journal_retention_may_delete(const struct jobs *jobs, const struct job_view *v, int days, double now);
/* Delete such cases from the journal and then from the view, except those that still have a folder in the spool. Logs. Returns
 * the number of cases; JOURNAL_RETENTION_CASES_MAX: call again, there may be more. */
size_t journal_retention_compact(struct journal *j, struct jobs *jobs, const char *spool, int days, double now);
/* Delete the rows of unassigned instances that were removed at least `days` days ago (0: never). Logs. Returns their number;
 * JOURNAL_UNASSIGNED_MAX: call again, there may be more. */
size_t journal_retention_delete_unassigned(struct journal *j, int days, double now);

#endif
