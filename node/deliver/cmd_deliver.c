/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode deliver JOB DESTINATION: send the objects of one result that a destination lacks, in order, over one association, and
 * record the outcome of each.
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
#include <string.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "dicom/network/store_scu.h"
#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/deliver/cmd_deliver.h"
#include "node/deliver/deliver.h"
#include "node/deliver/destination.h"
#include "node/deliver/outbox_check.h"
#include "node/jobs/jobs.h"
#include "node/process/options.h"
#include "node/process/work_process.h"
#include "node/store/event.h"

#define TOGETHER_FROM 9	     /* objects that are due: fewer have an event each */
#define TOGETHER_SECONDS 0.5 /* ... else so long they wait for others */
#define TOGETHER_MAX 256     /* UIDs in an event */

struct delivery {
	struct work_process process;
	struct jobs jobs;
	const struct job_view *view;
	const struct job_send *send;
	const struct destination_conf *destination;
	/* the last answer */
	const struct job_object *object; /* NULL: it is about all that is due */
	enum deliver_outcome outcome;
	char status[8], reason[520];
	bool down, rejected; /* there was no association; it was rejected for good */
	bool alarmed;	     /* it was failing when this began, and nothing is stored since */
	double began;	     /* the answer that is waited for, on clock_seconds() */
	/* What is stored and not yet written down. */
	bool together;
	json_t *stored; /* UIDs; NULL: none */
};

static void answer(struct delivery *d, const struct job_object *object, enum deliver_outcome outcome, const char *status,
		   const char *reason)
{
	d->object = object;
	d->outcome = outcome;
	snprintf(d->status, sizeof(d->status), "%s", status);
	snprintf(d->reason, sizeof(d->reason), "%s", reason);
}

/* The context that the file needs, from the file itself. */
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

static enum job_event outcome_event(struct delivery *d)
{
	int failures = d->send->failures + 1;
	char last[320];

	if (d->outcome == DELIVER_STORED)
		return EVENT_SENT;
	if (d->outcome == DELIVER_PERMANENT)
		return EVENT_SEND_REFUSED;
	if (d->destination->retry_limit > 0 && failures >= d->destination->retry_limit) {
		snprintf(last, sizeof(last), "%.300s", d->reason);
		snprintf(d->reason, sizeof(d->reason), "given up after %d attempt%s; the last one: %s", failures,
			 plural(failures), last);
		return EVENT_SEND_REFUSED;
	}
	return EVENT_SEND_FAILED;
}

/* CODE_OK, or why to stop. */
static int append_event(struct delivery *d)
{
	enum job_event event = outcome_event(d);
	double now = clock_wall();
	struct err err = {0};
	json_t *detail =
		json_pack("{s:s, s:s, s:o, s:i, s:f}", "destination", d->send->destination, "status", d->status, "reason",
			  event_json_text(d->reason), "attempt", d->send->failures + 1, "seconds", clock_seconds() - d->began);
	bool alarm = false;
	int ret;

	d->began = clock_seconds();
	if (detail && d->object && event == EVENT_SENT && d->stored)
		json_object_set(detail, "sop_instances", d->stored);
	else if (detail && d->object && (event == EVENT_SENT || d->outcome == DELIVER_PERMANENT))
		json_object_set_new(detail, "sop_instance", json_string(d->object->sop_instance));
	if (detail && event == EVENT_SENT && d->destination->commitment)
		json_object_set_new(detail, "commit", json_true());
	if (detail && event == EVENT_SEND_FAILED)
		alarm = destination_failed(detail, d->destination, d->send, d->down, d->rejected, now);
	ret = event_append(d->process.journal, d->view->id, event, detail, now, &err);
	if (ret == -ESTALE)
		return CODE_CANCELLED;
	if (ret < 0) {
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)d->view->id, log_quote(err.msg));
		return CODE_FAILED;
	}
	if (alarm)
		destination_alarm(d->view->id, d->send->destination, d->reason);
	if (event == EVENT_SENT && d->alarmed)
		destination_recovered(d->view->id, d->send->destination);
	d->alarmed = d->alarmed && event != EVENT_SENT;
	work_process_notify(&d->process);
	return CODE_OK;
}

/* CODE_OK, or why to stop. */
static int write_stored(struct delivery *d)
{
	int code = d->stored ? append_event(d) : CODE_OK;

	json_decref(d->stored);
	d->stored = NULL;
	return code;
}

/* The answer about an object: at once, or together with what follows. */
static int note_answer(struct delivery *d, bool last)
{
	struct delivery now = *d;
	int code;

	if (d->together && d->outcome == DELIVER_STORED) {
		if (!d->stored)
			d->stored = json_array();
		json_array_append_new(d->stored, json_string(d->object->sop_instance));
		if (!last && clock_seconds() - d->began < TOGETHER_SECONDS && json_array_size(d->stored) < TOGETHER_MAX)
			return CODE_OK;
		return write_stored(d);
	}
	if (d->stored) { /* the ones before it, first */
		answer(d, now.object, DELIVER_STORED, "0000", "");
		code = write_stored(d);
		if (code != CODE_OK)
			return code;
		answer(d, now.object, now.outcome, now.status, now.reason);
	}
	return append_event(d);
}

/* One object over the association: its answer. */
static void send_object(struct delivery *d, struct scu *scu, const struct job_object *object, const char *path)
{
	enum deliver_outcome outcome;
	struct err err = {0};
	const char *meaning;
	uint16_t status = 0;
	char text[8];
	int ret = scu_store(scu, path, &status, &err);

	if (ret < 0) {
		answer(d, object, deliver_classify_error(-ret), "", err.msg);
		return;
	}
	outcome = deliver_classify(status, &meaning);
	snprintf(text, sizeof(text), "%04X", status);
	answer(d, object, outcome, text, meaning);
}

/* The objects that are due, as far as their files can be read: indices into view->objects. An unreadable one has its answer. */
static int list_due(struct delivery *d, size_t *ret_list, struct scu_context *ret_contexts, size_t *ret_n)
{
	char path[500];
	size_t n = 0;

	for (size_t i = 0; i < d->view->n_objects; i++) {
		const struct job_object *object = &d->view->objects[i];
		struct err err = {0};
		int ret, code;

		if (d->send->objects[i] != SEND_DUE)
			continue;
		snprintf(path, sizeof(path), "%s/%s", d->process.config->node.spool, object->file);
		ret = read_context(path, &ret_contexts[n], &err);
		if (ret == 0) {
			ret_list[n++] = i;
			continue;
		}
		answer(d, object, ret == -EBADMSG ? DELIVER_PERMANENT : DELIVER_TRANSIENT, "", err.msg);
		code = append_event(d);
		if (code != CODE_OK || d->outcome != DELIVER_PERMANENT)
			return code == CODE_OK ? -1 : code;
	}
	*ret_n = n;
	return CODE_OK;
}

/* What lies in the outbox is not what was made. */
static int make_again(struct delivery *d, const char *reason)
{
	struct err err = {0};
	int ret = event_append(d->process.journal, d->view->id, EVENT_RESULT_LOST,
			       json_pack("{s:o}", "reason", event_json_text(reason)), clock_wall(), &err);

	if (ret == -ESTALE)
		return CODE_CANCELLED;
	if (ret < 0) {
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)d->view->id, log_quote(err.msg));
		return CODE_FAILED;
	}
	work_process_notify(&d->process);
	return CODE_OK;
}

static int send_due(struct delivery *d)
{
	const struct destination_conf *c = d->destination;
	const struct node_conf *node = &d->process.config->node;
	struct scu_peer peer = destination_peer(d->process.config, c);
	struct scu_context *contexts = calloc(d->view->n_objects, sizeof(contexts[0]));
	size_t *list = calloc(d->view->n_objects, sizeof(list[0])), n = 0;
	struct scu *scu = NULL;
	struct err err = {0};
	char path[500];
	int code = CODE_FAILED, ret;

	if (!contexts || !list)
		goto out;
	code = list_due(d, list, contexts, &n);
	if (code != CODE_OK || n == 0) {
		code = code < 0 ? CODE_OK : code; /* negative: a failure that may pass is written down */
		goto out;
	}
	ret = scu_open(&peer, contexts, n, &scu, &err);
	if (ret < 0) {
		answer(d, NULL, deliver_classify_error(-ret), "", err.msg);
		d->down = true;
		d->rejected = deliver_needs_operator(-ret);
		code = append_event(d);
		goto out;
	}
	d->together = n >= TOGETHER_FROM;
	for (size_t i = 0; i < n && code == CODE_OK; i++) {
		const struct job_object *object = &d->view->objects[list[i]];

		snprintf(path, sizeof(path), "%s/%s", node->spool, object->file);
		send_object(d, scu, object, path);
		code = note_answer(d, i + 1 == n);
		if (d->outcome == DELIVER_TRANSIENT)
			break;
	}
out:
	json_decref(d->stored);
	d->stored = NULL;
	scu_close(scu);
	free(contexts);
	free(list);
	return code;
}

static int deliver(struct delivery *d)
{
	struct err why = {0};
	int ret;

	d->began = clock_seconds();
	d->alarmed = d->send->alarm;
	if (d->view->state != JOB_RECONSTRUCTED || d->send->state != SEND_DUE)
		return CODE_CANCELLED;
	d->destination = config_destination(d->process.config, d->send->destination);
	if (!d->destination) /* the manager knows it, or will in a moment: node/serve/schedule_deliver.c */
		return CODE_CANCELLED;
	ret = outbox_verify(d->process.config->node.spool, d->view, d->send, &why);
	if (ret == -EBADMSG)
		return make_again(d, why.msg);
	if (ret < 0) {
		answer(d, NULL, DELIVER_TRANSIENT, "", why.msg);
		return append_event(d);
	}
	return send_due(d);
}

int cmd_deliver(int argc, char **argv)
{
	struct delivery d = {0};
	struct err err = {0};
	long long job;
	int code = work_process_begin(&d.process, "deliver", "-c FILE JOB DESTINATION", 2, argc, argv);

	if (code)
		return code;
	if (work_process_enter_sandbox(&d.process, SANDBOX_DELIVER, NULL) < 0)
		code = CODE_FAILED;
	else if (options_integer(d.process.argument[0], 1, INT64_MAX, &job) < 0) {
		code = CODE_USAGE;
	} else if (jobs_refresh(&d.jobs, d.process.journal, job, &err) < 0) {
		log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
		code = CODE_FAILED;
	} else {
		d.view = jobs_find(&d.jobs, job);
		d.send = d.view ? job_view_send(d.view, d.process.argument[1]) : NULL;
		code = d.send ? deliver(&d) : CODE_NOT_FOUND;
	}
	jobs_clear(&d.jobs);
	work_process_end(&d.process);
	return code;
}
