/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_commit.c - `tomonode commit JOB DESTINATION`: request storage commitment for the objects of one result that a destination
 * stored, and wait a short time for the report.
 *
 * - The transaction UID is recorded (`commit-requested`) before the request is sent. If the process dies in between, commitment
 *   is requested again at once with another UID; a report on the first one is still accepted.
 * - `commit-accepted` records until when to wait for the report. The peer may send the report on this association or on one that
 *   it opens itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/network/commit.h"
#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/deliver/cmd_deliver.h"
#include "node/deliver/commit.h"
#include "node/deliver/destination.h"
#include "node/deliver/send_process.h"
#include "node/store/event.h"

struct commitment {
	struct send_process base; /* base.send: as it was before the request */
	char transaction[DICOM_UID_SIZE];
	char who[160];	       /* job and destination, for the log */
	unsigned long refused; /* reports on this association */
};

/* Record a report that is received while this process waits. Return the DICOM status of the response. */
static uint16_t on_report(void *ctx, const struct commit_report *report)
{
	struct commitment *c = ctx;
	uint16_t status = commit_apply_report(c->base.process.journal, c->base.process.config, report, c->base.destination->aet,
					      clock_wall());

	work_process_notify(&c->base.process);
	return status;
}

/* Build the details that all events of a commitment have. NULL: no memory. */
static json_t *detail_of(const struct commitment *c, const char *status, const char *reason)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "destination", c->base.send->destination, "transaction", c->transaction,
			 "status", status, "reason", event_json_text(reason));
}

/* Record that the peer was not reached or did not accept the request. down: no association could be opened; rejected: the peer
 * rejected the association permanently. */
static int request_failed(struct commitment *c, enum deliver_outcome outcome, const char *status, const char *reason, bool down,
			  bool rejected)
{
	json_t *detail = detail_of(c, status, reason);
	bool alarm = false;
	int code;

	if (outcome == DELIVER_PERMANENT)
		return send_process_append(&c->base, EVENT_COMMIT_REFUSED, detail, clock_wall());
	if (detail)
		alarm = destination_failed(detail, c->base.destination, c->base.send,
					   (struct destination_failure){.down = down, .rejected = rejected}, clock_wall());
	code = send_process_append(&c->base, EVENT_COMMIT_REQUEST_FAILED, detail, clock_wall());
	if (code == CODE_OK && alarm)
		destination_alarm(c->base.job, c->base.send->destination, reason);
	return code;
}

/* List the objects that the destination stored; free() the list. NULL: no memory. */
static struct commit_object *list_stored(const struct commitment *c, size_t *ret_n)
{
	struct commit_object *list = calloc(c->base.view->n_objects ? c->base.view->n_objects : 1, sizeof(list[0]));
	size_t n = 0;

	for (size_t i = 0; list && i < c->base.view->n_objects; i++) {
		const struct job_object *o = &c->base.view->objects[i];

		if (c->base.send->objects[i] != SEND_STORED)
			continue;
		snprintf(list[n].sop_class, sizeof(list[n].sop_class), "%s", o->sop_class);
		snprintf(list[n++].sop_instance, sizeof(list[0].sop_instance), "%s", o->sop_instance);
	}
	*ret_n = n;
	return list;
}

static void on_refused(void *ctx, uint16_t status, const char *why)
{
	struct commitment *c = ctx;

	commit_log_refused(&c->refused, c->who, status, why);
}

/* Return true if no report on this transaction is recorded, and no newer transaction. Another process may record the report. */
static bool is_open(struct commitment *c)
{
	const struct job_send *send;

	if (jobs_refresh(&c->base.jobs, c->base.process.journal, c->base.job, NULL) < 0)
		return false;
	c->base.view = jobs_find(&c->base.jobs, c->base.job);
	send = job_view_find_send(c->base.view, c->base.process.argument[1]);
	return send && !strcmp(send->transaction, c->transaction);
}

/* Poll the association and the journal once a second, until the report is recorded or the time is over. */
static void wait_for_report(struct commitment *c, struct scu *scu, const struct commit_handler *handler)
{
	double until = clock_seconds() + c->base.destination->commitment_wait;
	struct err err = {0};

	while (is_open(c) && clock_seconds() < until)
		if (scu_commit_wait(scu, 1, handler, &err) < 0) {
			log_event(LOG_DEBUG, "commitment-association", "job=%lld reason=%s", (long long)c->base.job,
				  log_quote(err.msg));
			return;
		}
}

/* Open an association, send the request, record the response and wait for the report. Return an exit code. */
static int request_commitment(struct commitment *c, const struct commit_object *objects, size_t n)
{
	struct scu_context context = {.sop_class = COMMIT_CLASS, .transfer_syntax = "1.2.840.10008.1.2"};
	struct commit_handler handler = {.ctx = c, .report = on_report, .refused = on_refused};
	struct scu_peer peer = destination_commitment_peer(c->base.process.config, c->base.destination);
	enum deliver_outcome outcome;
	struct scu *scu = NULL;
	struct err err = {0};
	const char *meaning;
	uint16_t status = 0;
	char text[8];
	json_t *detail;
	int code, ret = scu_open(&peer, &context, 1, &scu, &err);

	if (ret < 0)
		return request_failed(c, deliver_classify_error(-ret), "", err.msg, true, deliver_needs_operator(-ret));
	ret = scu_commit(scu, c->transaction, objects, n, &handler, &status, &err);
	if (ret < 0) {
		scu_close(scu);
		return request_failed(c, deliver_classify_error(-ret), "", err.msg, false, false);
	}
	outcome = commit_classify(status, &meaning);
	snprintf(text, sizeof(text), "%04X", status);
	if (outcome != DELIVER_STORED) {
		scu_close(scu);
		return request_failed(c, outcome, text, meaning, false, false);
	}
	detail = detail_of(c, text, "");
	if (detail)
		json_object_set_new(detail, "until", json_real(clock_wall() + c->base.destination->commitment_timeout));
	code = send_process_append(&c->base, EVENT_COMMIT_ACCEPTED, detail, clock_wall());
	if (code == CODE_OK && c->base.send->alarm)
		destination_recovered(c->base.job, c->base.send->destination);
	if (code == CODE_OK)
		wait_for_report(c, scu, &handler);
	scu_close(scu);
	return code == CODE_CANCELLED ? CODE_OK : code;
}

/* Return an exit code. CODE_CANCELLED: no commitment is to be requested. */
static int commit_job(struct send_process *base)
{
	struct commitment *c = (struct commitment *)base;
	struct job_send before;
	struct commit_object *objects;
	size_t n = 0;
	json_t *detail;
	int code;

	if ((c->base.view->state != JOB_RECONSTRUCTED && c->base.view->state != JOB_STORED) ||
	    c->base.send->state != SEND_STORED || (c->base.send->transaction[0] && c->base.send->accepted) ||
	    !c->base.destination->commitment)
		return CODE_CANCELLED;
	objects = list_stored(c, &n);
	if (!objects)
		return CODE_FAILED;
	before = *c->base.send; /* refreshing the view invalidates `send`; the copy's `objects` is not used */
	dicom_uid_random(c->transaction);
	detail = detail_of(c, "", "");
	if (detail)
		json_object_set_new(detail, "objects", json_integer((json_int_t)n));
	code = send_process_append(&c->base, EVENT_COMMIT_REQUESTED, detail, clock_wall());
	c->base.send = &before;
	snprintf(c->who, sizeof(c->who), "job=%lld destination=%s", (long long)c->base.job, before.destination);
	if (code == CODE_OK)
		code = request_commitment(c, objects, n);
	commit_log_refused_end(c->refused, c->who);
	free(objects);
	return code;
}

int cmd_commit(int argc, char **argv)
{
	struct commitment c = {0};

	return send_process_run(&c.base, "commit", commit_job, argc, argv);
}
