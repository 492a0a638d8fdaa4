/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/commit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/backoff.h"
#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/store/event.h"

#define REFUSED_LOGGED 10 /* refused reports of one association that are logged individually */

enum verdict { SAID_NOTHING, SAID_COMMITTED, SAID_FAILED };

struct report_job {
	struct journal *journal;
	const struct config *config;
	const struct commit_report *report;
	const char *calling;
	double now;
	const struct job_view *view;
	const struct job_send *send;
	bool open;		/* the report is about the open transaction */
	unsigned char *verdict; /* one for each object of the result */
	uint16_t failure;	/* first failure reason in the report */
};

void commit_log_refused(unsigned long *refused, const char *who, uint16_t status, const char *why)
{
	if ((*refused)++ < REFUSED_LOGGED)
		log_event(LOG_WARNING, "commitment-report-refused", "%s status=%04X reason=%s", who, status, log_quote(why));
}

void commit_log_refused_end(unsigned long refused, const char *who)
{
	if (refused > REFUSED_LOGGED)
		log_event(LOG_WARNING, "commitment-report-refused", "%s more=%lu", who, refused - REFUSED_LOGGED);
}

enum deliver_outcome commit_classify(uint16_t status, const char **ret_meaning)
{
	static const struct {
		uint16_t status;
		const char *text;
	} permanent[] = {
		{0x0112, "it does not know the instance of the storage commitment class"},
		{0x0115, "it finds the request invalid"},
		{0x0117, "it finds the instance UID invalid"},
		{0x0118, "it does not know the storage commitment class"},
		{0x0119, "it reports that class and instance do not match"},
		{0x0122, "it does not support storage commitment"},
		{0x0123, "it does not know the action"},
		{0x0124, "not authorised"},
		{0x0211, "it does not know N-ACTION"},
	};

	for (size_t i = 0; i < sizeof(permanent) / sizeof(permanent[0]); i++)
		if (permanent[i].status == status) {
			*ret_meaning = permanent[i].text;
			return DELIVER_PERMANENT;
		}
	*ret_meaning = status == 0x0000	  ? "it has the request"
		       : status == 0x0213 ? "it is out of resources"
					  : "it failed in processing";
	return status == 0x0000 || status == 0x0107 || status == 0x0116 || status >> 12 == 0xb ? DELIVER_STORED
											       : DELIVER_TRANSIENT;
}

enum job_event commit_failure_event(const struct destination_conf *d, const struct job_send *send, const char *reason,
				    json_t *uids, double now, json_t **ret_detail)
{
	int tries = send->commit_tries + 1;
	bool last = tries >= d->commitment_attempts;
	char text[400];

	snprintf(text, sizeof(text), "not committed: %.300s", reason);
	if (last)
		snprintf(text, sizeof(text), "not committed after %d request%s; the last one: %.300s", tries, plural(tries),
			 reason);
	*ret_detail = json_pack("{s:s, s:s, s:s, s:o, s:i}", "destination", send->destination, "transaction", send->transaction,
				"status", "", "reason", event_json_text(text), "attempt", tries);
	if (*ret_detail && !last)
		json_object_set_new(*ret_detail, "next", json_real(now + backoff_seconds(tries, d->retry_first, d->retry_cap)));
	if (*ret_detail && uids)
		json_object_set_new(*ret_detail, "sop_instances", uids);
	else
		json_decref(uids);
	return last ? EVENT_COMMIT_REFUSED : EVENT_COMMIT_FAILED;
}

/* Set the verdict of each object from the report. An object listed as committed and as failed counts as failed, and so does one
 * that is committed with another SOP class; UIDs that are not objects of the result are ignored. */
static int evaluate_report(struct report_job *t)
{
	size_t n = t->view->n_objects, at = 0;

	t->verdict = calloc(n ? n : 1, 1);
	if (!t->verdict)
		return -ENOMEM;
	for (size_t i = 0; i < t->report->n && n > 0; i++) {
		const struct commit_item *item = &t->report->items[i];
		uint16_t failure = item->failure;
		size_t left = n;

		while (left > 0 && strcmp(t->view->objects[at].sop_instance, item->sop_instance)) {
			at = (at + 1) % n; /* the UIDs are usually in the order of the objects */
			left--;
		}
		if (left == 0)
			continue;
		if (!failure && item->sop_class[0] && strcmp(item->sop_class, t->view->objects[at].sop_class))
			failure = COMMIT_OTHER_CLASS;
		if (failure && !t->failure)
			t->failure = failure;
		if (failure || t->verdict[at] == SAID_NOTHING)
			t->verdict[at] = failure ? SAID_FAILED : SAID_COMMITTED;
	}
	return 0;
}

static json_t *uids_where(const struct report_job *t, bool committed)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->view->n_objects; i++) {
		enum send_state state = t->send->objects[i];
		bool wanted = committed ? t->verdict[i] == SAID_COMMITTED && state != SEND_DONE
					: t->verdict[i] != SAID_COMMITTED && state == SEND_STORED;

		if (wanted)
			json_array_append_new(list, json_string(t->view->objects[i].sop_instance));
	}
	return list;
}

static int append_event(struct report_job *t, enum job_event event, json_t *detail)
{
	struct err err = {0};
	int ret = event_append(t->journal, t->view->id, event, detail, t->now, &err);

	if (ret == -ESTALE) /* the job was retried: commitment will be requested again after it is sent */
		return 0;
	if (ret < 0)
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)t->view->id, log_quote(err.msg));
	return ret;
}

static int write_committed(struct report_job *t)
{
	json_t *uids = uids_where(t, true);

	if (json_array_size(uids) == 0) {
		json_decref(uids);
		return 0;
	}
	return append_event(t, EVENT_COMMITTED,
			    json_pack("{s:s, s:s, s:s, s:o, s:o}", "destination", t->send->destination, "transaction",
				      t->report->transaction, "status", "", "calling", event_json_text(t->calling),
				      "sop_instances", uids));
}

static int write_failed(struct report_job *t)
{
	const struct destination_conf *d = config_destination(t->config, t->send->destination);
	json_t *uids = uids_where(t, false), *detail;
	enum job_event event;
	char reason[200];

	if (json_array_size(uids) == 0 ||
	    !d) { /* a destination that is not configured gets a new request when it is configured again */
		json_decref(uids);
		return 0;
	}
	if (t->failure)
		snprintf(reason, sizeof(reason), "%zu of %zu object%s, reason %04X: %s", json_array_size(uids),
			 t->view->n_objects, plural(t->view->n_objects), t->failure, commit_failure_text(t->failure));
	else
		snprintf(reason, sizeof(reason), "the report names %zu of %zu object%s neither as committed nor as failed",
			 json_array_size(uids), t->view->n_objects, plural(t->view->n_objects));
	event = commit_failure_event(d, t->send, reason, uids, t->now, &detail);
	return append_event(t, event, detail);
}

/* Append `committed` before `commit-failed`: if the process is killed in between, the transaction stays open for the failed
 * objects. */
static uint16_t apply_report(struct report_job *t, struct jobs *jobs, int64_t job, const char *destination)
{
	struct err err = {0};

	if (jobs_refresh(jobs, t->journal, job, &err) < 0) {
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)job, log_quote(err.msg));
		return COMMIT_FAILED;
	}
	t->view = jobs_find(jobs, job);
	t->send = t->view && t->view->state != JOB_IMPOSSIBLE ? job_view_find_send(t->view, destination) : NULL;
	if (!t->send)
		return COMMIT_FAILED;
	t->open = !strcmp(t->send->transaction, t->report->transaction);
	if (evaluate_report(t) < 0 || write_committed(t) < 0 || (t->open && write_failed(t) < 0))
		return COMMIT_FAILED;
	return COMMIT_ACCEPTED;
}

/* Return true if the sender's AE title is that of the destination. Retention deletes committed objects, so the transaction UID
 * alone, which others on the network may have read, is not sufficient. For a destination that is no longer configured there is no
 * title to compare with; its report is accepted. */
static bool is_partner(const struct config *config, const char *destination, const char *calling)
{
	const struct destination_conf *d = config_destination(config, destination);

	return !d || !strcmp(calling, d->aet) || !strcmp(calling, d->commitment_aet);
}

uint16_t commit_apply_report(struct journal *j, const struct config *config, const struct commit_report *report,
			     const char *calling, double now)
{
	struct report_job t = {.journal = j, .config = config, .report = report, .calling = calling, .now = now};
	char destination[CONFIG_NAME_SIZE] = "";
	struct jobs jobs = {0};
	struct err err = {0};
	int64_t job = 0;
	uint16_t status;
	int found = journal_find_transaction(j, report->transaction, &job, destination, sizeof(destination), &err);

	if (found < 0) {
		log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
		return COMMIT_FAILED;
	}
	if (found == 0) {
		log_event(LOG_WARNING, "commitment-unknown", "transaction=%s calling=%s reason=%s", report->transaction,
			  log_quote(calling), log_quote("this node has made no request with this transaction UID"));
		return COMMIT_INVALID;
	}
	if (!is_partner(config, destination, calling)) {
		log_event(LOG_WARNING, "commitment-wrong-peer", "transaction=%s destination=%s calling=%s reason=%s",
			  report->transaction, destination, log_quote(calling),
			  log_quote("the report comes from another AE title than aet and commitment_aet of the destination"));
		return COMMIT_FAILED;
	}
	status = apply_report(&t, &jobs, job, destination);
	log_event(LOG_INFO, "commitment-report",
		  "job=%lld destination=%s transaction=%s calling=%s items=%zu open=%d status=%04X", (long long)job, destination,
		  report->transaction, log_quote(calling), report->n, t.open, status);
	free(t.verdict);
	jobs_clear(&jobs);
	return status;
}
