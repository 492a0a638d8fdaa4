/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_deliver.c - `tomonode deliver JOB DESTINATION`: send the objects of one result that a destination lacks, in order, over one
 * association or HTTP connection, and record the outcome of each.
 *
 * - Stored, also with a warning or because the peer had it already: `sent`. Refused permanently: `send-refused` for that object;
 *   the others are still sent. A temporary failure ends the process: `send-failed` with the time of the next attempt; at the
 *   destination's limit of attempts all due objects are refused.
 * - An event without a SOP instance is about all due objects. In a series of many objects, those stored within a short time share
 *   one event, so that the journal does not limit the speed.
 * - Before sending, the due files are compared with the digests recorded when they were written. A result that differs is
 *   reconstructed again (`result-lost`).
 * - If this process dies after the peer's response and before the event is recorded, the object is sent again with the same UID,
 *   so that the peer still has only one.
 * - If storage commitment is required from the destination, `sent` records it: the object is then stored, but not yet delivered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dicom/core/dataset.h"
#include "kernels/clock.h"
#include "node/base/plural.h"
#include "node/deliver/cmd_deliver.h"
#include "node/deliver/deliver.h"
#include "node/deliver/destination.h"
#include "node/deliver/outbox_check.h"
#include "node/deliver/send_process.h"
#include "node/store/event.h"

/* Stored objects share events if at least TOGETHER_FROM objects are due; otherwise each has its own event. */
#define TOGETHER_FROM 9
#define TOGETHER_SECONDS 0.5 /* most time that a shared event covers, s */
#define TOGETHER_MAX 256     /* most UIDs in an event */

struct delivery {
	struct send_process base;
	/* the last outcome */
	const struct job_object *object; /* NULL: the outcome applies to all due objects */
	struct store_result result;
	bool alarmed; /* an alarm is active for this destination, and nothing has been stored since it began */
	double began; /* start of the work on the next outcome, clock_seconds() */
	/* objects that are stored and not yet recorded */
	bool together;	/* stored objects share events */
	json_t *stored; /* UIDs; NULL: none */
};

/* Set the last outcome, without an answer of the peer. object: NULL: all due objects. */
static void set_outcome(struct delivery *d, const struct job_object *object, enum deliver_outcome outcome, const char *reason)
{
	d->object = object;
	d->result = (struct store_result){.outcome = outcome};
	snprintf(d->result.reason, sizeof(d->result.reason), "%s", reason);
}

/* Read the presentation context that a file needs. EBADMSG: the file has no SOP Class UID. */
static int read_context(const char *path, struct scu_context *ret_context, struct err *err)
{
	struct dicom_file *file = NULL;
	int ret = dicom_open(path, &file, err);

	if (ret < 0)
		return ret;
	ret = dicom_get_text(dicom_root(file), DICOM_TAG(0x0008, 0x0016), ret_context->sop_class, sizeof(ret_context->sop_class),
			     err);
	if (ret == 0)
		ret = err_set(err, EBADMSG, "the result has no SOP Class UID");
	snprintf(ret_context->transfer_syntax, sizeof(ret_context->transfer_syntax), "%s", dicom_transfer_syntax(file));
	dicom_close(file);
	return ret < 0 ? ret : 0;
}

/* Return the event of the last outcome. At the limit of attempts, a failure becomes a refusal. */
static enum job_event outcome_event(struct delivery *d)
{
	int failures = d->base.send->failures + 1;
	char last[320];

	if (d->result.outcome == DELIVER_STORED)
		return EVENT_SENT;
	if (d->result.outcome == DELIVER_PERMANENT)
		return EVENT_SEND_REFUSED;
	if (d->base.destination->retry_limit > 0 && failures >= d->base.destination->retry_limit) {
		snprintf(last, sizeof(last), "%.300s", d->result.reason);
		snprintf(d->result.reason, sizeof(d->result.reason), "given up after %d attempt%s; the last one: %s", failures,
			 plural(failures), last);
		return EVENT_SEND_REFUSED;
	}
	return EVENT_SEND_FAILED;
}

/* Append the event of the last outcome, and start or end the alarm. CODE_OK, or the exit code to return. */
static int append_outcome(struct delivery *d)
{
	enum job_event event = outcome_event(d);
	double now = clock_wall();
	json_t *detail = json_pack("{s:s, s:s, s:o, s:i, s:f}", "destination", d->base.send->destination, "status",
				   d->result.status, "reason", event_json_text(d->result.reason), "attempt",
				   d->base.send->failures + 1, "seconds", clock_seconds() - d->began);
	bool alarm = false;
	int code;

	d->began = clock_seconds();
	if (detail && d->object && event == EVENT_SENT && d->stored)
		json_object_set(detail, "sop_instances", d->stored);
	else if (detail && d->object && (event == EVENT_SENT || d->result.outcome == DELIVER_PERMANENT))
		json_object_set_new(detail, "sop_instance", json_string(d->object->sop_instance));
	if (detail && event == EVENT_SENT && d->base.destination->commitment)
		json_object_set_new(detail, "commit", json_true());
	if (detail && event == EVENT_SEND_FAILED)
		alarm = destination_failed(detail, d->base.destination, d->base.send, d->result.failure, now);
	code = send_process_append(&d->base, event, detail, now);
	if (code != CODE_OK)
		return code;
	if (alarm)
		destination_alarm(d->base.job, d->base.send->destination, d->result.reason);
	if (event == EVENT_SENT && d->alarmed)
		destination_recovered(d->base.job, d->base.send->destination);
	d->alarmed = d->alarmed && event != EVENT_SENT;
	return CODE_OK;
}

/* Record the stored objects that have no event yet. CODE_OK, or the exit code to return. */
static int append_stored(struct delivery *d)
{
	int code = d->stored ? append_outcome(d) : CODE_OK;

	json_decref(d->stored);
	d->stored = NULL;
	return code;
}

/* Record the outcome of an object: immediately, or in one event with the next ones. last: there is no next object. */
static int record_outcome(struct delivery *d, bool last)
{
	struct store_result result = d->result;
	int code;

	if (d->together && d->result.outcome == DELIVER_STORED) {
		if (!d->stored)
			d->stored = json_array();
		json_array_append_new(d->stored, json_string(d->object->sop_instance));
		if (!last && clock_seconds() - d->began < TOGETHER_SECONDS && json_array_size(d->stored) < TOGETHER_MAX)
			return CODE_OK;
		return append_stored(d);
	}
	if (d->stored) { /* first the objects stored before */
		d->result = (struct store_result){.outcome = DELIVER_STORED, .status = "0000"};
		code = append_stored(d);
		if (code != CODE_OK)
			return code;
		d->result = result;
	}
	return append_outcome(d);
}

/* List the due objects whose files can be read, as indices into view->objects, with their presentation contexts. The outcome of
 * an unreadable one is recorded. CODE_OK, or the exit code to return; negative: return CODE_OK and try again later. */
static int list_due(struct delivery *d, size_t *ret_list, struct scu_context *ret_contexts, size_t *ret_n)
{
	char path[500];
	size_t n = 0;

	for (size_t i = 0; i < d->base.view->n_objects; i++) {
		const struct job_object *object = &d->base.view->objects[i];
		struct err err = {0};
		int ret, code;

		if (d->base.send->objects[i] != SEND_DUE)
			continue;
		snprintf(path, sizeof(path), "%s/%s", d->base.process.config->node.spool, object->file);
		ret = read_context(path, &ret_contexts[n], &err);
		if (ret == 0) {
			ret_list[n++] = i;
			continue;
		}
		set_outcome(d, object, ret == -EBADMSG ? DELIVER_PERMANENT : DELIVER_TRANSIENT, err.msg);
		code = append_outcome(d);
		if (code != CODE_OK || d->result.outcome != DELIVER_PERMANENT)
			return code == CODE_OK ? -1 : code;
	}
	*ret_n = n;
	return CODE_OK;
}

/* Record that the files in the outbox are missing or damaged; the result is then reconstructed again. */
static int record_lost_result(struct delivery *d, const char *reason)
{
	return send_process_append(&d->base, EVENT_RESULT_LOST, json_pack("{s:o}", "reason", event_json_text(reason)),
				   clock_wall());
}

/* Send the due objects over one association or connection, and record the outcome of each. Return an exit code. */
static int send_due(struct delivery *d)
{
	const struct destination_kind_actions *actions = destination_actions(d->base.destination);
	const struct node_conf *node = &d->base.process.config->node;
	struct scu_context *contexts = calloc(d->base.view->n_objects, sizeof(contexts[0]));
	size_t *list = calloc(d->base.view->n_objects, sizeof(list[0])), n = 0;
	struct err err = {0};
	void *session = NULL;
	char path[500];
	int code = CODE_FAILED, ret;

	if (!contexts || !list)
		goto out;
	code = list_due(d, list, contexts, &n);
	if (code != CODE_OK || n == 0) {
		code = code < 0 ? CODE_OK : code;
		goto out;
	}
	ret = actions->open(d->base.process.config, d->base.destination, contexts, n, &session, &err);
	if (ret < 0) {
		set_outcome(d, NULL, deliver_classify_error(-ret), err.msg);
		d->result.failure = (struct destination_failure){.down = true, .rejected = deliver_needs_operator(-ret)};
		code = append_outcome(d);
		goto out;
	}
	d->together = n >= TOGETHER_FROM;
	for (size_t i = 0; i < n && code == CODE_OK; i++) {
		d->object = &d->base.view->objects[list[i]];
		snprintf(path, sizeof(path), "%s/%s", node->spool, d->object->file);
		actions->store(session, path, d->object->sop_instance, &d->result);
		code = record_outcome(d, i + 1 == n);
		if (d->result.outcome == DELIVER_TRANSIENT)
			break;
	}
out:
	json_decref(d->stored);
	d->stored = NULL;
	if (actions->close)
		actions->close(session);
	free(contexts);
	free(list);
	return code;
}

/* Return an exit code. CODE_CANCELLED: nothing is to be sent. */
static int deliver_job(struct send_process *base)
{
	struct delivery *d = (struct delivery *)base;
	struct err why = {0};
	int ret;

	d->began = clock_seconds();
	d->alarmed = d->base.send->alarm;
	if (d->base.view->state != JOB_RECONSTRUCTED || d->base.send->state != SEND_DUE)
		return CODE_CANCELLED;
	ret = outbox_verify(d->base.process.config->node.spool, d->base.view, d->base.send, &why);
	if (ret == -EBADMSG)
		return record_lost_result(d, why.msg);
	if (ret < 0) {
		set_outcome(d, NULL, DELIVER_TRANSIENT, why.msg);
		return append_outcome(d);
	}
	return send_due(d);
}

int cmd_deliver(int argc, char **argv)
{
	struct delivery d = {0};

	return send_process_run(&d.base, "deliver", deliver_job, argc, argv);
}
