/* SPDX-License-Identifier: Apache-2.0 */
/* pilot_node.c - the connection to the node: dial, the messages in both directions, and what each of them changes.
 *
 * - A lost connection changes no phase: the worker continues, and the next HELLO names the case.
 * - The outcome is sent again on each connection until the node acknowledges it.
 * - After pilot_send() and all that call it, p->link may be NULL.
 */
#include "node/cluster/pilot_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/backoff.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/version.h"

#define DIAL_WAIT_FIRST 0.5 /* s until the next attempt; doubled each time */
#define DIAL_WAIT_CAP 10.0
#define WARN_EVERY 30.0 /* s between two warnings that the node is not reached */
#define PINGS_IN_LEASE 6
#define END_LIMIT 2.0 /* s to tell the node that this pilot ends */

/* ---- to the node ---- */

/* Send no more objects until the node reports again which of them it has. */
static void stop_sending(struct pilot *p)
{
	transfer_out_end(&p->out);
	p->out.n = p->out.index = 0;
}

/* Dial again later, or end: the node was not reached, or did not accept this pilot. */
static void plan_dial(struct pilot *p, const char *reason)
{
	double now = clock_seconds(), left = p->lost_since + p->conf->patience - now;
	double wait = backoff_seconds(++p->dials, DIAL_WAIT_FIRST, DIAL_WAIT_CAP);
	bool warn = p->warned_at == 0 || now - p->warned_at >= WARN_EVERY;

	p->dial_at = now + wait;
	if (p->code >= 0)
		return;
	if (left < 0) {
		log_event(LOG_ERR, "node-given-up", "node=%s seconds=%.0f attempts=%d reason=%s", log_quote(p->conf->address),
			  now - p->lost_since, p->dials, log_quote(reason));
		pilot_end(p, CODE_PEER, "");
		return;
	}
	log_event(warn ? LOG_WARNING : LOG_DEBUG, "node-not-reached",
		  "node=%s attempt=%d retry_seconds=%.1f give_up_seconds=%.0f reason=%s", log_quote(p->conf->address), p->dials,
		  wait, left, log_quote(reason));
	p->warned_at = warn ? now : p->warned_at;
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
	if (!p->welcome) {
		plan_dial(p, reason);
		return;
	}
	p->welcome = false;
	p->lost_since = clock_seconds();
	p->dial_at = p->lost_since + backoff_seconds(++p->dials, DIAL_WAIT_FIRST, DIAL_WAIT_CAP);
}

void pilot_send(struct pilot *p, const struct wire_message *m)
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
	pilot_send(p, &m);
}

void pilot_dial(struct pilot *p)
{
	const struct link_pilot pilot = {p->conf->id, p->conf->secret, p->conf->tls};
	uint64_t now = (uint64_t)(1000 * clock_wall());
	struct err err = {0};

	p->token = p->token < now ? now : p->token + 1;
	if (link_dial(p->conf->address, &pilot, p->token, PILOT_DIAL_LIMIT, &p->link, &err) == 0) {
		send_hello(p);
		return;
	}
	plan_dial(p, err.msg);
}

void pilot_send_outcome(struct pilot *p)
{
	p->outcome.kind = WIRE_OUTCOME;
	pilot_send(p, &p->outcome);
}

void pilot_finish(struct pilot *p, int code, const char *reason)
{
	stop_sending(p);
	wire_clear(&p->outcome);
	p->outcome.kind = WIRE_OUTCOME;
	p->outcome.job = p->order.order.job;
	p->outcome.attempt = p->order.order.attempt;
	p->outcome.code = code;
	snprintf(p->outcome.text, sizeof(p->outcome.text), "%.*s", (int)sizeof(p->outcome.text) - 1, reason);
	p->phase = PILOT_FINISHED;
	pilot_send_outcome(p);
}

/* ---- from the node ---- */

static void send_have(struct pilot *p)
{
	struct wire_message m = {.kind = WIRE_HAVE, .job = p->order.order.job, .attempt = p->order.order.attempt};
	struct err err = {0};

	m.n_offsets = p->conf->shared ? 0 : pilot_case_files(&p->order);
	if (transfer_have(pilot_file_path, p, m.n_offsets, "", &m.offsets, &p->missing, &err) < 0) {
		pilot_finish(p, err.code, err.msg);
		return;
	}
	p->phase = p->missing == 0 ? PILOT_WAITING : PILOT_RECEIVING;
	pilot_send(p, &m);
	free(m.offsets);
	pilot_start_case(p);
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
		pilot_forget_case(p);
	if (p->phase == PILOT_FINISHED)
		pilot_send_outcome(p);
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
		pilot_finish(p, EINVAL,
			     m->shared ? "the node has shared_spool, and this pilot was started without --spool"
				       : "this pilot was started with --spool, and the node has no shared_spool");
	else if (make_folders(p, &err) < 0)
		pilot_finish(p, err.code, err.msg);
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
		ret = transfer_have(pilot_file_path, p, pilot_case_files(&p->order), "", &offsets, &p->missing, err);
	free(offsets);
	if (ret < 0) {
		pilot_finish(p, err->code, err->msg);
	} else if (p->missing == 0) {
		p->phase = PILOT_WAITING;
		pilot_start_case(p);
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
	else if (pilot_file_path(p, (size_t)m->index, path, sizeof(path), &bytes, &err) < 0)
		pilot_finish(p, err.code, err.msg);
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
	p->out = (struct transfer_out){.n = n, .offsets = p->offsets, .file = pilot_object_path, .ctx = p, .fd = -1};
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
	pilot_forget_case(p);
	if (broken)
		pilot_end(p, CODE_DEVICE, "its device failed");
}

static void on_cancel(struct pilot *p, const struct wire_message *m)
{
	struct wire_message reply = {
		.kind = WIRE_OUTCOME, .job = m->job, .attempt = m->attempt, .code = ECANCELED, .text = "cancelled"};

	if (is_of_case(p, m)) {
		log_event(LOG_NOTICE, "case-cancelled", "job=%lld", (long long)m->job);
		pilot_forget_case(p);
	}
	pilot_send(p, &reply);
}

/* A pilot of another version, or one that is blocked, is of no use to the node. All other reasons may pass, such as a full disk
 * of the node. */
static void on_refused(struct pilot *p, const struct wire_message *m)
{
	log_event(LOG_ERR, "pilot-refused", "reason=%s", log_quote(m->text));
	if (m->code == EALREADY && p->token < (uint64_t)m->last) /* the clock of this machine, or of the last pilot, is wrong */
		p->token = (uint64_t)m->last;
	if (m->code == EPROTO || m->code == EBADMSG || m->code == EPERM || clock_seconds() - p->lost_since > p->conf->patience)
		pilot_end(p, CODE_PEER, "");
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
		p->warned_at = 0;
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
		pilot_send(p, &(struct wire_message){.kind = WIRE_PONG});
		break;
	case WIRE_END:
		log_event(LOG_NOTICE, "ended-by-node", "reason=%s", log_quote(m->text));
		pilot_end(p, CODE_OK, "");
		break;
	default:
		break;
	}
}

void pilot_read_node(struct pilot *p)
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

void pilot_say_end(struct pilot *p)
{
	struct wire_message m = {.kind = WIRE_END};
	double until = clock_seconds() + END_LIMIT;
	const void *bytes;
	size_t n;

	if (!p->link || !p->welcome || !p->why[0])
		return;
	snprintf(m.text, sizeof(m.text), "%s", p->why);
	if (link_send(p->link, &m, NULL) < 0 || link_drain(p->link, END_LIMIT, NULL) < 0)
		return;
	while (clock_seconds() < until) { /* until the node closes: a close while it still sends would reset the connection */
		struct pollfd fd = {link_fd(p->link), POLLIN, 0};

		if (link_receive(p->link, &m, &bytes, &n, NULL) < 0)
			return;
		wire_clear(&m);
		poll(&fd, 1, 100);
	}
}

bool pilot_is_sending(const struct pilot *p)
{
	return p->phase == PILOT_FINISHED && p->out.offsets && p->out.index < p->out.n;
}

/* Send what can be sent; a sign of life if nothing was sent for a while. */
void pilot_write_node(struct pilot *p)
{
	struct err err = {0};
	int ret = 0;

	if (pilot_is_sending(p))
		ret = transfer_out_step(&p->out, p->link, &err);
	if (ret < 0) {
		pilot_finish(p, EIO, err.msg);
		return;
	}
	if (p->welcome && clock_seconds() - link_sent(p->link) > p->lease / PINGS_IN_LEASE)
		pilot_send(p, &(struct wire_message){.kind = WIRE_PING});
	if (p->link && link_flush(p->link, &err) < 0)
		drop_link(p, err.msg);
	else if (p->link && clock_seconds() - link_heard(p->link) > (p->welcome ? p->lease : PILOT_DIAL_LIMIT))
		drop_link(p, "the node is silent");
}
