/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode seat: the place of one pilot at the node. For the manager it is a worker like any other; it waits for a pilot to
 * connect and has the cases reconstructed by it.
 *
 * - READY is sent when a pilot is connected. If the pilot still has a case, READY names it; the manager replies with JOB
 * (continue it) or FORGET.
 * - If the connection is lost, it ends; the pilot connects again, to another seat. A pilot that is silent for cluster.lease is
 *   reported with BROKEN, so that its case goes to another device at once.
 * - SIGTERM ends it, without a word to the pilot, which continues its case and connects to the next seat: at a stop of the node,
 * too.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/text_file.h"
#include "node/process/worker_ipc.h"
#include "node/worker/cmd_worker.h"
#include "node/worker/job_run.h"
#include "node/worker/seat.h"

#define ALIVE_EVERY 0.5	   /* s between two messages WORKER_ALIVE */
#define ADMITTED_EVERY 1.0 /* s between two looks whether the pilot's secret was removed */
#define CONFIG_MAX 8000000 /* bytes of the configuration */

static bool is_stopped(void *ctx)
{
	(void)ctx;
	return work_process_stopped();
}

static bool tell_manager(const struct seat *s, enum worker_message_kind kind, const char *text)
{
	struct worker_message m = {.kind = kind, .job = s->job, .attempt = s->attempt, .number = 1};

	snprintf(m.pilot, sizeof(m.pilot), "%s", link_id(s->link));
	snprintf(m.text, sizeof(m.text), "%.299s", text);
	return worker_ipc_send_message(s->process.ipc_fd, &m, true);
}

/* ---- signs of life ---- */

static void read_manager(struct seat *s)
{
	struct worker_message m;

	while (worker_ipc_receive(s->process.ipc_fd, &m, false) > 0)
		s->cancelled = s->cancelled || (m.kind == WORKER_FORGET && m.job == s->job);
}

/* EACCES: the pilot's secret was removed; the pilot was told, and it ends. */
static int check_admitted(struct seat *s, double now, struct err *err)
{
	struct wire_message m = {.kind = WIRE_REFUSED, .code = EPERM};

	if (now - s->admitted_at < ADMITTED_EVERY)
		return 0;
	s->admitted_at = now;
	if (link_admitted(s->link, err) == 0)
		return 0;
	s->left = s->removed = true;
	snprintf(m.text, sizeof(m.text), "%s", err->msg);
	if (link_send(s->link, &m, NULL) == 0)
		link_drain(s->link, 1, NULL);
	return -EACCES;
}

/* Send what waits, and a sign of life if nothing was sent for a while. */
static int keep_alive(struct seat *s, struct err *err)
{
	double lease = s->process.config->cluster.lease, now = clock_seconds();
	int ret = check_admitted(s, now, err);

	if (ret == 0 && now - link_sent(s->link) > lease / SEAT_PINGS_IN_LEASE)
		ret = link_send(s->link, &(struct wire_message){.kind = WIRE_PING}, err);
	if (ret == 0)
		ret = link_flush(s->link, err);
	if (ret == 0 && now - link_heard(s->link) > lease)
		ret = err_set(err, ETIMEDOUT, "the pilot %s was silent for %.0f s", s->hello.name, lease);
	return ret;
}

/* 1: *ret_message is not a sign of life; 0: none. */
static int receive_message(struct seat *s, struct wire_message *ret_message, const void **ret_bytes, size_t *ret_n,
			   struct err *err)
{
	int ret = link_receive(s->link, ret_message, ret_bytes, ret_n, err);

	if (ret == 1 && ret_message->kind == WIRE_PING)
		ret = link_send(s->link, &(struct wire_message){.kind = WIRE_PONG}, err);
	else if (ret == 1 && ret_message->kind == WIRE_PONG)
		ret = 0;
	if (ret == 1 && ret_message->kind == WIRE_END) {
		s->left = true;
		ret = err_set(err, ECONNRESET, "the pilot %s ended: %.100s", s->hello.name, ret_message->text);
	}
	return ret;
}

int seat_receive(struct seat *s, struct wire_message *ret_message, const void **ret_bytes, size_t *ret_n, struct err *err)
{
	struct pollfd fds[2] = {{.fd = s->process.ipc_fd, .events = POLLIN}, {.fd = link_fd(s->link)}};
	int ret = keep_alive(s, err);

	if (ret == 0)
		ret = receive_message(s, ret_message, ret_bytes, ret_n, err);
	if (ret != 0)
		return ret;
	fds[1].events = (short)(link_events(s->link) | (s->sending ? POLLOUT : 0));
	poll(fds, 2, (int)(1000 * fmin(s->process.config->cluster.lease / SEAT_PINGS_IN_LEASE / 2, ADMITTED_EVERY)));
	if (s->job != 0)
		read_manager(s);
	return 0;
}

int seat_cancel(struct seat *s, int64_t job, int64_t attempt, struct err *err)
{
	const struct wire_message m = {.kind = WIRE_CANCEL, .job = job, .attempt = attempt};
	double until = clock_seconds() + SEAT_CANCEL_LIMIT;
	int ret = link_send(s->link, &m, err);

	s->sending = false;
	while (ret >= 0 && !work_process_stopped()) {
		struct wire_message reply = {0};
		const void *bytes;
		size_t n;

		ret = seat_receive(s, &reply, &bytes, &n, err);
		if (ret == 1 && reply.kind == WIRE_OUTCOME && reply.code == ECANCELED && reply.job == job) {
			wire_clear(&reply);
			return 0;
		}
		if (ret == 1)
			wire_clear(&reply);
		if (ret >= 0 && clock_seconds() > until)
			ret = err_set(err, ETIMEDOUT, "the pilot %s did not stop a case within %.0f s", s->hello.name,
				      SEAT_CANCEL_LIMIT);
	}
	if (ret == -ETIMEDOUT)
		tell_manager(s, WORKER_UNANSWERED, err->msg);
	return ret < 0 ? ret : err_set(err, ECONNRESET, "stopped");
}

/* ---- cases ---- */

static void report_progress(void *ctx)
{
	struct seat *s = ctx;
	static double at;

	if (clock_seconds() - at < ALIVE_EVERY)
		return;
	at = clock_seconds();
	worker_ipc_send(s->process.ipc_fd, WORKER_ALIVE, s->job, 0, NULL, false);
}

static int acknowledge_case(struct seat *s, struct err *err)
{
	const struct wire_message m = {.kind = WIRE_ACK, .job = s->job, .attempt = s->attempt};
	int ret = link_send(s->link, &m, err);

	return ret < 0 ? ret : link_flush(s->link, err);
}

/* The pilot returned a result that is not of the case: tell it, and admit no pilot of this ID any more. */
static void drop_pilot(struct seat *s, const struct err *why)
{
	struct wire_message m = {.kind = WIRE_REFUSED, .code = EPERM};
	struct err err = {0};

	log_event(LOG_CRIT, "pilot-blocked", "pilot=%s name=%s job=%lld reason=%s", log_quote(link_id(s->link)),
		  log_quote(s->hello.name), (long long)s->job, log_quote(why->msg));
	audit_refused(&(struct audit_peer){.pilot = link_id(s->link), .host = s->from}, false, why->msg);
	if (pilot_block(s->process.config->node.spool, link_id(s->link), &err) < 0)
		log_event(LOG_CRIT, "pilot-not-blocked", "pilot=%s reason=%s", log_quote(link_id(s->link)), log_quote(err.msg));
	snprintf(m.text, sizeof(m.text), "%s", why->msg);
	if (link_send(s->link, &m, NULL) == 0)
		link_drain(s->link, 1, NULL);
}

/* After the job run: 0: ready for the next case; negative: the connection is lost or of no more use. */
static int after_job(struct seat *s, enum job_run_end end, struct err *err)
{
	struct err why = {0};
	int ret;

	if (s->rejected &&
	    end != JOB_RUN_DEVICE_FAILED) { /* this process is stopped meanwhile; the pilot is blocked all the same */
		err_set(&why, EBADMSG, "its result is not of the case");
		drop_pilot(s, &why);
	}
	switch (end) {
	case JOB_RUN_RECONSTRUCTED:
	case JOB_RUN_REFUSED:
	case JOB_RUN_NOT_RUNNING:
	case JOB_RUN_STOPPED:
		ret = s->cancelled ? 0 : acknowledge_case(s, err);
		worker_ipc_send(s->process.ipc_fd, WORKER_DONE, s->job, end == JOB_RUN_RECONSTRUCTED, NULL, true);
		return ret;
	case JOB_RUN_DEVICE_FAILED:
		if (s->rejected) {
			drop_pilot(s, err);
		} else {
			acknowledge_case(s, NULL);
			link_drain(s->link, 1, NULL);
		}
		tell_manager(s, WORKER_BROKEN, err->msg);
		return -EHWPOISON;
	case JOB_RUN_JOURNAL_FAILED:
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)s->job, log_quote(err->msg));
		return -EIO;
	case JOB_RUN_LOST:
		break;
	}
	return -ECONNRESET;
}

static int do_job(struct seat *s, const struct worker_message *m, struct err *err)
{
	struct job_run_conf conf = {.process = &s->process,
				    .job = m->job,
				    .adopted = m->job == s->hello.job && m->attempt == s->hello.attempt,
				    .ctx = s,
				    .compute = seat_compute,
				    .alive = report_progress,
				    .stopped = is_stopped};
	enum job_run_end end = JOB_RUN_JOURNAL_FAILED;
	int ret;

	s->job = m->job;
	s->attempt = m->attempt;
	s->hello.job = s->hello.attempt = 0;
	s->cancelled = false;
	if (work_process_open_journal(&s->process, err) == 0)
		end = job_run(&conf, err);
	s->process.journal = journal_close(s->process.journal);
	malloc_trim(0);
	if (end == JOB_RUN_LOST && s->left)
		tell_manager(s, WORKER_LEFT, err->msg);
	else if (end == JOB_RUN_LOST && clock_seconds() - link_heard(s->link) > s->process.config->cluster.lease)
		tell_manager(s, WORKER_BROKEN, err->msg[0] ? err->msg : "the pilot was silent for the time of its lease");
	ret = after_job(s, end, err);
	s->job = s->attempt = 0;
	return ret;
}

static bool tell_ready(struct seat *s)
{
	char text[200], memory[32] = "";

	if (s->hello.memory > 0)
		snprintf(memory, sizeof(memory), " of %.0f GB", (double)s->hello.memory / 1e9);
	snprintf(text, sizeof(text), "%.60s%s, pilot %s", s->hello.device, memory, s->hello.name);
	return tell_manager(s, WORKER_READY, text);
}

/* The manager does not want the case that the pilot brought. */
static int forget_case(struct seat *s, struct err *err)
{
	int ret;

	log_event(LOG_WARNING, "late-outcome-dropped", "pilot=%s job=%lld attempt=%lld", log_quote(s->hello.name),
		  (long long)s->hello.job, (long long)s->hello.attempt);
	ret = seat_cancel(s, s->hello.job, s->hello.attempt, err);
	s->hello.job = s->hello.attempt = 0;
	return ret < 0 ? ret : tell_ready(s) ? 0 : err_set(err, ECANCELED, "the manager ended");
}

static int end_pilot(struct seat *s, struct err *err)
{
	const struct wire_message m = {.kind = WIRE_END, .text = "not needed"};

	if (link_send(s->link, &m, err) == 0)
		link_drain(s->link, 2, err);
	return err_set(err, ECANCELED, "the pilot is not needed");
}

static int on_manager(struct seat *s, struct err *err)
{
	struct worker_message m;
	int got = worker_ipc_receive(s->process.ipc_fd, &m, false);

	if (got < 0)
		return err_set(err, ECANCELED, "the manager ended");
	if (got == 0)
		return 0;
	if (m.kind == WORKER_FORGET && s->hello.job != 0)
		return forget_case(s, err);
	if (m.kind == WORKER_END)
		return end_pilot(s, err);
	return m.kind == WORKER_JOB ? do_job(s, &m, err) : 0;
}

static int work_cases(struct seat *s, struct err *err)
{
	int ret = 0;

	while (ret >= 0 && !work_process_stopped()) {
		struct wire_message m;
		const void *bytes;
		size_t n;

		ret = seat_receive(s, &m, &bytes, &n, err);
		if (ret == 1) /* between two cases nothing is expected */
			wire_clear(&m);
		if (ret >= 0)
			ret = on_manager(s, err);
	}
	return ret;
}

static int run_seat(struct seat *s)
{
	struct audit_peer pilot = {.host = s->from};
	struct err err = {0};
	bool regular;
	int ret = seat_wait(s, &err);

	if (ret < 0)
		return ret == -ECANCELED ? CODE_CANCELLED : CODE_FAILED;
	close(s->process.listen_fd);
	log_event(LOG_NOTICE, "pilot-connected", "pilot=%s name=%s device=%s job=%lld batch=%s", log_quote(link_id(s->link)),
		  log_quote(s->hello.name), log_quote(s->hello.device), (long long)s->hello.job, log_quote(s->hello.batch));
	pilot.pilot = link_id(s->link);
	audit_pilot(&pilot, true, NULL);
	s->job = s->hello.job;
	s->attempt = s->hello.attempt;
	ret = tell_ready(s) ? 0 : -ECANCELED;
	s->job = s->attempt = 0;
	if (ret == 0)
		ret = work_cases(s, &err);
	regular = work_process_stopped() || ret == -ECANCELED || (s->left && !s->removed);
	log_event(!regular  ? LOG_WARNING
		  : s->left ? LOG_NOTICE
			    : LOG_INFO,
		  "pilot-left", "pilot=%s name=%s reason=%s", log_quote(link_id(s->link)), log_quote(s->hello.name),
		  log_quote(work_process_stopped() ? "stopped" : err.msg));
	audit_pilot(&pilot, false, regular ? NULL : err.msg);
	return regular ? CODE_CANCELLED : CODE_PEER;
}

static int begin_seat(struct seat *s, struct err *err)
{
	char path[400];
	size_t n;
	int ret;

	if (s->process.ipc_fd < 0 || s->process.listen_fd < 0)
		return err_set(err, EINVAL, "--ipc FD or --listen FD is missing");
	if (s->process.config->path[0]) {
		ret = text_file_read(s->process.config->path, CONFIG_MAX, "configuration", &s->config_text, &n, err);
		if (ret < 0)
			return ret;
	}
	snprintf(path, sizeof(path), "%s/pilots", s->process.config->node.spool);
	ret = folder_make(path, err);
	if (ret == 0 && s->process.config->cluster.certificate[0]) {
		const struct cluster_conf *c = &s->process.config->cluster;
		const struct tls_conf conf = {.certificate = c->certificate,
					      .key = c->key,
					      .authorities = c->authorities,
					      .server = true,
					      .client_certificate = true};

		ret = tls_create(&conf, &s->tls, err);
	}
	return ret;
}

int cmd_seat(int argc, char **argv)
{
	struct seat s = {.stopped = work_process_stopped};
	struct err err = {0};
	int code = CODE_OK;

	if (!work_process_options(&s.process, "seat", "-c FILE --ipc FD --listen FD", 0, argc, argv, &code))
		return code;
	signal(SIGPIPE, SIG_IGN);
	work_process_catch_stop(&s.process);
	if (begin_seat(&s, &err) < 0) {
		log_event(LOG_CRIT, "seat-not-started", "reason=%s", log_quote(err.msg));
		code = CODE_FAILED;
	} else {
		code = work_process_enter_sandbox(&s.process, SANDBOX_SEAT, NULL) < 0 ? CODE_FAILED : run_seat(&s);
	}
	link_close(s.link);
	tls_free(s.tls);
	wire_clear(&s.hello);
	free(s.config_text);
	work_process_end(&s.process);
	return code;
}
