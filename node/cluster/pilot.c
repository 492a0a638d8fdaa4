/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/pilot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/backoff.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/text_file.h"
#include "node/base/version.h"
#include "node/cluster/link.h"
#include "node/cluster/pilot_case.h"
#include "node/cluster/pilot_folder.h"
#include "node/cluster/transfer.h"
#include "node/process/process_table.h"
#include "node/process/worker_ipc.h"

#define DIAL_LIMIT 10.0	    /* s for a connection and its handshake */
#define DIAL_WAIT_FIRST 0.5 /* s until the next attempt; doubled each time */
#define DIAL_WAIT_CAP 10.0
#define WORKER_GRACE 5.0    /* s from SIGTERM to SIGKILL */
#define WORKER_DEATHS_MAX 3 /* deaths in a row before the worker's device is open */
#define TICK 0.5	    /* s, longest wait */
#define PINGS_IN_LEASE 6

enum phase {
	PILOT_IDLE,
	PILOT_RECEIVING, /* files of the case are missing */
	PILOT_WAITING,	 /* for the worker to be ready */
	PILOT_RUNNING,
	PILOT_FINISHED, /* the outcome is there: the node has not acknowledged it */
};

struct pilot {
	const struct pilot_conf *conf;
	char instance[33], device_name[96]; /* device_name: as the worker opened it */
	int64_t memory;			    /* of the device, bytes; 0: unknown */
	const char *device;		    /* of the worker: "cuda:0" */
	struct process_table processes;	    /* the worker */
	bool worker_ready;
	int worker_deaths;
	struct link *link;
	bool welcome; /* the node accepted this connection */
	double lease, dial_at, lost_since;
	int dials;
	uint64_t token;
	enum phase phase;
	struct pilot_case order;
	json_t *body; /* of the order */
	struct wire_message outcome;
	struct transfer_in in;
	size_t missing; /* files of the case that are not complete */
	struct transfer_out out;
	int64_t *offsets; /* of out */
	int signal_fd;
	int code; /* exit code; -1: continue */
};

static void end(struct pilot *p, int code)
{
	if (p->code < 0)
		p->code = code;
}

/* ---- the case ---- */

static int file_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct pilot *p = ctx;
	uint64_t bytes;
	const char *file = pilot_case_file(&p->order, i, &bytes);

	*ret_bytes = (int64_t)bytes;
	if (snprintf(ret_path, size, "%s/%s", p->conf->root, file) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", file);
	return 0;
}

static int object_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct pilot *p = ctx;
	const char *digest, *file = pilot_case_object(p->outcome.body, i, ret_bytes, &digest);
	char folder[400];
	int ret = pilot_case_path(p->conf->root, p->order.order.job, p->order.order.attempt, "", folder, sizeof(folder), err);

	if (ret == 0 && snprintf(ret_path, size, "%s/%s", folder, file) >= (int)size)
		ret = err_set(err, ENAMETOOLONG, "the path of %s is too long", file);
	return ret;
}

static void remove_files(const struct pilot *p)
{
	static const char *const suffixes[] = {".order", ".outcome"};
	const struct case_order *order = &p->order.order;
	char path[500];
	int64_t bytes;

	for (size_t i = 0; i < 2; i++)
		if (pilot_case_path(p->conf->root, order->job, order->attempt, suffixes[i], path, sizeof(path), NULL) == 0)
			unlink(path);
	if (p->conf->shared) /* the node removes the result */
		return;
	if (pilot_case_path(p->conf->root, order->job, order->attempt, "", path, sizeof(path), NULL) == 0)
		folder_remove(path, NULL);
	for (size_t i = 0; i < pilot_case_files(&p->order); i++)
		if (file_path((void *)p, i, path, sizeof(path), &bytes, NULL) == 0)
			unlink(path);
}

static struct process *worker(struct pilot *p)
{
	return p->processes.n > 0 ? &p->processes.list[0] : NULL;
}

static void forget_case(struct pilot *p)
{
	if (p->phase == PILOT_IDLE)
		return;
	if (p->phase == PILOT_RUNNING && worker(p)) { /* it is started again; its result is not needed */
		process_stop(worker(p), clock_seconds(), WORKER_GRACE);
		p->worker_ready = false;
		worker(p)->job = 0;
	}
	transfer_in_end(&p->in);
	transfer_out_end(&p->out);
	remove_files(p);
	pilot_case_clear(&p->order);
	wire_clear(&p->outcome);
	json_decref(p->body);
	p->body = NULL;
	free(p->offsets);
	p->offsets = NULL;
	p->phase = PILOT_IDLE;
}

/* ---- to the node ---- */

/* Send no more objects until the node reports again which of them it has. */
static void stop_sending(struct pilot *p)
{
	transfer_out_end(&p->out);
	p->out.n = p->out.index = 0;
}

static void drop_link(struct pilot *p, const char *reason)
{
	if (!p->link)
		return;
	log_event(p->code < 0 ? LOG_WARNING : LOG_INFO, "connection-ended", "node=%s reason=%s", log_quote(p->conf->address),
		  log_quote(reason));
	p->link = link_close(p->link);
	transfer_in_end(&p->in);
	stop_sending(p);
	if (p->welcome)
		p->lost_since = clock_seconds();
	p->welcome = false;
	p->dial_at = clock_seconds() + backoff_seconds(++p->dials, DIAL_WAIT_FIRST, DIAL_WAIT_CAP);
}

static void send_message(struct pilot *p, const struct wire_message *m)
{
	struct err err = {0};

	if (p->link && (link_send(p->link, m, &err) < 0 || link_flush(p->link, &err) < 0))
		drop_link(p, err.msg);
}

static void send_hello(struct pilot *p)
{
	const char *batch = getenv("SLURM_JOB_ID");
	struct wire_message m = {.kind = WIRE_HELLO, .wire = WIRE_VERSION, .version = TOMONODE_VERSION " " TOMONODE_REVISION};

	snprintf(m.name, sizeof(m.name), "%.63s", p->conf->name);
	snprintf(m.instance, sizeof(m.instance), "%s", p->instance);
	snprintf(m.device, sizeof(m.device), "%s", p->device_name);
	m.memory = p->memory;
	snprintf(m.batch, sizeof(m.batch), "%.31s", batch ? batch : "");
	m.job = p->phase == PILOT_IDLE ? 0 : p->order.order.job;
	m.attempt = p->phase == PILOT_IDLE ? 0 : p->order.order.attempt;
	send_message(p, &m);
}

static void dial(struct pilot *p)
{
	const struct link_pilot pilot = {p->conf->id, p->conf->secret, p->conf->tls};
	uint64_t now = (uint64_t)(1000 * clock_wall());
	struct err err = {0};

	p->token = p->token < now ? now : p->token + 1;
	if (link_dial(p->conf->address, &pilot, p->token, DIAL_LIMIT, &p->link, &err) == 0) {
		send_hello(p);
		return;
	}
	p->dials++;
	p->dial_at = clock_seconds() + backoff_seconds(p->dials, DIAL_WAIT_FIRST, DIAL_WAIT_CAP);
	log_event(p->dials == 1 ? LOG_WARNING : LOG_DEBUG, "node-not-reached", "reason=%s", log_quote(err.msg));
	if (clock_seconds() - p->lost_since > p->conf->patience) {
		log_event(LOG_ERR, "node-not-reached", "seconds=%.0f reason=%s", clock_seconds() - p->lost_since,
			  log_quote(err.msg));
		end(p, CODE_PEER);
	}
}

static void send_outcome(struct pilot *p)
{
	p->outcome.kind = WIRE_OUTCOME;
	send_message(p, &p->outcome);
}

static void finish(struct pilot *p, int code, const char *reason)
{
	stop_sending(p);
	wire_clear(&p->outcome);
	p->outcome.kind = WIRE_OUTCOME;
	p->outcome.job = p->order.order.job;
	p->outcome.attempt = p->order.order.attempt;
	p->outcome.code = code;
	snprintf(p->outcome.text, sizeof(p->outcome.text), "%.*s", (int)sizeof(p->outcome.text) - 1, reason);
	p->phase = PILOT_FINISHED;
	send_outcome(p);
}

/* ---- the worker ---- */

static void start_worker(struct pilot *p)
{
	static const struct process role = {.role = PROCESS_WORKER};
	const char *args[] = {"case", p->conf->root, p->device, NULL};
	struct err err = {0};

	p->worker_ready = false;
	if (process_table_spawn(&p->processes, &role, args, clock_seconds(), &err) < 0) {
		log_event(LOG_ERR, "worker-not-started", "reason=%s", log_quote(err.msg));
		end(p, CODE_FAILED);
	}
}

static int write_order(const struct pilot *p, struct err *err)
{
	const struct case_order *order = &p->order.order;
	char path[400], *text = json_dumps(p->body, JSON_COMPACT);
	int ret = text ? 0 : err_set(err, ENOMEM, "no memory for an order");

	if (ret == 0)
		ret = pilot_case_path(p->conf->root, order->job, order->attempt, "", path, sizeof(path), err);
	if (ret == 0)
		ret = folder_make(path, err);
	if (ret == 0)
		ret = folder_empty(path, err);
	if (ret == 0)
		ret = pilot_case_path(p->conf->root, order->job, order->attempt, ".order", path, sizeof(path), err);
	if (ret == 0)
		ret = text_file_write(path, text, strlen(text), err);
	free(text);
	return ret;
}

/* Give the case to the worker if both are ready. */
static void start_case(struct pilot *p)
{
	struct worker_message m = {.kind = WORKER_JOB, .job = p->order.order.job, .attempt = p->order.order.attempt};
	struct err err = {0};

	if (p->phase != PILOT_WAITING || !p->worker_ready || !worker(p))
		return;
	if (write_order(p, &err) < 0) {
		finish(p, err.code, err.msg);
		return;
	}
	if (!worker_ipc_send_message(worker(p)->ipc_fd, &m, false))
		return; /* it has ended: the next one gets the case */
	worker(p)->job = m.job;
	p->phase = PILOT_RUNNING;
}

static int read_outcome(struct pilot *p, struct err *err)
{
	const struct case_order *order = &p->order.order;
	struct wire_message m;
	char path[400], *text = NULL;
	uint64_t bytes;
	size_t n;
	int ret = pilot_case_path(p->conf->root, order->job, order->attempt, ".outcome", path, sizeof(path), err);

	if (ret == 0)
		ret = text_file_read(path, WIRE_CASE_MAX, "outcome", &text, &n, err);
	if (ret == 0)
		ret = wire_decode(WIRE_OUTCOME, text, n, &m, err);
	free(text);
	if (ret < 0)
		return ret;
	wire_clear(&p->outcome);
	p->outcome = m;
	return m.code == 0 && pilot_case_objects(m.body, order->job, &bytes, err) < 0 ? -err->code : 0;
}

static void on_done(struct pilot *p, const struct worker_message *m)
{
	struct err err = {0};

	if (p->phase != PILOT_RUNNING || m->job != p->order.order.job)
		return;
	worker(p)->job = 0;
	if (m->number != 0) /* as on a disk that has no room for the outcome either */
		err_set(&err, m->number, "%s", m->text);
	if (err.code || read_outcome(p, &err) < 0) {
		finish(p, err.code == ENOSPC || err.code == EDQUOT ? err.code : EIO, err.msg);
		return;
	}
	p->phase = PILOT_FINISHED;
	send_outcome(p);
}

static void on_worker_ready(struct pilot *p, const char *name, int mib)
{
	p->memory = (int64_t)mib << 20;
	p->worker_ready = true;
	p->worker_deaths = 0;
	if (!p->device_name[0])
		log_event(LOG_NOTICE, "device-ready", "device=%s", log_quote(name));
	snprintf(p->device_name, sizeof(p->device_name), "%.95s", name);
	start_case(p);
}

static void on_worker_message(struct pilot *p, const struct worker_message *m)
{
	struct wire_message progress = {.kind = WIRE_PROGRESS,
					.job = m->job,
					.attempt = p->order.order.attempt,
					.fraction = fmin(fmax(m->number / 1000.0, 0), 1)};

	switch (m->kind) {
	case WORKER_COUNTED:
		p->device = m->number > 0 || strcmp(p->device, "auto") != 0 ? "cuda:0" : "cpu";
		break;
	case WORKER_READY:
		on_worker_ready(p, m->text, m->number);
		break;
	case WORKER_REFUSED:
		log_event(LOG_CRIT, "device-refused", "device=%s reason=%s", log_quote(p->device), log_quote(m->text));
		end(p, CODE_DEVICE);
		break;
	case WORKER_ALIVE:
		snprintf(progress.text, sizeof(progress.text), "%.60s", m->text);
		if (p->phase == PILOT_RUNNING && p->welcome && m->job == p->order.order.job)
			send_message(p, &progress);
		break;
	case WORKER_DONE:
		on_done(p, m);
		break;
	case WORKER_BROKEN:
		log_event(LOG_CRIT, "device-failed", "device=%s reason=%s", log_quote(p->device), log_quote(m->text));
		if (p->phase == PILOT_RUNNING)
			finish(p, EHWPOISON, m->text);
		break;
	default:
		break;
	}
}

static void read_worker(struct pilot *p)
{
	struct worker_message m;

	while (worker(p) && worker(p)->ipc_fd >= 0 && worker_ipc_receive(worker(p)->ipc_fd, &m, false) > 0)
		on_worker_message(p, &m);
}

static void reap_worker(struct pilot *p)
{
	struct process ended;
	char how[120], reason[240];
	int status;

	read_worker(p);
	if (!process_table_reap(&p->processes, &ended, &status))
		return;
	close(ended.ipc_fd);
	process_describe(status, how, sizeof(how));
	log_event(LOG_DEBUG, "process-ended", "role=case pid=%ld how=%s", (long)ended.pid, log_quote(how));
	if (p->phase == PILOT_RUNNING && ended.job != 0) {
		snprintf(reason, sizeof(reason), "the worker of pilot %.60s %s", p->conf->name, how);
		finish(p, EIO, reason);
	}
	if (p->phase == PILOT_FINISHED && p->outcome.code == EHWPOISON)
		return; /* the pilot ends when the node knows */
	if (!p->worker_ready && ended.kill_at == 0 && WIFSIGNALED(status) && ++p->worker_deaths >= WORKER_DEATHS_MAX) {
		log_event(LOG_CRIT, "device-failed", "device=%s reason=%s", log_quote(p->device), log_quote(how));
		end(p, CODE_DEVICE);
	}
	if (p->code < 0)
		start_worker(p);
}

/* ---- from the node ---- */

static void send_have(struct pilot *p)
{
	struct wire_message m = {.kind = WIRE_HAVE, .job = p->order.order.job, .attempt = p->order.order.attempt};
	struct err err = {0};

	m.n_offsets = p->conf->shared ? 0 : pilot_case_files(&p->order);
	if (transfer_have(file_path, p, m.n_offsets, "", &m.offsets, &p->missing, &err) < 0) {
		finish(p, err.code, err.msg);
		return;
	}
	p->phase = p->missing == 0 ? PILOT_WAITING : PILOT_RECEIVING;
	send_message(p, &m);
	free(m.offsets);
	start_case(p);
}

/* The folders of flat fields: flatfields/NUMBER of each. */
static int make_folders(const struct pilot *p, struct err *err)
{
	char path[500];
	int ret = 0;

	for (size_t i = 0; ret == 0 && !p->conf->shared && i < p->order.n_flatfields; i++) {
		snprintf(path, sizeof(path), "%s/%s", p->conf->root, p->order.flatfields[i].file);
		*strrchr(path, '/') = '\0';
		ret = folder_make(path, err);
	}
	return ret;
}

static void on_case(struct pilot *p, const struct wire_message *m)
{
	struct err err = {0};

	if (p->phase != PILOT_IDLE && (m->job != p->order.order.job || m->attempt != p->order.order.attempt))
		forget_case(p);
	if (p->phase == PILOT_FINISHED)
		send_outcome(p);
	if (p->phase == PILOT_RUNNING || p->phase == PILOT_WAITING || p->phase == PILOT_FINISHED)
		return;
	if (p->phase == PILOT_IDLE) {
		if (pilot_case_decode(m->body, m->job, m->attempt, &p->order, &err) < 0) {
			drop_link(p, err.msg);
			return;
		}
		p->body = json_incref(m->body);
		p->phase = PILOT_RECEIVING;
		log_event(LOG_INFO, "case-received", "job=%lld attempt=%lld files=%zu", (long long)m->job, (long long)m->attempt,
			  pilot_case_files(&p->order));
	}
	if (m->shared != p->conf->shared)
		finish(p, EINVAL,
		       m->shared ? "the node has shared_spool, and this pilot was started without --spool"
				 : "this pilot was started with --spool, and the node has no shared_spool");
	else if (make_folders(p, &err) < 0)
		finish(p, err.code, err.msg);
	else
		send_have(p);
}

/* ret: of transfer_in_begin() or transfer_in_data(). After the last file the case is complete. */
static void after_data(struct pilot *p, int ret, struct err *err)
{
	int64_t *offsets = NULL;

	if (ret == 1 && p->missing > 1) {
		p->missing--;
		ret = 0;
	}
	if (ret == 0)
		return;
	if (ret == 1) /* all have come: are they all that there should be? */
		ret = transfer_have(file_path, p, pilot_case_files(&p->order), "", &offsets, &p->missing, err);
	free(offsets);
	if (ret < 0) {
		finish(p, err->code, err->msg);
	} else if (p->missing == 0) {
		p->phase = PILOT_WAITING;
		start_case(p);
	}
}

static void on_file(struct pilot *p, const struct wire_message *m)
{
	char path[500];
	int64_t bytes;
	struct err err = {0};

	if (p->phase != PILOT_RECEIVING)
		return; /* the data of a case that failed here */
	if ((size_t)m->index >= pilot_case_files(&p->order))
		drop_link(p, "a file that is not of the case");
	else if (file_path(p, (size_t)m->index, path, sizeof(path), &bytes, &err) < 0)
		finish(p, err.code, err.msg);
	else
		after_data(p, transfer_in_begin(&p->in, path, m->offset, bytes, &err), &err);
}

static void on_data(struct pilot *p, const void *bytes, size_t n)
{
	struct err err = {0};

	if (p->phase == PILOT_RECEIVING)
		after_data(p, transfer_in_data(&p->in, bytes, n, false, &err), &err);
}

static void on_have(struct pilot *p, struct wire_message *m)
{
	size_t n = json_array_size(json_object_get(p->outcome.body, "objects"));

	if (p->phase != PILOT_FINISHED || p->outcome.code != 0 || m->job != p->order.order.job || m->n_offsets != n)
		return;
	transfer_out_end(&p->out);
	free(p->offsets);
	p->offsets = m->offsets;
	m->offsets = NULL;
	p->out = (struct transfer_out){.n = n, .offsets = p->offsets, .file = object_path, .ctx = p, .fd = -1};
}

static bool is_of_case(const struct pilot *p, const struct wire_message *m)
{
	return p->phase != PILOT_IDLE && m->job == p->order.order.job && m->attempt == p->order.order.attempt;
}

static void on_ack(struct pilot *p, const struct wire_message *m)
{
	bool broken = p->outcome.code == EHWPOISON;

	if (!is_of_case(p, m) || p->phase != PILOT_FINISHED)
		return;
	forget_case(p);
	if (broken)
		end(p, CODE_DEVICE);
}

static void on_cancel(struct pilot *p, const struct wire_message *m)
{
	struct wire_message reply = {
		.kind = WIRE_OUTCOME, .job = m->job, .attempt = m->attempt, .code = ECANCELED, .text = "cancelled"};

	if (is_of_case(p, m)) {
		log_event(LOG_NOTICE, "case-cancelled", "job=%lld", (long long)m->job);
		forget_case(p);
	}
	send_message(p, &reply);
}

/* A pilot of another version, or one that is blocked, is of no use to the node. All other reasons may pass, such as a full disk
 * of the node. */
static void on_refused(struct pilot *p, const struct wire_message *m)
{
	log_event(LOG_ERR, "pilot-refused", "reason=%s", log_quote(m->text));
	if (m->code == EALREADY && p->token < (uint64_t)m->last) /* the clock of this machine, or of the last pilot, is wrong */
		p->token = (uint64_t)m->last;
	if (m->code == EPROTO || m->code == EBADMSG || m->code == EPERM || clock_seconds() - p->lost_since > p->conf->patience)
		end(p, CODE_PEER);
	drop_link(p, m->text);
}

static void on_message(struct pilot *p, struct wire_message *m, const void *bytes, size_t n)
{
	if (!p->welcome && m->kind != WIRE_WELCOME && m->kind != WIRE_REFUSED) {
		drop_link(p, "the node did not begin with WELCOME");
		return;
	}
	switch (m->kind) {
	case WIRE_WELCOME:
		p->welcome = true;
		p->dials = 0;
		p->lease = (double)m->lease / 1000;
		log_event(LOG_NOTICE, "connected", "node=%s device=%s", log_quote(p->conf->address), log_quote(p->device_name));
		break;
	case WIRE_REFUSED:
		on_refused(p, m);
		break;
	case WIRE_CASE:
		on_case(p, m);
		break;
	case WIRE_FILE:
		on_file(p, m);
		break;
	case WIRE_DATA:
		on_data(p, bytes, n);
		break;
	case WIRE_HAVE:
		on_have(p, m);
		break;
	case WIRE_ACK:
		on_ack(p, m);
		break;
	case WIRE_CANCEL:
		on_cancel(p, m);
		break;
	case WIRE_PING:
		send_message(p, &(struct wire_message){.kind = WIRE_PONG});
		break;
	case WIRE_END:
		log_event(LOG_NOTICE, "ended-by-node", "reason=%s", log_quote(m->text));
		end(p, CODE_OK);
		break;
	default:
		break;
	}
}

static void read_node(struct pilot *p)
{
	struct wire_message m;
	const void *bytes;
	struct err err = {0};
	size_t n;
	int got = 1;

	while (p->link && p->code < 0 && (got = link_receive(p->link, &m, &bytes, &n, &err)) > 0) {
		on_message(p, &m, bytes, n);
		wire_clear(&m);
	}
	if (p->link && got < 0)
		drop_link(p, err.msg);
}

static bool is_sending(const struct pilot *p)
{
	return p->phase == PILOT_FINISHED && p->out.offsets && p->out.index < p->out.n;
}

/* Send what can be sent; a sign of life if nothing was sent for a while. */
static void write_node(struct pilot *p)
{
	struct err err = {0};
	int ret = 0;

	if (is_sending(p))
		ret = transfer_out_step(&p->out, p->link, &err);
	if (ret < 0) {
		finish(p, EIO, err.msg);
		return;
	}
	if (p->welcome && clock_seconds() - link_sent(p->link) > p->lease / PINGS_IN_LEASE)
		send_message(p, &(struct wire_message){.kind = WIRE_PING});
	if (p->link && link_flush(p->link, &err) < 0)
		drop_link(p, err.msg);
	else if (p->link && clock_seconds() - link_heard(p->link) > (p->welcome ? p->lease : DIAL_LIMIT))
		drop_link(p, "the node is silent");
}

/* ---- the loop ---- */

static void read_signals(struct pilot *p)
{
	struct signalfd_siginfo info;

	while (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			end(p, CODE_OK);
}

static void wait_for_work(struct pilot *p)
{
	struct pollfd fds[3] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = -1}, {.fd = -1, .events = POLLIN}};
	double wait = TICK;

	if (p->link)
		fds[1] = (struct pollfd){.fd = link_fd(p->link),
					 .events = (short)(link_events(p->link) | (is_sending(p) ? POLLOUT : 0))};
	else if (p->worker_ready || p->phase != PILOT_IDLE)
		wait = fmin(fmax(p->dial_at - clock_seconds(), 0), TICK);
	if (worker(p) && worker(p)->ipc_fd >= 0)
		fds[2].fd = worker(p)->ipc_fd;
	poll(fds, 3, (int)ceil(1000 * wait));
	if (fds[2].revents & (POLLHUP | POLLERR) && !(fds[2].revents & POLLIN))
		usleep(10000); /* its end will be reported in a moment */
}

static void loop(struct pilot *p)
{
	start_worker(p);
	while (p->code < 0) {
		if (!p->link && p->device_name[0] && p->dial_at <= clock_seconds())
			dial(p);
		wait_for_work(p);
		read_signals(p);
		process_table_tick(&p->processes, clock_seconds());
		reap_worker(p);
		read_node(p);
		if (p->link)
			write_node(p);
	}
}

static const char *const folders[] = {"instances", "work", "flatfields"};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

static int prepare_folder(const struct pilot_conf *conf, struct err *err)
{
	char path[400];
	int ret = conf->shared ? 0 : folder_create(conf->root, err);

	pilot_clean(conf, false);
	for (size_t i = 0; ret == 0 && !conf->shared && i < N_FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/%s", conf->root, folders[i]);
		ret = folder_make(path, err);
	}
	return ret;
}

void pilot_clean(const struct pilot_conf *conf, bool all)
{
	char path[400];

	for (size_t i = 0; !conf->shared && i < N_FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/%s", conf->root, folders[i]);
		pilot_folder_remove(path);
	}
	if (all)
		rmdir(conf->root);
}

static int begin(struct pilot *p, struct err *err)
{
	unsigned char bytes[16];
	sigset_t mask;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(err, EIO, "no random bytes");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(p->instance + 2 * i, 3, "%02x", bytes[i]);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	p->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	p->processes.lock_fd = -1;
	p->processes.notify_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (p->signal_fd < 0 || p->processes.notify_fd < 0)
		return err_set(err, errno, "cannot set up signals: %s", strerror(errno));
	return prepare_folder(p->conf, err);
}

int pilot_run(const struct pilot_conf *conf)
{
	struct pilot p = {.conf = conf,
			  .device = conf->device,
			  .signal_fd = -1,
			  .in.fd = -1,
			  .out.fd = -1,
			  .lost_since = clock_seconds(),
			  .code = -1};
	struct err err = {0};

	if (begin(&p, &err) < 0) {
		log_event(LOG_CRIT, "pilot-not-started", "reason=%s", log_quote(err.msg));
		end(&p, CODE_FAILED);
	} else {
		loop(&p);
	}
	if (worker(&p)) {
		process_kill(worker(&p), clock_seconds());
		waitpid(worker(&p)->pid, NULL, 0);
	}
	forget_case(&p);
	link_close(p.link);
	if (p.signal_fd >= 0)
		close(p.signal_fd);
	return p.code;
}
