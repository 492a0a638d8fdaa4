/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_workers.c - the workers: carry out the decisions of node/serve/slots.h, read the workers' messages, and assign ready
 * jobs to them.
 *
 * - A job belongs to the worker whose process number it records; a busy slot has such a process.
 * - A job that was cancelled and then retried waits until its former worker has ended: two would write into one folder.
 * - The messages are read before the journal, so that the event of a finished job is in the journal by then.
 * - If a device is reported as broken, this does not count as an attempt of the job: another slot runs it. A crash or hang of
 *   the worker does count.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/backoff.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/base/thread_pool.h"
#include "node/jobs/case_results.h"
#include "node/process/worker_ipc.h"
#include "node/serve/schedule_internal.h"
#include "node/store/event.h"

#define READY_WAIT_LONGEST                                                                                                       \
	600.0		/* s; longest waiting time that an event can give a job, which is that after a lack of disk space */
#define LEFT_MAX 8	/* attempts more than node.attempts after which the end of a pilot counts: a limit of time may end each */
#define STOP_GRACE 10.0 /* s from SIGTERM to SIGKILL for a worker that is no longer needed */

/* Apply an event to a slot; log if it disables the slot or if the devices could not be counted. */
static void update_slot(struct schedule *s, int id, enum slot_event event, int number, const char *text)
{
	const struct slot *slot = slots_find(&s->slots, id);
	bool counting = slot && device_name_is_wildcard(slot->name) && !slot->retiring;
	int outs = slot ? slot->disabled_count : 0;

	slots_update(&s->slots, id, event, number, text, s->clock);
	slot = slots_find(&s->slots, id);
	if (event == SLOT_ENDED && counting && !slot)
		log_event(LOG_ERR, "devices-not-counted", "reason=%s", log_quote(text));
	if (slot && slot->disabled_count > outs)
		log_event(LOG_CRIT, "device-disabled", "device=%s reason=%s retry_seconds=%.0f", log_quote(slot->name),
			  log_quote(slot->reason), slot->at - s->clock);
}

/* text: bytes of the smallest device, or why there is none. */
static void apply_count(struct schedule *s, int id, int number, const char *text)
{
	if (number > 0)
		log_event(LOG_NOTICE, "devices-counted", "cuda=%d bytes=%s", number, log_quote(text));
	else
		log_event(LOG_NOTICE, "devices-counted", "cuda=0 reason=%s", log_quote(text));
	update_slot(s, id, SLOT_COUNTED, number, text);
}

/* ---- jobs ---- */

/* The worker no longer runs this job, whatever the outcome. */
static void leave_job(struct schedule *s, int64_t job)
{
	struct err err = {0};
	char path[400];

	if (folder_path(s->config->node.spool, "work", job, path, sizeof(path), &err) < 0 || folder_remove(path, &err) < 0)
		log_event(LOG_WARNING, "work-not-removed", "reason=%s", log_quote(err.msg));
	schedule_remove_attempt(s, jobs_find(&s->jobs, job));
}

void schedule_crashed(struct schedule *s, int64_t job, const char *reason, double now)
{
	const struct job_view *v = jobs_find(&s->jobs, job);
	double wait;

	if (!v || v->state != JOB_RUNNING)
		return;
	wait = backoff_seconds(v->crashes + 1, SCHEDULE_CRASH_WAIT_FIRST, SCHEDULE_CRASH_WAIT_CAP);
	schedule_append_event(s, v, EVENT_CRASHED, json_pack("{s:o, s:f}", "reason", event_json_text(reason), "next", now + wait),
			      now);
}

static void interrupt_job(struct schedule *s, int64_t job, const char *reason, double now)
{
	const struct job_view *v = jobs_find(&s->jobs, job);

	if (v && v->state == JOB_RUNNING)
		schedule_append_event(s, v, EVENT_INTERRUPTED, schedule_reason(reason), now);
}

bool schedule_fail_crashed_job(struct schedule *s, const struct job_view *v, double now)
{
	char reason[400];

	if (v->crashes < s->config->node.attempts)
		return false;
	snprintf(reason, sizeof(reason), "given up after %d attempt%s; the last one: %s", v->crashes, plural(v->crashes),
		 v->reason);
	return schedule_append_event(s, v, EVENT_FAILED, schedule_reason(reason), now);
}

/* Return true while a worker of this machine computes another result of the same images: this one is next on that worker, which
 * need not read and prepare them again. */
static bool waits_for_result(struct schedule *s, const struct job_view *v)
{
	if (v->other.of == 0 && !v->further)
		return false;
	for (size_t i = 0; i < s->processes.n; i++) {
		const struct process *p = &s->processes.list[i];
		const struct job_view *other =
			p->role == PROCESS_WORKER && p->job && !p->seat ? jobs_find(&s->jobs, p->job) : NULL;

		if (other && other != v && case_results_same(other, v))
			return true; /* the end of its run wakes us */
	}
	return false;
}

/* Return true if the job waits for nothing but a slot. */
static bool may_start(struct schedule *s, const struct job_view *v, double now)
{
	return v->state == JOB_READY && v->crashes < s->config->node.attempts &&
	       !process_table_find(&s->processes, PROCESS_WORKER, v->id, NULL) &&
	       !schedule_is_before(s, v->not_before, READY_WAIT_LONGEST, now) && !waits_for_result(s, v);
}

int schedule_count_waiting(struct schedule *s, double now)
{
	int n = 0;

	for (size_t i = 0; i < s->jobs.n_open; i++)
		n += may_start(s, s->jobs.open[i], now);
	return n;
}

/* Return the idle slot whose worker has read the images of this job for another result; NULL: none. */
static struct slot *slot_with_images(struct schedule *s, const struct job_view *v)
{
	return v->other.of > 0 ? slots_find_idle_with(&s->slots, v->other.of) : NULL;
}

static bool starts_before(struct schedule *s, const struct job_view *a, const struct job_view *b)
{
	bool prepared = slot_with_images(s, a), other = slot_with_images(s, b);

	if (a->priority != b->priority)
		return a->priority > b->priority;
	return prepared != other ? prepared : a->completed_seq < b->completed_seq;
}

/* Return the ready job with the highest priority, among equals one whose images a worker has just read, otherwise the one that
 * was complete first; NULL: none may start now. */
static const struct job_view *first_ready(struct schedule *s, double now)
{
	const struct job_view *first = NULL;

	for (size_t i = 0; i < s->jobs.n_open; i++) {
		const struct job_view *v = s->jobs.open[i];

		if (may_start(s, v, now) && (!first || starts_before(s, v, first)))
			first = v;
	}
	return first;
}

/* The number of the message is 1 if the worker may keep what it reads for the next result of the same images. */
static bool send_job(const struct schedule *s, const struct process *p, const struct job_view *v)
{
	const struct worker_message m = {.kind = WORKER_JOB,
					 .job = v->id,
					 .attempt = v->started_seq,
					 .number = !p->seat && case_results_follow(&s->jobs, v)};

	return worker_ipc_send_message(p->ipc_fd, &m, false);
}

/* Assign a job to an idle worker: append `started` to the journal, then send the job. false: the journal could not be written;
 * assign no more jobs now. */
static bool assign_job(struct schedule *s, const struct slot *slot, struct process *p, const struct job_view *v, double now)
{
	int64_t job = v->id;
	char device[96];
	int id = slot->id;
	json_t *detail;

	snprintf(device, sizeof(device), "%s", slot->device);
	detail = json_pack("{s:o, s:i}", "device", event_json_text(device), "attempt", v->attempts + 1);
	if (slot->seat)
		json_object_set_new(detail, "pilot", event_json_text(slot->pilot));
	if (!schedule_append_event(s, v, EVENT_STARTED, detail, now))
		return false;
	v = jobs_find(&s->jobs, job);
	if (!v || !send_job(s, p, v)) {
		update_slot(s, id, SLOT_STOPPING, 0, NULL);
		process_stop(p, s->clock, STOP_GRACE);
		interrupt_job(s, job, "its worker ended before the job started", now);
		return true;
	}
	p->job = job;
	p->cancelled = false;
	slots_find(&s->slots, id)->images = p->seat ? 0 : v->other.of > 0 ? v->other.of : v->id;
	update_slot(s, id, SLOT_ASSIGNED, 0, NULL);
	return true;
}

static void assign_jobs(struct schedule *s, double now)
{
	struct slot *slot, *with;
	const struct job_view *v;
	struct process *p;

	while ((slot = slots_find_idle(&s->slots))) {
		v = first_ready(s, now);
		if (!v)
			return;
		with = slot_with_images(s, v);
		slot = with ? with : slot;
		p = process_table_of_slot(&s->processes, slot->id);
		if (!p || p->kill_at > 0)
			update_slot(s, slot->id, SLOT_STOPPING, 0, NULL);
		else if (!assign_job(s, slot, p, v, now))
			return;
	}
}

/* ---- messages of workers ---- */

static void on_ready(struct schedule *s, int id, const char *device)
{
	const struct slot *slot = slots_find(&s->slots, id);

	if (!slot || slot->state != SLOT_STARTING)
		return;
	log_event(LOG_NOTICE, slot->disabled ? "device-recovered" : "device-ready", "device=%s", log_quote(device));
	update_slot(s, id, SLOT_READY, 0, device);
}

/* Return true if this attempt of a job was given to the pilot that reports it. The ID is that of its secret. */
static bool is_attempt_of(const struct job_view *v, const struct worker_message *m)
{
	return v && v->state == JOB_RUNNING && v->started_seq == m->attempt && !strcmp(v->pilot, m->pilot);
}

/* A pilot is connected to a seat; it may still have a case. If the connection that it had before is not known to be lost, it is
 * now: the process that holds it must not write to the outbox any more. */
static void on_seat_ready(struct schedule *s, struct process *p, const struct worker_message *m)
{
	const struct job_view *v = m->job ? jobs_find(&s->jobs, m->job) : NULL;
	struct process *other = m->job ? process_table_find(&s->processes, PROCESS_WORKER, m->job, NULL) : NULL;
	struct slot *slot = slots_find(&s->slots, p->slot);

	if (!slot || slot->state != SLOT_STARTING)
		return;
	snprintf(slot->pilot, sizeof(slot->pilot), "%s", m->pilot);
	schedule_pilot_refused(s, m->pilot, NULL);
	if (m->job && (!is_attempt_of(v, m) || (other && !other->seat))) {
		worker_ipc_send(p->ipc_fd, WORKER_FORGET, m->job, 0, NULL, false);
		return; /* READY comes again without a case */
	}
	on_ready(s, p->slot, m->text);
	if (!m->job)
		return;
	if (other) {
		other->job = 0;
		update_slot(s, other->slot, SLOT_STOPPING, 0, NULL);
		process_kill(other, s->clock);
	}
	log_event(LOG_NOTICE, "job-adopted", "job=%lld device=%s", (long long)m->job, log_quote(m->text));
	schedule_pilot_returned(s, v);
	p->job = m->job;
	p->cancelled = false;
	update_slot(s, p->slot, SLOT_ASSIGNED, 0, NULL);
	if (!send_job(s, p, v))
		process_stop(p, s->clock, STOP_GRACE);
}

void schedule_cancel_seat(struct schedule *s, struct process *p)
{
	(void)s;
	if (!p->cancelled)
		p->cancelled = worker_ipc_send(p->ipc_fd, WORKER_FORGET, p->job, 0, NULL, false);
}

bool schedule_end_pilot(struct schedule *s, const char *id)
{
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct slot *slot = &s->slots.list[i];
		struct process *p = process_table_of_slot(&s->processes, slot->id);

		if (!slot->seat || slot->state != SLOT_IDLE || strcmp(slot->pilot, id) != 0 || !p)
			continue;
		update_slot(s, slot->id, SLOT_STOPPING, 0, NULL);
		return worker_ipc_send(p->ipc_fd, WORKER_END, 0, 0, NULL, false);
	}
	return false;
}

static void on_broken(struct schedule *s, struct process *p, const char *reason, double now)
{
	const struct job_view *v = jobs_find(&s->jobs, p->job);
	int64_t job = p->job;

	update_slot(s, p->slot, SLOT_DISABLED, 0, reason);
	p->job = 0;
	leave_job(s, job);
	if (p->seat && v && v->state == JOB_RUNNING)
		schedule_pilot_gone(s, v, reason, now);
	else
		interrupt_job(s, job, reason, now);
}

/* The pilot does not compute the case any more, and will not return: no lease is to be waited for. */
static void on_left(struct schedule *s, struct process *p, const char *reason, double now)
{
	int64_t job = p->job;

	const struct job_view *v = jobs_find(&s->jobs, job);

	update_slot(s, p->slot, SLOT_STOPPING, 0, NULL);
	p->job = 0;
	leave_job(s, job);
	if (v && v->attempts >= s->config->node.attempts + LEFT_MAX)
		schedule_crashed(s, job, reason, now);
	else
		interrupt_job(s, job, reason, now);
}

static void on_unanswered(struct schedule *s, const struct worker_message *m)
{
	log_event(LOG_WARNING, "pilot-unanswered", "pilot=%s reason=%s", log_quote(m->pilot), log_quote(m->text));
	if (s->n_unanswered < SLOTS_SEATS_MAX)
		snprintf(s->unanswered[s->n_unanswered++], sizeof(s->unanswered[0]), "%s", m->pilot);
}

static void on_message(struct schedule *s, struct process *p, const struct worker_message *m, double now)
{
	if (p->seat && m->kind == WORKER_READY) {
		on_seat_ready(s, p, m);
		return;
	}
	if (p->seat && m->kind == WORKER_UNANSWERED) {
		on_unanswered(s, m);
		return;
	}
	if (m->job != p->job)
		return; /* the message is about a job that is no longer assigned to this worker */
	switch (m->kind) {
	case WORKER_COUNTED:
		apply_count(s, p->slot, m->number, m->text);
		process_stop(p, s->clock, STOP_GRACE); /* normally it ends by itself; it may hang in the driver */
		break;
	case WORKER_READY:
		on_ready(s, p->slot, m->text);
		break;
	case WORKER_REFUSED:
		update_slot(s, p->slot, SLOT_DISABLED, 0, m->text);
		process_stop(p, s->clock, STOP_GRACE);
		break;
	case WORKER_ALIVE:
		update_slot(s, p->slot, SLOT_ALIVE, 0, NULL);
		break;
	case WORKER_DONE:
		leave_job(s, p->job);
		p->job = 0;
		if (p->kill_at == 0) /* otherwise it has already been asked to end */
			update_slot(s, p->slot, SLOT_DONE, m->number, NULL);
		break;
	case WORKER_BROKEN:
		on_broken(s, p, m->text, now);
		process_stop(p, s->clock, STOP_GRACE);
		break;
	case WORKER_LEFT:
		on_left(s, p, m->text, now);
		break;
	case WORKER_TURNED_AWAY:
		if (p->seat)
			schedule_pilot_refused(s, m->pilot, m->text);
		break;
	case WORKER_JOB:
	case WORKER_FORGET:
	case WORKER_END:
	case WORKER_UNANSWERED:
		break;
	}
}

/* Read and handle the messages of a worker. false: its end of the socket is closed. */
static bool read_messages(struct schedule *s, struct process *p, double now)
{
	struct worker_message m;
	int got = -1;

	while (p->ipc_fd >= 0 && (got = worker_ipc_receive(p->ipc_fd, &m, false)) > 0)
		on_message(s, p, &m, now);
	return got >= 0;
}

void schedule_worker_ended(struct schedule *s, const struct process *ended, int status, double now)
{
	struct process copy = *ended, *p = &copy;
	char how[120], reason[160];

	p->pid = 0; /* it has ended: its last messages must not cause a signal */
	read_messages(s, p, now);
	process_describe(status, how, sizeof(how));
	update_slot(s, p->slot, SLOT_ENDED, 0, how);
	if (p->job == 0 || (p->seat && !p->hung)) /* a pilot continues, and may return: schedule_pilots.c */
		return;
	leave_job(s, p->job);
	snprintf(reason, sizeof(reason), "the worker %s", how);
	if (p->hung)
		snprintf(reason, sizeof(reason), "the worker made no progress for %d s and was killed",
			 s->config->node.worker_timeout);
	if (!p->hung && (p->kill_at > 0 || (WIFEXITED(status) && WEXITSTATUS(status) == CODE_CANCELLED)))
		interrupt_job(s, p->job, "the worker was asked to stop", now);
	else
		schedule_crashed(s, p->job, reason, now);
}

/* ---- actions that are due ---- */

static void start_worker(struct schedule *s, int id)
{
	const struct slot *slot = slots_find(&s->slots, id);
	struct process p = {.role = PROCESS_WORKER, .slot = id, .threads = slots_threads(&s->slots, slot, threads_available())};
	char listen_number[16];
	const char *local[] = {"worker", slot->name, s->config_path ? "-c" : NULL, s->config_path, NULL};
	const char *seat[] = {"seat", "--listen", listen_number, s->config_path ? "-c" : NULL, s->config_path, NULL};
	const char *const *args = slot->seat ? seat : local;
	struct err err = {0};

	snprintf(listen_number, sizeof(listen_number), "%d", s->cluster_fd);
	p.seat = slot->seat;
	p.listen_fd = slot->seat ? s->cluster_fd : 0;

	if (process_table_spawn(&s->processes, &p, args, s->clock, &err) < 0) {
		log_event(LOG_ERR, "worker-not-started", "device=%s reason=%s", log_quote(slot->name), log_quote(err.msg));
		update_slot(s, id, SLOT_SPAWNED, 0,
			    NULL); /* the start failed: SPAWNED and then ENDED make the slot wait longer each time */
		update_slot(s, id, SLOT_ENDED, 0, err.msg);
	} else {
		update_slot(s, id, SLOT_SPAWNED, 0, NULL);
	}
}

static void stop_worker(struct schedule *s, int id)
{
	struct process *p = process_table_of_slot(&s->processes, id);

	update_slot(s, id, SLOT_STOPPING, 0, NULL);
	if (p)
		process_stop(p, s->clock, STOP_GRACE);
}

static void kill_hung(struct schedule *s, int id)
{
	struct process *p = process_table_of_slot(&s->processes, id);
	const struct slot *slot = slots_find(&s->slots, id);
	bool busy = slot->state == SLOT_BUSY;
	char reason[120];

	snprintf(reason, sizeof(reason), "its worker was not ready after %.0f s", SLOT_START_LIMIT);
	log_event(LOG_ERR, "worker-hung", "device=%s job=%lld", log_quote(slot->name), p ? (long long)p->job : 0LL);
	if (busy)
		update_slot(s, id, SLOT_STOPPING, 0, NULL);
	else if (device_name_is_wildcard(slot->name))
		apply_count(s, id, 0, reason);
	else
		update_slot(s, id, SLOT_DISABLED, 0, reason);
	if (p) {
		p->hung = true;
		process_kill(p, s->clock);
	}
}

/* The process does not end after SIGKILL, because it hangs in the driver. Another slot runs its job; the process can no longer
 * write to it. */
static void abandon_worker(struct schedule *s, int id, double now)
{
	static const char reason[] = "its worker hangs in the driver and cannot be killed";
	struct process *p = process_table_of_slot(&s->processes, id);
	int64_t job = p ? p->job : 0;

	update_slot(s, id, SLOT_ABANDONED, 0, reason);
	if (job) {
		p->job = 0;
		schedule_crashed(s, job, reason, now);
	}
}

static void act_on(struct schedule *s, int id, double now)
{
	double next;
	enum slot_action action = slots_next_action(slots_find(&s->slots, id), s->config->node.worker_timeout, s->clock, &next);

	if (next < s->clock + 86400)
		schedule_wake_on_clock(s, next, now);
	if (action == SLOT_START && !s->stopping)
		start_worker(s, id);
	else if (action == SLOT_STOP)
		stop_worker(s, id);
	else if (action == SLOT_KILL)
		kill_hung(s, id);
	else if (action == SLOT_ABANDON && !s->stopping)
		abandon_worker(s, id, now);
}

void schedule_read_workers(struct schedule *s, double now)
{
	for (size_t i = 0; i < s->processes.n; i++) {
		struct process *p = &s->processes.list[i];

		/* Close a socket whose other end is closed: it would stay readable as long as its process does not end. */
		if (p->role == PROCESS_WORKER && p->ipc_fd >= 0 && !read_messages(s, p, now)) {
			close(p->ipc_fd);
			p->ipc_fd = -1;
		}
	}
}

void schedule_slots_step(struct schedule *s, double now)
{
	int ids[SLOTS_MAX];
	size_t n = 0;

	slots_seats(&s->slots, s->cluster_fd > 0 && !s->stopping, s->clock);
	for (size_t i = 0; i < s->slots.n; i++)
		ids[n++] = s->slots.list[i].id;
	for (size_t i = 0; i < n; i++)
		if (slots_find(&s->slots, ids[i]))
			act_on(s, ids[i], now);
	if (!s->stopping)
		assign_jobs(s, now);
}
