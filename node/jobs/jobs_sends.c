/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/jobs_sends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/jobs/jobs_objects.h"

/* The last attempt succeeded: clear what earlier failures have set. */
static void clear_failures(struct job_send *s)
{
	s->since = 0;
	s->alarm = s->down = s->unconfigured = false;
}

/* Apply a failed attempt. A destination that is not in the configuration was not tried: this is not counted as a failure, and it
 * is tried as soon as it is configured again. */
static void apply_failed(struct job_send *s, const json_t *detail, const struct event_row *row)
{
	s->unconfigured = json_get_bool(detail, "unconfigured");
	if (s->unconfigured) {
		s->alarm = true;
		s->down = false;
		s->next = s->since = 0;
		return;
	}
	s->failures++;
	s->next = json_get_number(detail, "next");
	s->since = s->since > 0 ? s->since : row->time;
	s->alarm = json_get_bool(detail, "alarm");
	s->down = json_get_bool(detail, "down");
}

/* Apply an event about a storage commitment transaction. Events about another than the open one are ignored, except `committed`.
 */
static int commit_event(struct job_view *v, struct job_send *s, const json_t *detail, const struct event_row *row)
{
	const char *transaction = json_get_text(detail, "transaction");
	bool open = s->transaction[0] && !strcmp(transaction, s->transaction);
	int ret = 0;

	switch (row->event) {
	case EVENT_COMMIT_REQUESTED:
		if (!transaction[0] || strlen(transaction) >= sizeof(s->transaction))
			return -EBADMSG;
		strcpy(s->transaction, transaction);
		s->accepted = false;
		s->until = 0;
		break;
	case EVENT_COMMIT_ACCEPTED:
		if (open) {
			clear_failures(s);
			s->accepted = true;
			s->until = json_get_number(detail, "until");
		}
		break;
	case EVENT_COMMIT_REQUEST_FAILED:
		apply_failed(s, detail, row);
		s->transaction[0] = '\0';
		break;
	case EVENT_COMMITTED:
		ret = job_objects_apply_committed(v, s, detail);
		if (ret < 0)
			break;
		clear_failures(s);
		s->committed = !json_get_text(detail, "reason")[0]; /* with a reason: storage commitment was switched off in the
								  configuration, see waive() of the manager */
		break;
	case EVENT_COMMIT_FAILED:
		if (!open)
			break;
		ret = job_objects_apply_commit_failed(v, s, detail);
		if (ret < 0)
			break;
		s->commit_tries++;
		s->next = json_get_number(detail, "next");
		s->transaction[0] = '\0';
		break;
	default: /* EVENT_COMMIT_REFUSED */
		job_objects_apply_commit_refused(v, s);
	}
	return ret;
}

/* Keep the first refusal: what is said of a destination that refused an object is about that object, whatever was sent after
 * it. */
static int keep_refusal(struct job_send *s, const json_t *detail, const struct event_row *row)
{
	bool refused = row->event == EVENT_SEND_REFUSED || row->event == EVENT_COMMIT_REFUSED;
	/* commit_failure_event(): a report names objects, a refused request has a status */
	bool unanswered = row->event == EVENT_COMMIT_REFUSED && !s->status[0] && !json_object_get(detail, "sop_instances");

	if (refused && !s->refusal) {
		s->refusal = calloc(1, sizeof(*s->refusal));
		if (!s->refusal)
			return -ENOMEM;
		memcpy(s->refusal->status, s->status, sizeof(s->status));
		memcpy(s->refusal->reason, s->reason, sizeof(s->reason));
		s->refusal->unanswered = unanswered;
	}
	if (s->state == SEND_REFUSED && s->refusal) {
		memcpy(s->status, s->refusal->status, sizeof(s->status));
		memcpy(s->reason, s->refusal->reason, sizeof(s->reason));
	}
	return 0;
}

int job_sends_event(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	struct job_send *s = job_view_find_send(v, json_get_text(detail, "destination"));
	int ret = 0;

	if (!s)
		return -EBADMSG;
	if (row->event == EVENT_SENT || row->event == EVENT_SEND_REFUSED)
		ret = job_objects_apply_response(v, s, detail, row->event == EVENT_SENT);
	else if (row->event == EVENT_SEND_FAILED)
		apply_failed(s, detail, row);
	else
		ret = commit_event(v, s, detail, row);
	if (ret < 0)
		return ret;
	if (row->event == EVENT_SENT) {
		clear_failures(s);
		s->committed = false;
		s->sent = row->time;
	}
	s->immediate = false;
	s->time = row->time;
	if (row->event != EVENT_COMMITTED ||
	    strcmp(s->status, "0000") != 0) /* a report has no C-STORE status: keep the last "0000" */
		snprintf(s->status, sizeof(s->status), "%s", json_get_text(detail, "status"));
	snprintf(s->reason, sizeof(s->reason), "%s", json_get_text(detail, "reason"));
	return keep_refusal(s, detail, row);
}

/* Append a destination to the list. */
static int add_send(struct job_view *v, const char *name)
{
	struct job_send *sends;
	int ret;

	if (v->n_sends >= JOB_SENDS_MAX)
		return -EBADMSG;
	sends = realloc(v->sends, (v->n_sends + 1) * sizeof(sends[0]));
	if (!sends)
		return -ENOMEM;
	v->sends = sends;
	memset(&sends[v->n_sends], 0, sizeof(sends[0]));
	ret = job_send_begin(v, name, &sends[v->n_sends]);
	if (ret == 0)
		v->n_sends++;
	return ret;
}

int job_sends_fallback(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	const char *name = json_get_text(detail, "fallback");
	struct job_send *s = job_view_find_send(v, json_get_text(detail, "destination")), *fallback = job_view_find_send(v, name);
	int ret;

	if (!s || s == fallback || !name[0] || strlen(name) >= sizeof(s->fallback))
		return -EBADMSG;
	if (fallback) {
		fallback->standby = false;
	} else {
		ret = add_send(v, name);
		if (ret < 0)
			return ret;
		s = job_view_find_send(v, json_get_text(detail, "destination")); /* the list may have been reallocated */
	}
	snprintf(s->fallback, sizeof(s->fallback), "%s", name);
	s->replaced = true;
	s->time = row->time;
	return 0;
}

/* Return true if a fallback of this destination, or a fallback of that one and so on, has all objects. The chain ends, because
 * each member was added after the preceding one. */
static bool is_served(const struct job_view *v, const struct job_send *s)
{
	for (size_t i = 0; i < v->n_sends && s && s->replaced; i++)
		s = job_view_find_send(v, s->fallback);
	return s && (s->state == SEND_DONE || s->state == SEND_STORED);
}

void job_sends_retry(struct job_view *v)
{
	bool back[JOB_SENDS_MAX];

	for (size_t i = 0; i < v->n_sends; i++)
		back[i] = v->sends[i].replaced && !is_served(v, &v->sends[i]);
	for (size_t i = 0; i < v->n_sends; i++) {
		struct job_send *s = &v->sends[i];
		struct job_send *fallback = back[i] ? job_view_find_send(v, s->fallback) : NULL;

		if (fallback)
			fallback->standby = true;
		s->replaced = s->replaced && !back[i];
		clear_failures(s);
		s->failures = s->commit_tries = 0;
		s->next = s->until = 0;
		s->immediate = true;
		free(s->refusal);
		s->refusal = NULL;
		s->transaction[0] = '\0'; /* commitment of the stored objects is requested again; a report about the old request
					     is still accepted */
		job_send_make_refused_due(v, s);
	}
}
