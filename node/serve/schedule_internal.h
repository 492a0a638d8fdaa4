/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the scheduler; private to node/serve/schedule*.c. */
#ifndef TOMONODE_NODE_SCHEDULE_INTERNAL_H
#define TOMONODE_NODE_SCHEDULE_INTERNAL_H

#include <jansson.h>

#include "node/serve/schedule.h"

#define SCHEDULE_CRASH_WAIT_FIRST 1.0 /* s until a crashed job starts again; doubled with each crash */
#define SCHEDULE_CRASH_WAIT_CAP 60.0
#define SCHEDULE_CANCEL_GRACE 5.0 /* s from SIGTERM to SIGKILL for a process whose job was cancelled */

/* schedule.c: append an event to the journal and apply it to s->jobs. The function releases the reference to `detail`. false:
 * nothing was written, because the job changed meanwhile or the journal cannot be written now; try later. */
bool schedule_append_event(struct schedule *s, const struct job_view *v, enum job_event event, json_t *detail, double now);
/* The same for an event that follows from v as it is in s->jobs. If another process has changed the job since it was read,
 * nothing is written, and schedule_step() is due soon. */
bool schedule_decide(struct schedule *s, const struct job_view *v, enum job_event event, json_t *detail, double now);
/* The same for `complete`, with the images of a CT series (node/jobs/companion.h). */
bool schedule_decide_complete(struct schedule *s, const struct job_view *v, json_t *detail, const int64_t *companions, size_t n,
			      double now);
/* Return true if an object is being received, by any association. */
bool schedule_is_receiving(struct schedule *s);
json_t *schedule_reason(const char *reason); /* {"reason": ...} */
/* Call schedule_step() at `when` (s since the epoch) at the latest. */
void schedule_wake_at(struct schedule *s, double when);
void schedule_wake_on_clock(struct schedule *s, double deadline, double now); /* the same for a deadline on s->clock */
/* Return true while the time `until` is in the future. A time more than `longest` seconds ahead is ignored: it was written before
 * the clock was set back. Another process may have written it after `now`, the beginning of this step, which is why STEP_LONGEST more
 * are allowed. */
bool schedule_is_before(struct schedule *s, double until, double longest, double now);

/* schedule_route.c: append the `complete` event of a case whose images have all arrived, or hold it for lack of a route. why: the
 * reason why it counts as complete. True: the job changed. */
bool schedule_complete(struct schedule *s, const struct job_view *v, const char *why, double now);

/* schedule_companion.c: append the `complete` event of a case, with the CT series that it needs; or, if none is there, wait or
 * hold it. Releases the reference to `detail`. needed: a protocol of the case needs one. True: the job changed. */
bool schedule_complete_with_ct(struct schedule *s, const struct job_view *v, bool needed, json_t *detail, double now);
/* Continue a case that is held for lack of such a series when one has come, or when there is another reason why none fits; and
 * one that is held with a series when that has more images, or another one is better. */
bool schedule_retry_with_ct(struct schedule *s, const struct job_view *v, double now);

/* schedule_pilots.c */
/* Return true while the pilot of a running job without a process may connect again. */
bool schedule_pilot_may_return(struct schedule *s, const struct job_view *v, double now);
/* The job continues on a pilot that has connected again. */
void schedule_pilot_returned(struct schedule *s, const struct job_view *v);
/* In a shared spool: remove what the pilot of the last attempt has left of a job (NULL: none). Older attempts removed theirs at
 * their end. */
void schedule_remove_attempt(const struct schedule *s, const struct job_view *v);
/* A pilot was refused, with this text; or (text NULL) it was accepted. */
void schedule_pilot_refused(struct schedule *s, const char *pilot, const char *text);
/* Append the event for a pilot that will not return: its loss counts as a crash only if the case was started node.attempts times.
 */
void schedule_pilot_gone(struct schedule *s, const struct job_view *v, const char *reason, double now);

/* schedule_deliver.c */
void schedule_queues_update(struct schedule *s, double now); /* compute s->queues: which destinations are down */
bool schedule_deliver(struct schedule *s, const struct job_view *v, double now); /* true: the job changed */
void schedule_queues_run(struct schedule *s, double now);			 /* start the deliveries that are due */
void schedule_delivery_ended(struct schedule *s, const struct process *p, int status, double now);

/* schedule_watch.c: end processes that make no progress */
void schedule_watch(struct schedule *s, double now);

/* schedule_workers.c */
void schedule_slots_step(struct schedule *s, double now); /* start, stop and watch workers, assign jobs */
bool schedule_fail_crashed_job(struct schedule *s, const struct job_view *v, double now); /* fail a job that crashed too often */
void schedule_crashed(struct schedule *s, int64_t job, const char *reason, double now);	  /* append `crashed` to a running job */
void schedule_cancel_seat(struct schedule *s, struct process *p);			  /* have a pilot stop its case */
void schedule_worker_ended(struct schedule *s, const struct process *ended, int status, double now);

#endif
