/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode commit JOB DESTINATION: request storage commitment for the objects of one result that a destination stored, and wait
 * a short time for the report.
 *
 * - The transaction UID is recorded (`commit-requested`) before the request is sent. If the process dies in between, commitment
 *   is requested again at once with another UID; a report on the first one is still accepted.
 * - `commit-accepted` records until when to wait for the report; it may be received here or on an association of the peer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/network/commit.h"
#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/deliver/cmd_deliver.h"
#include "node/deliver/commit.h"
#include "node/deliver/destination.h"
#include "node/jobs/jobs.h"
#include "node/process/options.h"
#include "node/process/work_process.h"
#include "node/store/event.h"

struct commitment {
	struct work_process process;
	struct jobs jobs;
	int64_t job;
	const struct job_view *view;
	struct job_send *send; /* as it was when the request was made */
	const struct destination_conf *destination;
	char transaction[DICOM_UID_SIZE];
};

static uint16_t on_report(void *ctx, const struct commit_report *report)
{
	struct commitment *c = ctx;
	uint16_t status = commit_apply_report(c->process.journal, c->process.config, report, c->destination->aet, clock_wall());

	work_process_notify(&c->process);
	return status;
}

/* CODE_OK, CODE_CANCELLED: the job went on without us, CODE_FAILED. */
static int append_event(struct commitment *c, enum job_event event, json_t *detail)
{
	struct err err = {0};
	int ret = event_append(c->process.journal, c->job, event, detail, clock_wall(), &err);

	if (ret == -ESTALE)
		return CODE_CANCELLED;
	if (ret < 0) {
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)c->job, log_quote(err.msg));
		return CODE_FAILED;
	}
	work_process_notify(&c->process);
	return CODE_OK;
}

static json_t *detail_of(const struct commitment *c, const char *status, const char *reason)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "destination", c->send->destination, "transaction", c->transaction, "status",
			 status, "reason", event_json_text(reason));
}

/* The request did not get there, or was not taken. */
static int request_failed(struct commitment *c, enum deliver_outcome outcome, const char *status, const char *reason, bool down,
			  bool rejected)
{
	json_t *detail = detail_of(c, status, reason);
	bool alarm = false;
	int code;

	if (outcome == DELIVER_PERMANENT)
		return append_event(c, EVENT_COMMIT_REFUSED, detail);
	if (detail)
		alarm = destination_failed(detail, c->destination, c->send, down, rejected, clock_wall());
	code = append_event(c, EVENT_COMMIT_REQUEST_FAILED, detail);
	if (code == CODE_OK && alarm)
		destination_alarm(c->job, c->send->destination, reason);
	return code;
}

static struct commit_object *list_stored(const struct commitment *c, size_t *ret_n)
{
	struct commit_object *list = calloc(c->view->n_objects ? c->view->n_objects : 1, sizeof(list[0]));
	size_t n = 0;

	for (size_t i = 0; list && i < c->view->n_objects; i++) {
		const struct job_object *o = &c->view->objects[i];

		if (c->send->objects[i] != SEND_STORED)
			continue;
		snprintf(list[n].sop_class, sizeof(list[n].sop_class), "%s", o->sop_class);
		snprintf(list[n++].sop_instance, sizeof(list[0].sop_instance), "%s", o->sop_instance);
	}
	*ret_n = n;
	return list;
}

/* Is our transaction still the open one? It is closed by a report, wherever that comes in. */
static bool still_open(struct commitment *c)
{
	const struct job_send *send;

	if (jobs_refresh(&c->jobs, c->process.journal, c->job, NULL) < 0)
		return false;
	c->view = jobs_find(&c->jobs, c->job);
	send = job_view_send(c->view, c->process.argument[1]);
	return send && !strcmp(send->transaction, c->transaction);
}

static void wait_for_report(struct commitment *c, struct scu *scu, const struct commit_handler *handler)
{
	double until = clock_seconds() + c->destination->commitment_wait;
	struct err err = {0};

	while (still_open(c) && clock_seconds() < until)
		if (scu_commit_wait(scu, 1, handler, &err) < 0) {
			log_event(LOG_DEBUG, "commitment-association", "job=%lld reason=%s", (long long)c->job,
				  log_quote(err.msg));
			return;
		}
}

static int request_commitment(struct commitment *c, const struct commit_object *objects, size_t n)
{
	struct scu_context context = {.sop_class = COMMIT_CLASS, .transfer_syntax = "1.2.840.10008.1.2"};
	struct commit_handler handler = {.ctx = c, .report = on_report};
	struct scu_peer peer = destination_commitment_peer(c->process.config, c->destination);
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
		json_object_set_new(detail, "until", json_real(clock_wall() + c->destination->commitment_timeout));
	code = append_event(c, EVENT_COMMIT_ACCEPTED, detail);
	if (code == CODE_OK && c->send->alarm)
		destination_recovered(c->job, c->send->destination);
	if (code == CODE_OK)
		wait_for_report(c, scu, &handler);
	scu_close(scu);
	return code == CODE_CANCELLED ? CODE_OK : code;
}

static int commit(struct commitment *c)
{
	struct job_send before;
	struct commit_object *objects;
	size_t n = 0;
	json_t *detail;
	int code;

	c->destination = config_destination(c->process.config, c->send->destination);
	if ((c->view->state != JOB_RECONSTRUCTED && c->view->state != JOB_STORED) || c->send->state != SEND_STORED ||
	    (c->send->transaction[0] && c->send->accepted) || !c->destination || !c->destination->commitment)
		return CODE_CANCELLED;
	objects = list_stored(c, &n);
	if (!objects)
		return CODE_FAILED;
	before = *c->send; /* what follows changes the view; `objects` of it is not looked at any more */
	dicom_uid_random(c->transaction);
	detail = detail_of(c, "", "");
	if (detail)
		json_object_set_new(detail, "objects", json_integer((json_int_t)n));
	code = append_event(c, EVENT_COMMIT_REQUESTED, detail);
	c->send = &before;
	if (code == CODE_OK)
		code = request_commitment(c, objects, n);
	free(objects);
	return code;
}

int cmd_commit(int argc, char **argv)
{
	struct commitment c = {0};
	struct err err = {0};
	long long job;
	int code = work_process_begin(&c.process, "commit", "-c FILE JOB DESTINATION", 2, argc, argv);

	if (code)
		return code;
	if (work_process_enter_sandbox(&c.process, SANDBOX_DELIVER, NULL) < 0)
		code = CODE_FAILED;
	else if (options_integer(c.process.argument[0], 1, INT64_MAX, &job) < 0) {
		code = CODE_USAGE;
	} else if (jobs_refresh(&c.jobs, c.process.journal, job, &err) < 0) {
		log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
		code = CODE_FAILED;
	} else {
		c.job = job;
		c.view = jobs_find(&c.jobs, job);
		c.send = c.view ? job_view_send(c.view, c.process.argument[1]) : NULL;
		code = c.send ? commit(&c) : CODE_NOT_FOUND;
	}
	jobs_clear(&c.jobs);
	work_process_end(&c.process);
	return code;
}
