/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/case_results.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/config/kind.h"
#include "node/jobs/jobs_settled.h"
#include "node/store/event.h"

/* The first job of the case: all results of its instances refer to it. */
static int64_t root_of(const struct job_view *v)
{
	return v->other.of > 0 ? v->other.of : v->id;
}

bool case_results_same_images(const struct job_view *a, const struct job_view *b)
{
	return root_of(a) == root_of(b);
}

bool case_results_same(const struct job_view *a, const struct job_view *b)
{
	return root_of(a) == root_of(b) && a->members.instances == b->members.instances;
}

static bool waits_for_work(const struct job_view *v)
{
	return v->state == JOB_READY || (v->state == JOB_COLLECTING && v->other.of > 0);
}

bool case_results_follow(const struct jobs *jobs, const struct job_view *v)
{
	if (v->further && !v->further_open)
		return true;
	for (size_t i = jobs->n_open; i-- > 0 && jobs->open[i]->id >= root_of(v);)
		if (jobs->open[i] != v && waits_for_work(jobs->open[i]) && case_results_same(jobs->open[i], v))
			return true;
	return false;
}

/* ---- the `opened` event ---- */

static int keep_detail(void *ctx, const struct event_row *row)
{
	json_t **detail = ctx;

	*detail = json_loads(row->detail, 0, NULL);
	return 1; /* `opened` is the first event */
}

json_t *case_results_opening(struct journal *j, int64_t job, struct err *err)
{
	json_t *detail = NULL;
	int ret = journal_replay(j, job, 0, keep_detail, &detail, err);

	if (ret == 0 && !json_is_object(detail))
		err_set(err, EBADMSG, "the `opened` event of job %lld cannot be read", (long long)job);
	if (ret == 0 && json_is_object(detail))
		return detail;
	json_decref(detail);
	return NULL;
}

/* Make the `opened` event of a further result of v from that of v. Members that are not given remain those of v. */
static json_t *make_opening(struct journal *j, const struct job_view *v, const struct other_result *other, const json_t *members,
			    struct err *err)
{
	json_t *detail = case_results_opening(j, v->id, err);

	if (!detail)
		return NULL;
	json_object_del(detail, "revision_of");
	json_object_del(detail, "reason");
	json_object_del(detail, "by");
	json_object_update_new(detail, json_pack("{s:i, s:b, s:b, s:o}", "priority", v->priority, "as_is", v->members.as_is,
						 "same_patient", v->same_patient > 0, "header",
						 event_json_text(v->header ? v->header : "")));
	json_object_update(detail, (json_t *)members);
	other_result_write(other, detail);
	return detail;
}

/* The number and the place of the result were found among the jobs: none may be missing. */
static int open_result(struct journal *j, const struct jobs *jobs, const struct job_view *v, json_t *opening, double now,
		       int64_t *ret_job, struct err *err)
{
	char *text = opening ? event_json_dump(opening) : NULL;
	int ret = text ? jobs_whole(jobs, v, err) : err && err->code ? -err->code : -ENOMEM;

	if (text && ret == 0)
		ret = journal_open_result(j, v->id, v->members.instances, text, now, ret_job, err);
	else if (!text && err && !err->code)
		err_set(err, ENOMEM, "no memory for a further result of job %lld", (long long)v->id);
	free(text);
	return ret;
}

/* ---- the other protocols of the routes ---- */

/* Return true if a first job has a job for this further protocol. Such jobs are opened soon after it. */
static bool has_result(const struct jobs *jobs, const struct job_view *v, const char *protocol)
{
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o)) {
		if (o->other.of == v->id && o->other.redo_of == 0 && case_results_same(o, v) &&
		    !strcmp(o->other.protocol, protocol))
			return true;
	}
	return false;
}

/* Return the newest job for this protocol of earlier revisions of the case, or of fewer instances of v; NULL: none. */
static const struct job_view *find_earlier(const struct jobs *jobs, const struct job_view *v, const char *protocol)
{
	const struct job_view *newest = NULL;

	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (o->other.of > 0 && o->other.of <= v->id && o->other.redo_of == 0 && !strcmp(o->other.protocol, protocol) &&
		    !strcmp(o->key, v->key) && (!newest || o->id > newest->id))
			newest = o;
	return newest;
}

int case_results_open_next(struct journal *j, const struct jobs *jobs, const struct job_view *v, double now, struct err *err)
{
	json_t *further = v->further ? json_loads(v->further, 0, NULL) : NULL, *one;
	int ret = 0;
	size_t i;

	json_array_foreach(further, i, one)
	{
		const char *protocol = json_string_value(json_object_get(one, "protocol"));
		struct other_result other = {.of = root_of(v), .number = (int)i + 2};
		const struct job_view *before;
		json_t *opening;
		int64_t job;

		if (!protocol || has_result(jobs, v, protocol))
			continue;
		before = find_earlier(jobs, v, protocol);
		snprintf(other.protocol, sizeof(other.protocol), "%s", protocol);
		opening = make_opening(j, v, &other, one, err);
		if (opening && before)
			json_object_set_new(opening, "revision_of", json_integer((json_int_t)before->id));
		ret = open_result(j, jobs, v, opening, now, &job, err);
		ret = ret == 0 ? 1 : ret;
		break;
	}
	json_decref(further);
	return ret;
}

bool case_results_is_replaced(const struct jobs *jobs, const struct job_view *v)
{
	if (v->other.of == 0 || v->other.redo_of > 0 ||
	    (v->state != JOB_COLLECTING && v->state != JOB_HELD && v->state != JOB_READY))
		return false;
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (o->revision_of == v->id && o->other.of > 0)
			return true;
	return false;
}

/* ---- complete ---- */

const char *case_results_protocol(const struct job_view *v, char ret_text[OTHER_RESULT_TEXT])
{
	return other_result_text(v->protocol[0] ? v->protocol : v->other.protocol, v->other.settings, ret_text);
}

static void list_protocols(const struct config *config, const char *kind, char *ret_text, size_t size)
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < config->n_protocols && n < size; i++)
		if (!strcmp(kind_of(config->protocols[i].kind)->name, kind))
			n += (size_t)snprintf(ret_text + n, size - n, "%s%s", n ? ", " : "", config->protocols[i].name);
}

/* Check that a case of this kind can be reconstructed with a protocol and settings. recorded: they were accepted earlier, maybe
 * with a key that has no effect. Errors: ENOKEY, else EINVAL. */
static int check_protocol(const struct config *config, const struct job_view *v, const char *name, const char *settings,
			  bool recorded, struct err *err)
{
	const struct protocol_conf *found = config_protocol(config, name);
	char allowed[600], why[KEY_EFFECT_SIZE];
	int ret, code = recorded ? ENOKEY : EINVAL;
	struct protocol_conf *copy;

	if (!found) {
		list_protocols(config, v->kind, allowed, sizeof(allowed));
		return err_set(err, code, "protocol '%s' is not in the configuration; allowed for cases of kind %s: %s", name,
			       v->kind, allowed);
	}
	if (strcmp(kind_of(found->kind)->name, v->kind) != 0)
		return err_set(err, code, "protocol '%s' is for cases of kind %s, but job %lld is of kind %s", name,
			       kind_of(found->kind)->name, (long long)v->id, v->kind);
	copy = malloc(sizeof(*copy));
	if (!copy)
		return err_set(err, ENOMEM, "no memory for a protocol");
	*copy = *found;
	ret = other_result_apply(copy, settings, err);
	if (ret == 0 && !recorded && config_key_without_effect(found, copy, "", why))
		ret = err_set(err, EINVAL, "%s", why);
	free(copy);
	return err_remap(ret, EINVAL, code, err);
}

json_t *case_results_complete(struct journal *j, const struct config *config, const struct job_view *v, struct err *err)
{
	json_t *opening = case_results_opening(j, v->id, err), *destinations, *detail = NULL;
	const char *header;
	bool same_patient;

	if (!opening)
		return NULL;
	destinations = json_object_get(opening, "destinations");
	/* a statement about this job is newer than that about the first one */
	same_patient = v->same_patient > 0 || json_get_bool(opening, "same_patient");
	header = v->same_patient > 0 ? (v->header ? v->header : "") : json_get_text(opening, "header");
	if (check_protocol(config, v, v->other.protocol, v->other.settings, true, err) == 0)
		detail = json_pack("{s:s, s:I, s:s, s:s, s:O, s:b, s:b, s:s}", "why",
				   v->other.redo_of > 0 ? "requested again by a person" : "another result of a complete case",
				   "instances", (json_int_t)v->members.instances, "route", json_get_text(opening, "route"),
				   "protocol", v->other.protocol, "destinations", destinations, "as_is",
				   json_get_bool(opening, "as_is"), "same_patient", same_patient, "header", header);
	if (!detail && !err->code)
		err_set(err, EBADMSG, "the `opened` event of job %lld cannot be read", (long long)v->id);
	json_decref(opening);
	return detail;
}

/* ---- redo ---- */

const char *redo_obstacle(const struct job_view *v)
{
	switch (v->state) {
	case JOB_COLLECTING:
		return v->other.of > 0 ? "it has not begun: the node must carry out its own request first"
				       : "its images are still arriving";
	case JOB_READY:
		return v->other.of == 0 && v->started_seq == 0 ? "it has not been started: more images may arrive" : NULL;
	case JOB_HELD:
		if (v->patients_differ)
			return "it is held because its headers name different patients: `tomonode retry` with --same-patient "
			       "first";
		if (v->damaged > 0)
			return "it is held because images are damaged: let the modality send them again";
		return v->started_seq > v->last_instance ? NULL : "it is held as incomplete: `tomonode retry` first";
	case JOB_CANCELLED:
		return "it is cancelled: `tomonode retry` continues it";
	case JOB_CLEANED:
		return "its images were removed by retention: let the modality or the archive send them again";
	case JOB_NONE:
	case JOB_IMPOSSIBLE:
		return "it is quarantined: its events in the journal are damaged";
	default:
		return NULL;
	}
}

void redo_hint(const struct job_view *v, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (!redo_obstacle(v) && v->n_sends > 0)
		snprintf(ret_text, size, "; to reconstruct its images again: `tomonode redo %lld`", (long long)v->id);
}

/* Return the job that a person has requested for the same instances, protocol and settings and that is not done; NULL: none. */
static const struct job_view *find_pending(const struct jobs *jobs, const struct job_view *v, const struct other_result *other)
{
	const char *settings = other->settings ? other->settings : "";

	for (size_t i = jobs->n_open; i-- > 0 && jobs->open[i]->id > root_of(v);) {
		const struct job_view *o = jobs->open[i];

		if (o->other.redo_of > 0 && case_results_same(o, v) && (waits_for_work(o) || o->state == JOB_RUNNING) &&
		    !strcmp(o->other.protocol, other->protocol) && !strcmp(o->other.settings ? o->other.settings : "", settings))
			return o;
	}
	return NULL;
}

/* The number after those of all results, the ones that are not opened yet included. */
static int next_number(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *root = jobs_find(jobs, root_of(v));
	json_t *further = root && root->further ? json_loads(root->further, 0, NULL) : NULL;
	int most = 1 + (int)json_array_size(further);

	json_decref(further);
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (root_of(o) == root_of(v) && o->other.number > most)
			most = o->other.number;
	return most + 1;
}

/* Return the settings as in struct other_result. ENOMEM, EINVAL: they are too long. */
static int write_settings(const struct redo_request *request, char **ret_settings, struct err *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < request->n_settings; i++)
		json_array_append_new(list, event_json_text(request->settings[i]));
	*ret_settings = request->n_settings > 0 ? event_json_dump(list) : NULL;
	if (request->n_settings == 0)
		json_decref(list);
	else if (!*ret_settings)
		return err_set(err, ENOMEM, "no memory for the settings");
	if (*ret_settings && strlen(*ret_settings) >= OTHER_SETTINGS_SIZE)
		return err_set(err, EINVAL, "the settings have more than %d characters together", OTHER_SETTINGS_SIZE - 1);
	return 0;
}

static bool is_fallback(const struct job_view *v, const char *destination)
{
	for (size_t i = 0; i < v->n_sends; i++)
		if (!strcmp(v->sends[i].fallback, destination))
			return true;
	return false;
}

/* List the destinations of the route; their fallbacks get the new result when they fail again. */
static json_t *destinations_of(const struct job_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_sends && json_array_size(list) < CONFIG_NAMES_MAX; i++)
		if (!is_fallback(v, v->sends[i].destination))
			json_array_append_new(list, json_string(v->sends[i].destination));
	return list;
}

int redo_open(struct journal *j, const struct jobs *jobs, const struct config *config, const struct job_view *v,
	      const struct redo_request *request, double now, int64_t *ret_job, struct err *err)
{
	struct other_result other = {.of = root_of(v), .number = next_number(jobs, v), .redo_of = v->id};
	const char *why = redo_obstacle(v);
	const struct job_view *pending = NULL;
	json_t *opening, *members;
	char reason[200];
	int ret;

	if (why)
		return err_set(err, ESTALE, "job %lld cannot be reconstructed again: %s", (long long)v->id, why);
	if (other.number > RESULTS_MAX)
		return err_set(err, EINVAL, "job %lld has %d results already", (long long)v->id, RESULTS_MAX);
	snprintf(other.protocol, sizeof(other.protocol), "%s", request->protocol ? request->protocol : v->protocol);
	snprintf(other.related, sizeof(other.related), "%s", v->n_objects > 0 ? v->objects[0].series : "");
	ret = write_settings(request, &other.settings, err);
	if (ret == 0)
		ret = check_protocol(config, v, request->protocol ? request->protocol : v->protocol, other.settings, false, err);
	if (ret == 0)
		pending = find_pending(jobs, v, &other);
	if (pending)
		ret = err_set(err, ESTALE, "job %lld, which waits or runs, makes the same result again", (long long)pending->id);
	else if (ret == 0 && v->n_sends == 0)
		ret = err_set(err, ESTALE, "job %lld cannot be reconstructed again: it has no destinations", (long long)v->id);
	if (ret < 0) {
		other_result_clear(&other);
		return ret;
	}
	snprintf(reason, sizeof(reason), "requested %s by %.100s", request->where, request->by);
	members = json_pack("{s:o, s:o, s:o}", "destinations", destinations_of(v), "by", event_json_text(request->by), "reason",
			    event_json_text(reason));
	opening = make_opening(j, v, &other, members, err);
	ret = open_result(j, jobs, v, opening, now, ret_job, err);
	json_decref(members);
	other_result_clear(&other);
	return ret;
}
