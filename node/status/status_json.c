/* SPDX-License-Identifier: Apache-2.0 */
/* status_json.c - write the contents of the status page as JSON, for programs. It contains patients' names if the page does. */

#include "node/base/version.h"
#include "node/jobs/job_report.h"
#include "node/status/status.h"
#include "node/status/status_text.h"
#include "node/store/event.h"
#include "node/store/json_fields.h"

static json_t *sends_json(const struct status *s, const struct job_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_sends; i++) {
		const struct job_send *d = &v->sends[i];
		json_t *one = job_report_send(d);
		struct status_send send;

		status_text_send(s->config, d, s->now, LANGUAGE_EN, &send);
		json_object_set_new(one, "sent", json_integer((json_int_t)job_view_count_stored(v, d)));
		json_object_set_new(one, "sentence", event_json_text(send.sentence));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *case_json(const struct status *s, const struct job_view *v)
{
	const struct status_name *name = s->config->status.show_patient ? status_names_of(&s->names, v) : NULL;
	char title[120], sentence[900], stage[64];
	double fraction, left;
	json_t *one;

	status_text_title(v, LANGUAGE_EN, title, sizeof(title));
	status_text_sentence(s->config, v, 0, s->now, LANGUAGE_EN, sentence, sizeof(sentence));
	one = job_report_common(v, s->journal);
	json_object_update_new(one, json_pack("{s:o, s:o, s:i, s:o, s:o, s:o}", "title", event_json_text(title), "sentence",
					      event_json_text(sentence), "objects", (int)v->n_objects, "destinations",
					      sends_json(s, v), "study", event_json_text(v->study), "accession",
					      event_json_text(v->accession)));
	if (v->state == JOB_RUNNING && status_progress(s, v->id, stage, &fraction, &left))
		json_object_set_new(one, "progress",
				    json_pack("{s:o, s:f, s:o}", "stage", event_json_text(stage), "fraction", fraction, "left",
					      left >= 0 ? json_real(left) : json_null()));
	else
		json_object_set_new(one, "progress", json_null());
	if (name)
		json_object_set_new(
			one, "patient",
			json_pack("{s:o, s:o}", "name", event_json_text(name->name), "id", event_json_text(name->id)));
	return one;
}

static void add_list(json_t *to, const struct status *s, const struct status_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->list[i].n && k < STATUS_EXAM_MAX; k++)
			json_array_append_new(to, case_json(s, l->list[i].cases[k]));
}

static json_t *destinations_json(const struct status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->facts.n_destinations; i++) {
		const struct destination_state *d = &s->facts.destinations[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:b, s:b, s:I, s:I, s:f, s:f, s:f, s:o}", "name", event_json_text(d->name),
						"configured", d->conf != NULL, "down", d->down, "waiting", (json_int_t)d->waiting,
						"refused", (json_int_t)d->refused, "last_sent", d->last_sent, "last_failed",
						d->last_failed, "next", d->next, "reason", event_json_text(d->reason)));
	}
	return list;
}

#define FIELD(member) JSON_FIELD_OF(struct status_sender, #member, member)
static const struct json_field sender_fields[] = {FIELD(calling), FIELD(host), FIELD(last), FIELD(objects)};

json_t *status_json(const struct status *s)
{
	json_t *cases = json_array(), *counts = json_object(), *problems = json_array(), *unassigned = json_array(), *one;
	json_t *devices = json_object_get(s->node, "devices");
	size_t i;

	add_list(cases, s, &s->attention);
	add_list(cases, s, &s->work);
	add_list(cases, s, &s->done);
	for (int state = JOB_COLLECTING; state <= JOB_IMPOSSIBLE; state++)
		json_object_set_new(counts, job_state_name((enum job_state)state), json_integer((json_int_t)s->by_state[state]));
	for (i = 0; i < s->problems.n; i++)
		json_array_append_new(problems, node_problem_json(&s->problems.list[i]));
	json_array_foreach(s->unassigned, i, one)
	{
		json_t *copy = json_pack("{s:O, s:O, s:O, s:O, s:O, s:O}", "instance", json_object_get(one, "instance"),
					 "classification", json_object_get(one, "classification"), "calling",
					 json_object_get(one, "calling"), "received", json_object_get(one, "received"), "reason",
					 json_object_get(one, "reason"), "count", json_object_get(one, "count"));

		json_array_append_new(unassigned, copy);
	}
	return json_pack(
		"{s:s, s:s, s:f, s:b, s:o, s:o, s:I, s:o, s:{s:I, s:I, s:I}, s:o, s:{s:I, s:I, s:I}, s:o, s:o, s:I, s:o, s:o, s:o}",
		"version", TOMONODE_VERSION, "aet", s->config->node.aet, "time", s->now, "healthy", status_is_healthy(s),
		"problems", problems, "counts", counts, "warned", (json_int_t)s->by_group[GROUP_WARNED], "cases", cases,
		"received", "instances", (json_int_t)s->totals.instances, "bytes", (json_int_t)s->totals.bytes, "waiting",
		(json_int_t)s->facts.unindexed, "destinations", destinations_json(s), "disk", "free",
		(json_int_t)s->facts.disk_free, "size", (json_int_t)s->facts.disk_size, "reserve",
		(json_int_t)s->config->node.reserve, "devices", devices ? json_incref(devices) : json_array(), "unassigned",
		unassigned, "orphans", (json_int_t)s->facts.orphans, "associations",
		node_associations_json(&s->facts.from_manager), "cluster", node_cluster_json(&s->facts.from_manager.cluster),
		"senders", json_fields_write_list(JSON_FIELDS(sender_fields), s->senders, sizeof(s->senders[0]), s->n_senders));
}
