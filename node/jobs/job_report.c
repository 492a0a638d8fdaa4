/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "node/base/json_get.h"
#include "node/base/sentence.h"
#include "node/base/stage_names.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/job_hint.h"
#include "node/store/event.h"

#define PROGRESS_BYTES_MAX 4096 /* a worker writes about 120 */

json_t *job_report_send(const struct job_send *s)
{
	json_t *d = json_pack("{s:o, s:s, s:s, s:o, s:i, s:f}", "name", event_json_text(s->destination), "state",
			      job_send_state_name(s), "status", s->status, "reason", event_json_text(s->reason), "failures",
			      s->failures, "next", s->next);

	if (s->blocked_by)
		json_object_set_new(d, "blocked_by",
				    json_pack("{s:o, s:s, s:f, s:f}", "reason", event_json_text(s->blocked_by->reason), "status",
					      s->blocked_by->status, "since", s->blocked_by->since, "next", s->blocked_by->next));
	return d;
}

static json_t *destination_json(const struct job_view *v, const struct job_send *s)
{
	json_t *d = job_report_send(s), *objects = json_array();

	for (size_t i = 0; i < v->n_objects; i++)
		json_array_append_new(objects, json_string(send_state_name(s->objects[i])));
	json_object_update_new(d, json_pack("{s:f, s:b, s:b, s:o}", "since", s->since, "alarm", s->alarm, "unconfigured",
					    s->unconfigured, "objects", objects));
	if (s->replaced)
		json_object_set_new(d, "fallback", event_json_text(s->fallback));
	if (s->transaction[0])
		json_object_set_new(d, "commitment",
				    json_pack("{s:s, s:b, s:f, s:i}", "transaction", s->transaction, "accepted", s->accepted,
					      "until", s->until, "failed", s->commit_tries));
	return d;
}

json_t *job_report_progress(const char *spool, int64_t job)
{
	char path[340], text[PROGRESS_BYTES_MAX];
	ssize_t n = -1;
	int fd;

	if (snprintf(path, sizeof(path), "%s/work/%lld/status", spool, (long long)job) >= (int)sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text));
		close(fd);
	}
	return n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
}

/* Return {"file", "sop_instance", "sop_class"} of the first object, with "objects": the same of all. */
static json_t *result_of(const struct job_view *v)
{
	json_t *list, *first;

	if (v->n_objects == 0)
		return json_null();
	list = json_array();
	for (size_t i = 0; i < v->n_objects; i++) {
		const struct job_object *o = &v->objects[i];

		json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:s}", "file", event_json_text(o->file), "sop_instance",
						      o->sop_instance, "sop_class", o->sop_class, "series", o->series));
	}
	first = json_pack("{s:o, s:s, s:s}", "file", event_json_text(v->objects[0].file), "sop_instance",
			  v->objects[0].sop_instance, "sop_class", v->objects[0].sop_class);
	json_object_set_new(first, "objects", list);
	return first;
}

static json_t *warnings_of(const struct job_view *v)
{
	const char *text = v->warnings ? v->warnings : "";
	json_t *list = json_array();
	size_t n;

	for (; (text = sentence_next(text, &n)); text += n)
		json_array_append_new(list, json_stringn(text, n));
	return list;
}

json_t *job_report_common(const struct job_view *v, struct journal *j)
{
	struct exposures sweeps;
	int n = v->state == JOB_CANCELLED ? 0 : case_sweeps_offered(j, v, &sweeps);

	return json_pack(
		"{s:I, s:s, s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:f, s:f, s:f, s:i, s:o, s:s, s:b, s:o}", "id",
		(json_int_t)v->id, "state", job_state_name(v->state), "kind", event_json_text(v->kind), "calling",
		event_json_text(v->calling), "revision", v->revision, "result_number", v->other.number, "result_of",
		(json_int_t)v->other.of, "redo_of", (json_int_t)v->other.redo_of, "instances", (json_int_t)v->members.instances,
		"expected", (json_int_t)v->members.expected, "protocol", event_json_text(v->protocol), "device",
		event_json_text(v->device), "opened", v->opened, "last_received", v->members.last, "changed", v->changed,
		"finished", v->finished, "attempts", v->attempts, "reason", event_json_text(v->reason), "hint", job_hint(v, n),
		"warned", v->warnings != NULL, "warnings", warnings_of(v));
}

json_t *job_report_view(const struct job_view *v, struct journal *j, const char *spool)
{
	json_t *view = job_report_common(v, j), *destinations = json_array();
	json_t *progress = v->state == JOB_RUNNING ? job_report_progress(spool, v->id) : NULL;
	char with[OTHER_RESULT_TEXT];

	for (size_t i = 0; i < v->n_sends; i++)
		json_array_append_new(destinations, destination_json(v, &v->sends[i]));
	json_object_update_new(view,
			       json_pack("{s:s, s:I, s:I, s:f, s:i, s:o, s:o, s:o, s:o, s:I, s:o, s:f}", "priority",
					 job_priority_name(v->priority), "revision_of", (json_int_t)v->revision_of, "frames",
					 (json_int_t)v->members.frames, "first_received", v->members.first, "crashes", v->crashes,
					 "destinations", destinations, "result", result_of(v), "progress",
					 progress ? progress : json_null(), "protocol_text",
					 event_json_text(case_results_protocol(v, with)), "companions", (json_int_t)v->companions,
					 "companion", event_json_text(v->companion_text ? v->companion_text : ""), "waits_until",
					 v->waits_until));
	return view;
}

json_t *job_report_further(const struct jobs *jobs, const struct job_view *v)
{
	json_t *list = json_array();
	char text[OTHER_RESULT_TEXT];

	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o)) {
		if (o->other.of != v->id)
			continue;
		json_array_insert_new(list, 0,
				      json_pack("{s:I, s:s, s:o}", "id", (json_int_t)o->id, "state", job_state_name(o->state),
						"protocol_text", event_json_text(case_results_protocol(o, text))));
	}
	return list;
}

/* ---- read from the journal ---- */

static int add_event(void *ctx, const struct event_row *row)
{
	json_t *detail = json_loads(row->detail, 0, NULL);

	json_object_del(detail, "identity"); /* of no use to a person */
	json_object_del(detail, "patient");  /* only for the audit trail */
	return json_array_append_new(ctx, json_pack("{s:I, s:f, s:s, s:o}", "seq", (json_int_t)row->seq, "time", row->time,
						    "event", row->known ? job_event_name(row->event) : "unknown", "detail",
						    detail ? detail : json_null())) < 0
		       ? -ENOMEM
		       : 0;
}

json_t *job_report_events(struct journal *j, int64_t job, struct err *err)
{
	json_t *list = json_array();

	if (journal_replay(j, job, 0, add_event, list, err) < 0) {
		json_decref(list);
		return NULL;
	}
	return list;
}

bool job_report_repeats(const json_t *event)
{
	const char *name = json_get_text(event, "event");

	return !strcmp(name, job_event_name(EVENT_INSTANCE)) || !strcmp(name, job_event_name(EVENT_COMPANION));
}

size_t job_report_run(const json_t *events, size_t at)
{
	const json_t *event = json_array_get(events, at);
	const char *name = json_get_text(event, "event");
	size_t n = 1;

	if (!job_report_repeats(event))
		return 1;
	if (!strcmp(json_get_text(json_array_get(events, at + 1), "event"), name))
		return 0;
	while (n <= at && !strcmp(json_get_text(json_array_get(events, at - n), "event"), name))
		n++;
	return n;
}

static json_t *instance_json(const struct instance_row *row)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:s, s:I, s:b}", "instance", (json_int_t)row->id, "sop",
			 event_json_text(row->sop_instance), "sop_class", event_json_text(row->sop_class), "transfer_syntax",
			 event_json_text(row->transfer_syntax), "calling", event_json_text(row->calling), "association",
			 event_json_text(row->association), "received", row->received, "file", row->file, "bytes",
			 (json_int_t)row->bytes, "companion", row->companion);
}

static int add_instance(void *ctx, const struct instance_row *row, const char *detail)
{
	json_t *one = instance_json(row), *facts = json_loads(detail, 0, NULL), *angle = json_object_get(facts, "angle");

	if (one && angle)
		json_object_set(one, "angle", angle);
	json_decref(facts);
	return json_array_append_new(ctx, one) < 0 ? -ENOMEM : 0;
}

json_t *job_report_instances(struct journal *j, int64_t job, struct err *err)
{
	json_t *list = json_array();

	if (journal_each_member(j, job, add_instance, list, err) < 0) {
		json_decref(list);
		return NULL;
	}
	return list;
}

struct unassigned {
	json_t *list;
	const char *classification;
};

static int add_unassigned(void *ctx, const struct instance_row *row, const char *detail)
{
	struct unassigned *c = ctx;
	json_t *one = instance_json(row), *why = json_loads(detail, 0, NULL), *reason = json_object_get(why, "reason");

	if (one) {
		json_object_set_new(one, "classification", json_string(c->classification));
		json_object_set(one, "reason", reason ? reason : json_null());
	}
	json_decref(why);
	return json_array_append_new(c->list, one) < 0 ? -ENOMEM : 0;
}

json_t *job_report_unassigned(struct journal *j, int max, struct err *err)
{
	static const struct {
		enum classification kind;
		const char *name;
	} kinds[] = {{CLASSIFIED_REFUSED, "refused"}, {CLASSIFIED_CONFLICT, "conflict"}, {CLASSIFIED_IGNORED, "ignored"}};
	struct unassigned c = {.list = json_array()};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		c.classification = kinds[i].name;
		if (journal_each_classified(j, kinds[i].kind, max, add_unassigned, &c, err) < 0) {
			json_decref(c.list);
			return NULL;
		}
	}
	return c.list;
}

/* ---- duration of each stage ---- */

/* Return the last event with this name; NULL: none. */
static const json_t *last_event(const json_t *events, const char *name)
{
	for (size_t i = json_array_size(events); i-- > 0;) {
		const json_t *e = json_array_get(events, i);
		const char *is = json_string_value(json_object_get(e, "event"));

		if (is && !strcmp(is, name))
			return e;
	}
	return NULL;
}

const json_t *job_report_facts(const json_t *events)
{
	json_t *detail = json_object_get(last_event(events, "reconstructed"), "detail"), *of_kind;
	const json_t *facts = NULL;
	const char *kind;

	json_object_foreach(detail, kind, of_kind) if (!facts) facts = json_object_get(of_kind, "facts");
	return facts;
}

static void add_stage(json_t *list, const char *name, double seconds)
{
	json_array_append_new(list, json_pack("{s:s, s:f}", "stage", name, "seconds", seconds > 0 ? seconds : 0));
}

double job_report_total(const json_t *stages)
{
	const json_t *one;
	double total = 0;
	size_t i;

	json_array_foreach(stages, i, one) if (strcmp(json_get_text(one, "stage"), "receive") != 0) total +=
		json_get_number(one, "seconds");
	return total;
}

json_t *job_report_stages(const json_t *view, const json_t *events)
{
	const json_t *complete = last_event(events, "complete"), *started = last_event(events, "started"),
		     *made = last_event(events, "reconstructed"), *over = last_event(events, "delivered"), *stored, *seconds;
	double last = json_get_number(view, "last_received"), at, part[STAGES], sum = 0, fit;
	json_t *list = json_array();

	if (json_get_number(view, "instances") > 0)
		add_stage(list, "receive", last - json_get_number(view, "first_received"));
	if (!complete)
		return list;
	at = json_get_number(complete, "time");
	add_stage(list, "assemble", at - last);
	if (!started || json_get_number(started, "time") < at)
		return list;
	add_stage(list, "wait", json_get_number(started, "time") - at);
	at = json_get_number(started, "time");
	if (!made || json_get_number(made, "time") < at)
		return list;
	seconds = json_object_get(json_object_get(made, "detail"), "seconds");
	if (json_get_number(seconds, "check") > 0) { /* comparison of the files with their digests, before they are used */
		add_stage(list, "check", json_get_number(seconds, "check"));
		at += json_get_number(seconds, "check");
	}
	for (size_t i = 0; i < STAGES; i++)
		sum += part[i] = json_get_number(seconds, stage_names[i]);
	fit = sum > json_get_number(seconds, "total")
		      ? json_get_number(seconds, "total") / sum
		      : 1; /* scale stages that ran in parallel, so that they add up to the total */
	for (size_t i = 0; i < STAGES; i++) {
		add_stage(list, stage_names[i], fit * part[i]);
		at += fit * part[i];
	}
	add_stage(list, "process",
		  json_get_number(made, "time") - at); /* the remaining time: start of the worker, clean-up, journal */
	if (!over)
		over = last_event(events, "dead-letter");
	at = json_get_number(made, "time");
	stored = last_event(events, "stored");
	if (stored && json_get_number(stored, "time") >= at) {
		add_stage(list, "send", json_get_number(stored, "time") - at);
		at = json_get_number(stored, "time");
	}
	if (over && json_get_number(over, "time") >= at)
		add_stage(list, at > json_get_number(made, "time") ? "commit" : "send", json_get_number(over, "time") - at);
	return list;
}
