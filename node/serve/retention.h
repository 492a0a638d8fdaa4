/* Retention: removes the files of cases that every destination has had for so many days, or earlier, when the spool holds more
 * bytes than it may; results that nobody will ask for; objects of no case, where a person has said so, after so many days; and
 * images that the journal does not know (node/store/orphans.h) after such a time. Nothing else is ever removed. */
#ifndef TOMONODE_NODE_RETENTION_H
#define TOMONODE_NODE_RETENTION_H

#include <stdbool.h>

#include "node/jobs/jobs.h"

/* For how long what is done stays, in days; 0: for ever. */
struct retention_rule {
	int days;	     /* delivered cases (node.retention_days) */
	int unassigned_days; /* what a person cancelled (node.retention_unassigned_days) */
};

/* Was this job delivered to all, so that its images and its result may be removed at all? The one place where this is decided:
 * what else a destination may owe us (storage commitment) belongs here. */
bool retention_is_safe(const struct job_view *v);
/* May this job's files go? Every job of its case is delivered, cancelled or cleaned, and the last of them has been for so long. A
 * cancelled one goes after the delivered ones of its case: until then it shares their images. */
bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, const struct retention_rule *rule, double now);
/* Clean what may be cleaned: journal first, files second (what a crash leaves is swept at the next start). false: a job was in
 * use meanwhile; look again soon. Logs. */
bool retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, const struct retention_rule *rule,
		     double now);

/* Remove images that the journal does not know and that were set aside `days` ago; 0: ORPHANS_DAYS. Never for want of space: they
 * may have been acknowledged. Logs. */
void retention_clean_orphans(const char *spool, int days, double now);

/* Bytes of the disk that images and results take. */
uint64_t retention_used(const char *spool);
/* While they are more than `space`: clean cases that may be cleaned at any age, those first that were delivered first. Answers
 * how many bytes there are still too many, 0: none. Logs. */
uint64_t retention_clean_space(struct journal *j, const struct jobs *jobs, const char *spool, uint64_t space, double now);

#define RETENTION_UNASSIGNED_MAX 256 /* objects at a time */
/* Remove objects that belong to no case and were found to be so at least `days` ago. Answers how many; RETENTION_UNASSIGNED_MAX:
 * there may be more. Logs. */
size_t retention_clean_unassigned(struct journal *j, const char *spool, int days, double now);

/* Will this job never send what lies in its outbox? Then it is made again, if anything: it was cancelled, failed, held,
 * cleaned. */
bool retention_outbox_idle(const struct job_view *v);
/* Remove the outbox of every such job that `busy` does not name (a process that may still read or write it). Logs. */
void retention_clean_outbox(const struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx);

#endif
