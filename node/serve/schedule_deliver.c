/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_deliver.c - schedule the work on results: deliveries, storage commitment requests, fallbacks.
 *
 * - Each destination has one queue of deliveries and one of storage commitment requests; one process at a time serves a queue.
 *   Order: first a job that a person has just retried, then the higher priority, then the job that was complete first.
 * - If a destination has `associations`, that many processes serve its queue of deliveries, each with another job, as long as the
 *   destination responds: it stored an object in the last REACHED_SECONDS, and no delivery waits because it got no association.
 * - If no association could be opened, the whole queue waits for the next attempt of that one job: a destination that is down
 *   costs one attempt and one event at a time, not one per case. An object that was stored later ends the waiting.
 * - A delivery to a destination that is not in the configuration (removed or misspelt) waits, with an alarm, until it is
 *   configured again: an error in a reload must not count as a refusal by an archive.
 * - Within a case the order is kept: a revision is not sent before its predecessor while that may still be sent.
 * - A destination that refused permanently, or failed for too long, is replaced by its fallback, unless that is one of the job's
 *   destinations already.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/audit/audit_trail.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/deliver/commit.h"
#include "node/deliver/destination.h"
#include "node/jobs/delivery_queue.h"
#include "node/serve/schedule_internal.h"
#include "node/store/event.h"

#define REACHED_SECONDS 60.0 /* s after its last response for which several associations to a destination may be opened */

/* ---- queues ---- */

/* Return true if the send waits in a queue, and the role of the processes of that queue. */
static bool is_queued(struct schedule *s, const struct job_view *v, const struct job_send *send, enum process_role *ret_role)
{
	bool commit, waits = job_send_is_queued(v, send, &commit);

	*ret_role = commit ? PROCESS_COMMIT : PROCESS_DELIVER;
	return waits && config_destination(s->config, send->destination);
}

static struct schedule_queue *find_queue(struct schedule *s, enum process_role role, const char *destination)
{
	for (size_t i = 0; i < s->n_queues; i++)
		if (s->queues[i].role == role && !strcmp(s->queues[i].destination, destination))
			return &s->queues[i];
	return NULL;
}

/* Return the queue of a destination, created if needed. NULL: there are too many; its deliveries wait until another queue is
 * empty. */
static struct schedule_queue *get_queue(struct schedule *s, enum process_role role, const char *destination)
{
	struct schedule_queue *queue = find_queue(s, role, destination);

	if (queue || s->n_queues == SCHEDULE_QUEUES_MAX)
		return queue;
	queue = &s->queues[s->n_queues++];
	*queue = (struct schedule_queue){.role = role};
	snprintf(queue->destination, sizeof(queue->destination), "%s", destination);
	return queue;
}

static double longest_wait(const struct destination_conf *d)
{
	return d && d->retry_cap > SCHEDULE_CRASH_WAIT_CAP ? d->retry_cap : SCHEDULE_CRASH_WAIT_CAP;
}

/* Call use() for each send that waits in a queue. */
static void each_queued(struct schedule *s, double now,
			void (*use)(struct schedule *s, struct schedule_queue *queue, const struct job_send *send, double now))
{
	for (size_t i = 0; i < s->jobs.n_open; i++)
		for (size_t k = 0; k < s->jobs.open[i]->n_sends; k++) {
			const struct job_send *send = &s->jobs.open[i]->sends[k];
			enum process_role role;
			struct schedule_queue *queue = NULL;

			if (is_queued(s, s->jobs.open[i], send, &role))
				queue = get_queue(s, role, send->destination);
			if (queue)
				use(s, queue, send, now);
		}
}

static void mark_down(struct schedule *s, struct schedule_queue *queue, const struct job_send *send, double now)
{
	(void)s;
	(void)now;
	queue->down = queue->down || send->down;
}

static void set_reached(struct schedule *s, double now)
{
	for (size_t i = 0; i < s->n_queues; i++)
		s->queues[i].reached = delivery_queue_reached(&s->jobs, s->queues[i].destination, now);
}

static void block_queue(struct schedule *s, struct schedule_queue *queue, const struct job_send *send, double now)
{
	if (!send->down || send->time < queue->reached)
		return;
	if (queue->blocked_since <= 0 || send->since < queue->blocked_since)
		queue->blocked_since = send->since;
	if (send->next > queue->blocked_until &&
	    send->next - now <= longest_wait(config_destination(s->config, send->destination)))
		queue->blocked_until = send->next;
}

void schedule_queues_update(struct schedule *s, double now)
{
	s->n_queues = 0;
	each_queued(s, now, mark_down);
	set_reached(s, now);
	each_queued(s, now, block_queue);
}

/* Return for how many s the deliveries of this job to this destination have failed, or have waited for a failing delivery of
 * another job; 0: neither. */
static double failing_for(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	const struct schedule_queue *queue = find_queue(s, PROCESS_DELIVER, send->destination);
	double since = send->since;

	if (since <= 0 && queue && queue->blocked_since > 0)
		since = queue->blocked_since > v->reconstructed ? queue->blocked_since : v->reconstructed;
	return since > 0 && now > since ? now - since : 0;
}

/* ---- decisions about a job ---- */

/* Return true if the files of all objects that are due somewhere exist. */
static bool result_exists(struct schedule *s, const struct job_view *v)
{
	char path[500];

	for (size_t i = 0; i < v->n_objects; i++)
		if (job_view_is_due(v, i) &&
		    (snprintf(path, sizeof(path), "%s/%s", s->config->node.spool, v->objects[i].file) >= (int)sizeof(path) ||
		     access(path, R_OK) < 0))
			return false;
	return true;
}

/* Return true if a case already waits for this destination, which is not in the configuration. */
static bool is_waited_for(struct schedule *s, const char *destination)
{
	for (size_t i = 0; i < s->jobs.n_open; i++) {
		const struct job_view *v = s->jobs.open[i];
		const struct job_send *send = job_view_find_send(v, destination);

		if ((v->state == JOB_RECONSTRUCTED || v->state == JOB_STORED) && send && send->unconfigured &&
		    job_send_is_active(send))
			return true;
	}
	return false;
}

/* Record in the journal that a destination is not in the configuration: once for each case, with one alarm for all cases. */
static bool append_unconfigured(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	bool stored = send->state == SEND_STORED, known;
	char reason[160], destination[CONFIG_NAME_SIZE];
	int64_t job = v->id;

	if (send->unconfigured || (send->state != SEND_DUE && !stored) || config_destination(s->config, send->destination) ||
	    process_table_find(&s->processes, stored ? PROCESS_COMMIT : PROCESS_DELIVER, v->id,
			       send->destination)) /* the end of that process causes the next step */
		return false;
	known = is_waited_for(s, send->destination);
	snprintf(destination, sizeof(destination), "%s", send->destination); /* copied, because the event changes the view */
	snprintf(reason, sizeof(reason), "destination '%s' is not in the configuration", destination);
	if (!schedule_decide(s, v, stored ? EVENT_COMMIT_REQUEST_FAILED : EVENT_SEND_FAILED,
			     json_pack("{s:s, s:s, s:s, s:o, s:b}", "destination", send->destination, "transaction",
				       send->transaction, "status", "", "reason", event_json_text(reason), "unconfigured", 1),
			     now))
		return false;
	if (!known)
		destination_alarm(job, destination, reason);
	return true;
}

/* The configuration no longer requires storage commitment: treat stored objects as committed. */
static bool waive_commitment(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	json_t *uids = json_array();

	for (size_t i = 0; i < v->n_objects; i++)
		if (send->objects[i] == SEND_STORED)
			json_array_append_new(uids, json_string(v->objects[i].sop_instance));
	return schedule_decide(s, v, EVENT_COMMITTED,
			       json_pack("{s:s, s:s, s:s, s:s, s:o}", "destination", send->destination, "transaction",
					 send->transaction, "status", "", "reason", "storage commitment is no longer required",
					 "sop_instances", uids),
			       now);
}

/* Handle a storage commitment whose report is overdue. */
static bool commitment_ended(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	const struct destination_conf *d = config_destination(s->config, send->destination);
	enum job_event event;
	char reason[160];
	json_t *detail;

	if (!d)
		return false; /* append_unconfigured() has recorded it */
	if (!d->commitment)
		return waive_commitment(s, v, send, now);
	if (!send->transaction[0] || !send->accepted || schedule_is_before(s, send->until, d->commitment_timeout, now))
		return false;
	snprintf(reason, sizeof(reason), "no report within %g s", d->commitment_timeout);
	event = commit_failure_event(d, send, reason, NULL, now, &detail);
	return schedule_decide(s, v, event, detail, now);
}

/* Give the result to the fallback of a destination that refused it, or that has failed for too long. true: the job changed. */
static bool fall_back(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	const struct destination_conf *d = config_destination(s->config, send->destination);
	const struct job_send *there;
	double failing;
	char reason[160];

	if (!d || !d->fallback[0] || v->n_sends >= JOB_SENDS_MAX || (send->state != SEND_DUE && send->state != SEND_REFUSED))
		return false;
	there = job_view_find_send(v, d->fallback);
	if (there && (job_send_is_active(there) || there->replaced))
		return false;
	snprintf(reason, sizeof(reason), "%s refused the result permanently", send->destination);
	if (send->state == SEND_DUE) {
		failing = failing_for(s, v, send, now);
		if (d->fallback_after <= 0 || failing <= 0)
			return false;
		if (failing < d->fallback_after) {
			schedule_wake_at(s, now + d->fallback_after - failing);
			return false;
		}
		if (process_table_find(&s->processes, PROCESS_DELIVER, v->id, send->destination))
			return false; /* its end wakes us */
		snprintf(reason, sizeof(reason), "%s has failed for %.0f s", send->destination, failing);
	}
	return schedule_decide(
		s, v, EVENT_FALLBACK,
		json_pack("{s:s, s:s, s:s}", "destination", send->destination, "fallback", d->fallback, "reason", reason), now);
}

/* Append the event that ends the deliveries of a job; the reason of a dead letter: "refused by pacs: the peer does not support
 * this class; ws: ..." */
static bool finish_deliveries(struct schedule *s, const struct job_view *v, double now)
{
	const char *before = "refused by ";
	char reason[300] = "";
	size_t n = 0;

	if (job_view_count_sends(v, SEND_REFUSED) == 0)
		return schedule_decide(s, v, EVENT_DELIVERED, json_pack("{s:I}", "destinations", (json_int_t)v->n_sends), now);
	for (size_t i = 0; i < v->n_sends && n < sizeof(reason); i++) {
		const struct job_send *send = &v->sends[i];

		if (send->state != SEND_REFUSED || !job_send_is_active(send))
			continue;
		n += (size_t)snprintf(reason + n, sizeof(reason) - n, "%s%s%s%s", before, send->destination,
				      send->reason[0] ? ": " : "", send->reason);
		before = "; by ";
	}
	return schedule_decide(s, v, EVENT_DEAD_LETTER, schedule_reason(reason), now);
}

bool schedule_deliver(struct schedule *s, const struct job_view *v, double now)
{
	for (size_t i = 0; i < v->n_sends; i++) {
		const struct job_send *send = &v->sends[i];

		if (!job_send_is_active(send))
			continue;
		if (append_unconfigured(s, v, send, now))
			return true;
		if (send->state == SEND_STORED && commitment_ended(s, v, send, now))
			return true;
		if (fall_back(s, v, send, now))
			return true;
	}
	if (job_view_count_sends(v, SEND_DUE) > 0) {
		if (result_exists(s, v))
			return false;
		return schedule_decide(s, v, EVENT_RESULT_LOST,
				       schedule_reason("the result is no longer in the outbox: the case is reconstructed again"),
				       now);
	}
	if (job_view_count_sends(v, SEND_STORED) > 0)
		return v->state == JOB_RECONSTRUCTED &&
		       schedule_decide(s, v, EVENT_STORED, json_pack("{s:I}", "destinations", (json_int_t)v->n_sends), now);
	return finish_deliveries(s, v, now);
}

/* ---- order ---- */

/* Return false if an earlier job of the case may still be sent to this destination: it must be sent before its revision. */
static bool predecessor_done(struct schedule *s, const struct job_view *v, const struct job_send *send)
{
	const struct job_view *o = v;

	while (o->revision_of > 0 && o->revision_of < o->id && (o = jobs_find(&s->jobs, o->revision_of))) {
		const struct job_send *theirs = job_view_find_send(o, send->destination);

		if (o->state == JOB_READY || o->state == JOB_RUNNING)
			return false;
		if (o->state == JOB_RECONSTRUCTED && theirs && theirs->state == SEND_DUE && job_send_is_active(theirs))
			return false;
	}
	return true;
}

static bool goes_before(const struct job_view *v, const struct job_send *send, const struct schedule_queue *queue)
{
	if (!queue->job || send->immediate != queue->immediate)
		return !queue->job || send->immediate;
	if (v->priority != queue->priority)
		return v->priority > queue->priority;
	return v->completed_seq < queue->seq;
}

static void enqueue_send(struct schedule *s, const struct job_view *v, const struct job_send *send, double now)
{
	enum process_role role;
	struct schedule_queue *queue;

	if (!is_queued(s, v, send, &role))
		return;
	queue = get_queue(s, role, send->destination);
	if (!queue)
		return;
	if (role == PROCESS_DELIVER && (v->state != JOB_RECONSTRUCTED || !predecessor_done(s, v, send)))
		return;
	if (schedule_is_before(s, send->next, longest_wait(config_destination(s->config, send->destination)), now) ||
	    !goes_before(v, send, queue))
		return;
	if (queue->full || process_table_find(&s->processes, role, v->id, send->destination))
		return; /* the end of a process wakes us */
	queue->job = v->id;
	queue->seq = v->completed_seq;
	queue->priority = v->priority;
	queue->immediate = send->immediate;
}

/* Write to the audit trail what is about to be sent. */
static void audit_delivery(struct schedule *s, const struct job_view *v, const struct job_send *send)
{
	const struct destination_conf *d = config_destination(s->config, send->destination);
	char uid[AUDIT_ID_SIZE], patient[AUDIT_ID_SIZE];
	struct audit_study study = {0};

	if (!audit_is_on() || !d)
		return;
	audit_trail_study(s->journal, v->id, v->header, &study, uid, patient);
	for (size_t i = 0; i < v->n_objects; i++)
		if (send->objects[i] == SEND_DUE)
			audit_study_count(&study, v->objects[i].sop_class, 1);
	audit_begin_transfer(&(struct audit_peer){.aet = d->aet, .host = d->host}, 0, &study, 1);
}

/* Start the next delivery of a queue. true: it was started. */
static bool start_delivery(struct schedule *s, const struct schedule_queue *queue, double now)
{
	struct process p = {.role = queue->role, .job = queue->job};
	struct err err = {0};
	char job[24];
	const char *args[] = {
		process_role_name(queue->role), job, queue->destination, s->config_path ? "-c" : NULL, s->config_path, NULL};

	if (!queue->immediate && queue->blocked_until > now) {
		schedule_wake_at(s, queue->blocked_until);
		return false;
	}
	snprintf(job, sizeof(job), "%lld", (long long)queue->job);
	snprintf(p.destination, sizeof(p.destination), "%s", queue->destination);
	if (queue->role == PROCESS_DELIVER) {
		const struct job_view *v = jobs_find(&s->jobs, queue->job);

		audit_delivery(s, v, job_view_find_send(v, queue->destination));
	}
	if (process_table_spawn(&s->processes, &p, args, s->clock, &err) < 0) {
		log_event(LOG_ERR, "delivery-not-started", "job=%lld reason=%s", (long long)queue->job, log_quote(err.msg));
		schedule_wake_at(s, now + SCHEDULE_CRASH_WAIT_FIRST);
		return false;
	}
	return true;
}

/* Return how many processes may serve a queue now. */
static size_t most_processes(struct schedule *s, const struct schedule_queue *queue, double now)
{
	const struct destination_conf *d = config_destination(s->config, queue->destination);

	if (!d || queue->role != PROCESS_DELIVER || queue->down || queue->reached <= 0 || now - queue->reached > REACHED_SECONDS)
		return 1;
	return (size_t)d->associations;
}

/* Find the next job of each queue, and start its delivery. true: one was started. */
static bool run_queues(struct schedule *s, double now)
{
	bool started = false;

	for (size_t i = 0; i < s->n_queues; i++) {
		struct schedule_queue *queue = &s->queues[i];

		queue->job = 0;
		queue->full =
			process_table_count(&s->processes, queue->role, queue->destination) >= most_processes(s, queue, now);
	}
	for (size_t i = 0; i < s->jobs.n_open; i++)
		for (size_t k = 0; k < s->jobs.open[i]->n_sends; k++)
			enqueue_send(s, s->jobs.open[i], &s->jobs.open[i]->sends[k], now);
	for (size_t i = 0; i < s->n_queues && !s->stopping; i++)
		if (s->queues[i].job && start_delivery(s, &s->queues[i], now))
			started = true;
	return started;
}

void schedule_queues_run(struct schedule *s, double now)
{
	while (run_queues(s, now))
		;
}

/* ---- end of a delivery process ---- */

void schedule_delivery_ended(struct schedule *s, const struct process *p, int status, double now)
{
	const struct job_view *v = jobs_find(&s->jobs, p->job);
	const struct job_send *send = v ? job_view_find_send(v, p->destination) : NULL;
	const struct destination_conf *d = config_destination(s->config, p->destination);
	bool commit = p->role == PROCESS_COMMIT, alarm = false;
	char how[120], reason[160];
	json_t *detail;

	if (!send || (p->kill_at > 0 && !p->hung) || send->state != (commit ? SEND_STORED : SEND_DUE) ||
	    (commit && send->accepted))
		return;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == CODE_OK || WEXITSTATUS(status) == CODE_CANCELLED))
		return; /* the process has recorded the outcome itself */
	process_describe(status, how, sizeof(how));
	if (p->hung)
		snprintf(how, sizeof(how), "made no progress and was killed");
	snprintf(reason, sizeof(reason), "the %s process %s", commit ? "commitment" : "delivery", how);
	detail = json_pack("{s:s, s:s, s:s, s:o, s:f}", "destination", p->destination, "transaction", send->transaction, "status",
			   "", "reason", event_json_text(reason), "next", now + SCHEDULE_CRASH_WAIT_CAP);
	if (detail && d)
		alarm = destination_failed(detail, d, send, (struct destination_failure){0}, now);
	if (schedule_append_event(s, v, commit ? EVENT_COMMIT_REQUEST_FAILED : EVENT_SEND_FAILED, detail, now) && alarm)
		destination_alarm(p->job, p->destination, reason);
}
