/* SPDX-License-Identifier: Apache-2.0 */
/* Retention removes the following files; the node removes no others:
 * - files of cases whose result was delivered to all destinations a number of days ago, or earlier if the spool exceeds its size
 * limit;
 * - results that will never be sent;
 * - objects that belong to no case, after a number of days, if the configuration says so;
 * - CT images that cases use, with the last of these cases; those that none uses, after the days of delivered cases;
 * - images without a row in the journal (node/store/orphans.h), after a number of days. */
#ifndef TOMONODE_NODE_RETENTION_H
#define TOMONODE_NODE_RETENTION_H

#include <stdbool.h>

#include "node/jobs/jobs.h"

/* How long finished cases are kept, in days; 0: forever. */
struct retention_rule {
	int days;	     /* delivered cases (node.retention_days) */
	int unassigned_days; /* cancelled cases (node.retention_unassigned_days) */
};

/* Return true if every destination has the result (with storage commitment where it is required), so that images and result may
 * be removed. No other function makes this decision. */
bool retention_is_delivered(const struct job_view *v);
/* Return true if this job's files may be removed: every job of its case is delivered, cancelled or cleaned, and the last of these
 * events is at least as old as `rule` requires. A cancelled job is cleaned after the delivered jobs of its case, because they
 * share images. One with CT images stays while another case of its study may need them. */
bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, const struct retention_rule *rule, double now);
/* Remove the files of all jobs for which retention_may_clean(): write `cleaned` to the journal first, then remove the files;
 * files that remain after a crash are removed at the next start. false: a job changed meanwhile; call again soon. Logs. */
bool retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, const struct retention_rule *rule,
		     double now);

/* Remove orphaned images that were set aside at least `days` days ago; 0: ORPHANS_DAYS. They are never removed earlier for lack
 * of space, because they may have been acknowledged. Logs. */
void retention_clean_orphans(const char *spool, int days, double now);

/* Return the disk space of images and results, in bytes. */
uint64_t retention_used_bytes(const char *spool);
/* While images and results occupy more than `space` bytes, remove the files of cases that are delivered, cancelled or cleaned,
 * whatever their age, in the order of their delivery. Returns the number of bytes still above the limit; 0: none. Logs. */
uint64_t retention_clean_space(struct journal *j, const struct jobs *jobs, const char *spool, uint64_t space, double now);

#define RETENTION_UNASSIGNED_MAX 256 /* objects per call */
/* Remove objects that belong to no case and were classified so at least `days` days ago. Returns their number;
 * RETENTION_UNASSIGNED_MAX: there may be more. Logs. */
size_t retention_clean_unassigned(struct journal *j, const char *spool, int days, double now);

/* Remove CT images (node/jobs/companion.h) that were received at least `days` days ago and belong to no case that is not cleaned,
 * unless a case of their study is collecting, held or ready, and may still need them. Returns their number, at most
 * RETENTION_UNASSIGNED_MAX. Logs. */
size_t retention_clean_companions(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now);

/* Return true if this job will never send the files in its outbox, because it was cancelled, failed, is held or cleaned. A later
 * retry creates them again. */
bool retention_never_sends(const struct job_view *v);
/* Remove the outbox of every such job, except those for which busy() returns true (a process may still use the files). Logs. */
void retention_clean_outbox(const struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx);
/* The same for the open jobs that have changed since the last call, without reading the folder of all outboxes. */
void retention_clean_changed_outboxes(struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx);

#endif
