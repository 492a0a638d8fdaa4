/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - replay events into a view in memory.
 *
 * - The state is computed by job_next() only; the details add what reports and the scheduler need.
 * - What is done at each wake-up of the node goes through the open jobs, and those of one case are found by an index, so that its
 * cost does not grow with the number of cases ever.
 * - A detail that is not a JSON object, or lacks a member that its event needs, makes the job JOB_IMPOSSIBLE, because an action
 * on incomplete data would be a guess.
 */
#include "node/jobs/jobs.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/base/sentence.h"
#include "node/config/kind.h"
#include "node/jobs/jobs_objects.h"
#include "node/jobs/jobs_sends.h"
#include "node/jobs/jobs_settled.h"
#include "node/jobs/metrics.h"
#include "node/jobs/patients.h"

static void set_text(char *ret, size_t size, const char *text)
{
	snprintf(ret, size, "%s", text ? text : "");
}

/* ---- the lists ---- */

static size_t find_first(struct job_view *const *list, size_t n, int64_t id)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (list[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct job_view *jobs_next_open(const struct jobs *jobs, int64_t after)
{
	size_t at = find_first(jobs->open, jobs->n_open, after + 1);

	return at < jobs->n_open ? jobs->open[at] : NULL;
}

struct job_view *jobs_in_memory(const struct jobs *jobs, int64_t id)
{
	size_t at = find_first(jobs->list, jobs->n, id);

	return at < jobs->n && jobs->list[at]->id == id ? jobs->list[at] : NULL;
}

struct job_view *jobs_find(const struct jobs *jobs, int64_t id)
{
	struct job_view *v = jobs_in_memory(jobs, id);

	if (!v && jobs->journal && id > 0 && jobs_read_one((struct jobs *)jobs, id) > 0)
		v = jobs_in_memory(jobs, id);
	return v;
}

static void view_free(struct job_view *v)
{
	if (!v)
		return;
	free(v->key);
	free(v->routing);
	free(v->header);
	free(v->further);
	free(v->companion_text);
	other_result_clear(&v->other);
	job_sends_free(v->sends, v->n_sends);
	free(v->objects);
	free(v->object_texts);
	free(v->warnings);
	free(v);
}

/* Insert a view into a list by its id. false: no memory. */
static bool insert_view(struct job_view ***list, size_t *n, size_t *capacity, struct job_view *v)
{
	size_t at = find_first(*list, *n, v->id);

	if (at < *n && (*list)[at] == v)
		return true;
	if (!list_grow(list, *n, capacity, sizeof(**list)))
		return false;
	memmove(&(*list)[at + 1], &(*list)[at], (*n - at) * sizeof(**list));
	(*list)[at] = v;
	(*n)++;
	return true;
}

static void remove_view(struct job_view **list, size_t *n, const struct job_view *v)
{
	size_t at = find_first(list, *n, v->id);

	if (at < *n && list[at] == v)
		memmove(&list[at], &list[at + 1], (--*n - at) * sizeof(list[0]));
}

static struct job_view *view_add(struct jobs *jobs, int64_t id)
{
	struct job_view *v;

	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->key = strdup("");
	if (!v->key) {
		free(v);
		return NULL;
	}
	v->id = id;
	v->revision = v->other.number = 1;
	if (!insert_view(&jobs->list, &jobs->n, &jobs->capacity, v)) {
		view_free(v);
		return NULL;
	}
	return v;
}

void jobs_clear(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->n; i++)
		view_free(jobs->list[i]);
	free(jobs->list);
	free(jobs->open);
	free(jobs->reached);
	jobs_index_clear(&jobs->by_study);
	jobs_index_clear(&jobs->by_series);
	memset(jobs, 0, sizeof(*jobs));
}

void jobs_remove(struct jobs *jobs, int64_t id)
{
	struct job_view *v = jobs_in_memory(jobs, id);

	if (!v)
		return;
	jobs_index_remove(&jobs->by_study, &v->study_link);
	jobs_index_remove(&jobs->by_series, &v->series_link);
	remove_view(jobs->open, &jobs->n_open, v);
	remove_view(jobs->list, &jobs->n, v);
	view_free(v);
}

/* ---- the jobs of a study and of a series ---- */

#define VIEW_OF(link, member) ((link) ? (struct job_view *)((char *)(link)-offsetof(struct job_view, member)) : NULL)

static struct job_view *newest_of(const struct jobs *jobs, enum settled_relation relation, uint64_t hash)
{
	return relation == SETTLED_STUDY ? VIEW_OF(jobs_index_find(&jobs->by_study, hash), study_link)
					 : VIEW_OF(jobs_index_find(&jobs->by_series, hash), series_link);
}

static uint64_t *read_mark(struct job_view *v, enum settled_relation relation)
{
	return relation == SETTLED_STUDY ? &v->study_read : &v->series_read;
}

/* The mark of the newest one says that the settled ones were read, so that they are not looked for at each decision. */
static struct job_view *jobs_of(const struct jobs *jobs, enum settled_relation relation, const char *key)
{
	uint64_t hash = jobs_index_hash(key, relation == SETTLED_STUDY ? 0 : 1);
	struct job_view *v = newest_of(jobs, relation, hash);
	bool read;

	if (!jobs->journal || (v && *read_mark(v, relation) == jobs->forgotten))
		return v;
	read = jobs_read_related((struct jobs *)jobs, relation, hash) >= 0;
	v = newest_of(jobs, relation, hash);
	if (v && read)
		*read_mark(v, relation) = jobs->forgotten;
	return v;
}

struct job_view *jobs_of_study(const struct jobs *jobs, const char *key)
{
	return jobs_of(jobs, SETTLED_STUDY, key);
}

struct job_view *jobs_of_series(const struct jobs *jobs, const char *key)
{
	return jobs_of(jobs, SETTLED_SERIES, key);
}

struct job_view *jobs_before_in_study(const struct job_view *v)
{
	struct jobs_link *link = jobs_index_before(&v->study_link);

	return VIEW_OF(link, study_link);
}

struct job_view *jobs_before_in_series(const struct job_view *v)
{
	struct jobs_link *link = jobs_index_before(&v->series_link);

	return VIEW_OF(link, series_link);
}

static bool add_to_indexes(struct jobs *jobs, struct job_view *v)
{
	v->study_link.hash = jobs_index_hash(v->key, 0);
	v->series_link.hash = jobs_index_hash(v->key, 1);
	v->study_link.id = v->series_link.id = v->id;
	return jobs_index_add(&jobs->by_study, &v->study_link) && jobs_index_add(&jobs->by_series, &v->series_link);
}

static bool lacks_instances(const struct job_view *v)
{
	const struct assemble *m = &v->members;

	return (v->state == JOB_COLLECTING || v->state == JOB_HELD) && (m->expected == 0 || m->instances < m->expected);
}

void jobs_frames_text(const struct jobs *jobs, const struct job_view *v, char *ret_text, size_t size)
{
	const struct kind *kind = kind_named(v->kind);
	long files = v->members.instances, frames = 1;

	ret_text[0] = '\0';
	for (size_t i = 0; lacks_instances(v) && i < jobs->n_open; i++) {
		const struct job_view *other = jobs->open[i];

		if (other->other.of == 0 && lacks_instances(other) && kind_keys_differ_in_frame(kind, v->key, other->key)) {
			files += other->members.instances;
			frames++;
		}
	}
	if (frames > 1)
		kind_frames_text(files, frames, ret_text, size);
}

struct job_send *job_view_find_send(const struct job_view *v, const char *destination)
{
	for (size_t i = 0; i < v->n_sends; i++)
		if (!strcmp(v->sends[i].destination, destination))
			return &v->sends[i];
	return NULL;
}

size_t job_view_count_sends(const struct job_view *v, enum send_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_sends; i++)
		n += v->sends[i].state == state && job_send_is_active(&v->sends[i]);
	return n;
}

const char *job_view_as_is_obstacle(const struct job_view *v)
{
	const struct kind *kind = kind_named(v->kind);
	const struct assemble *m = &v->members;

	if (m->expected > 0 && m->instances >= m->expected)
		return NULL; /* nothing is missing */
	if (!kind)
		return "this version cannot reconstruct cases of this kind";
	return kind->as_is_frames > 0 && m->frames >= kind->as_is_frames ? NULL : kind->as_is_refusal;
}

/* ---- apply each event to the view: 0, -ENOMEM, or -EBADMSG (the detail lacks a member) ---- */

/* Keep a member of a detail as text. */
static int set_json(char **ret_text, const json_t *value)
{
	char *text = json_array_size(value) > 0 ? json_dumps(value, JSON_COMPACT) : NULL;

	if (json_array_size(value) > 0 && !text)
		return -ENOMEM;
	free(*ret_text);
	*ret_text = text;
	return 0;
}

static int on_opened(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	const json_t *routing = json_object_get(detail, "routing");
	const char *key = json_get_text(detail, "key");
	int ret = key[0] ? other_result_read(detail, &v->other) : -EBADMSG;
	char *copy;

	if (ret < 0)
		return ret;
	copy = strdup(key);
	if (!copy)
		return -ENOMEM;
	free(v->key);
	v->key = copy;
	free(v->routing);
	v->routing = json_object_size(routing) > 0 ? json_dumps(routing, JSON_COMPACT) : NULL;
	if (!v->routing && json_object_size(routing) > 0)
		return -ENOMEM;
	v->newer_of = json_get_integer(detail, "newer_of");
	v->sweep = (int)json_get_integer(detail, "sweep");
	v->in_place = v->newer_of > 0 || v->sweep > 0;
	v->corrects = json_get_bool(detail, "corrects");
	v->again = json_get_bool(detail, "again");
	v->opened = row->time;
	v->revision_of = json_get_integer(detail, "revision_of");
	v->priority = (int)json_get_integer(detail, "priority"); /* of the case: a revision has the priority of its predecessor */
	if (json_get_integer(detail, "revision") > 0)
		v->revision = (int)json_get_integer(detail, "revision");
	set_text(v->kind, sizeof(v->kind), json_get_text(detail, "kind"));
	set_text(v->calling, sizeof(v->calling), json_get_text(detail, "calling"));
	set_text(v->study, sizeof(v->study), json_get_text(detail, "study"));
	set_text(v->accession, sizeof(v->accession), json_get_text(detail, "accession"));
	v->members.last = v->members.recorded = row->time; /* the quiet time starts here if no instance follows */
	return 0;
}

/* Digests of another key than the first cannot be compared with it. */
static void add_patient(struct job_view *v, const json_t *detail)
{
	struct patient_identity identity;
	uint32_t key;

	if (!patients_parse(json_get_text(detail, "identity"), &identity, &key) || (v->patients.seen && key != v->patients_key))
		return;
	v->patients_key = key;
	patient_set_add(&v->patients, &identity, json_get_integer(detail, "instance"));
}

static int on_instance(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	double acquired = json_get_number(detail, "acquired");

	if (!json_is_number(json_object_get(detail, "received")))
		return -EBADMSG;
	assemble_add(&v->members, json_get_integer(detail, "expected"), json_get_integer(detail, "frames"),
		     json_get_number(detail, "received"));
	assemble_lacks(&v->members, json_get_text(detail, "lacks"));
	v->members.usual = json_get_integer(detail, "usual");
	add_patient(v, detail);
	if (!v->frame[0])
		set_text(v->frame, sizeof(v->frame), json_get_text(detail, "frame"));
	if (acquired > 0 && (v->acquired <= 0 || acquired < v->acquired))
		v->acquired = acquired;
	v->attenuated = v->attenuated || json_get_bool(detail, "attenuation");
	v->waits_until = 0;
	v->lacks_companion = false;
	v->last_instance = row->seq;
	v->same_patient = 0; /* it was stated about other instances */
	v->patients_differ = false;
	free(v->header);
	v->header = NULL;
	if (v->state == JOB_COLLECTING)
		v->reason[0] = '\0';
	return 0;
}

/* A statement about the patient holds until another instance arrives, whatever else is retried. */
static int on_statement(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	const char *header = json_get_text(detail, "header");
	char *copy = header[0] ? strdup(header) : NULL;

	if (header[0] && !copy)
		return -ENOMEM;
	free(v->header);
	v->header = copy;
	v->same_patient = row->seq;
	return 0;
}

static int on_complete(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	const json_t *names = json_object_get(detail, "destinations"), *name;
	struct job_send *sends;
	size_t i, n = json_array_size(names);
	int ret;

	if (!json_is_array(names) || !json_get_text(detail, "protocol")[0] || n > CONFIG_NAMES_MAX)
		return -EBADMSG;
	if (set_json(&v->further, json_object_get(detail, "further")) < 0)
		return -ENOMEM;
	v->further_open = false;
	sends = calloc(n ? n : 1, sizeof(sends[0]));
	if (!sends)
		return -ENOMEM;
	json_array_foreach(names, i, name)
	{
		ret = json_is_string(name) ? job_send_begin(v, json_string_value(name), &sends[i]) : -EBADMSG;
		if (ret < 0) {
			job_sends_free(sends, n);
			return ret;
		}
	}
	job_sends_free(v->sends, v->n_sends);
	v->sends = sends;
	v->n_sends = n;
	set_text(v->protocol, sizeof(v->protocol), json_get_text(detail, "protocol"));
	set_text(v->route, sizeof(v->route), json_get_text(detail, "route"));
	v->completed = row->time;
	v->completed_seq = row->seq;
	v->attempts = v->crashes = v->space_tries = 0;
	v->not_before = v->waits_until = 0;
	v->companions = 0;
	free(v->companion_text);
	v->companion_text = NULL;
	if (json_get_text(detail, "companion")[0] && !(v->companion_text = strdup(json_get_text(detail, "companion"))))
		return -ENOMEM;
	v->reason[0] = '\0';
	/* What a person decided about the first job holds for its further results. */
	if (v->other.of > 0 && json_get_bool(detail, "as_is"))
		v->members.as_is = true;
	return v->other.of > 0 && json_get_bool(detail, "same_patient") ? on_statement(v, detail, row) : 0;
}

static int on_reconstructed(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	int ret = job_objects_apply_reconstructed(v, detail);

	if (ret < 0)
		return ret;
	v->reconstructed = row->time;
	v->space_tries = 0;
	free(v->warnings);
	v->warnings = NULL;
	if (json_get_text(detail, "warnings")[0] && !(v->warnings = strdup(json_get_text(detail, "warnings"))))
		return -ENOMEM;
	v->warned = v->warnings && !sentences_are_standing(v->warnings);
	if (json_get_text(detail, "device")[0])
		set_text(v->device, sizeof(v->device), json_get_text(detail, "device"));
	v->reason[0] = '\0';
	return 0;
}

static int on_send(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	int ret = job_sends_event(v, detail, row);

	if (ret == 0 && v->state == JOB_RECONSTRUCTED &&
	    v->finished > 0) { /* a late commitment: the job is no longer a dead letter */
		v->finished = 0;
		v->reason[0] = '\0';
	}
	return ret;
}

static int on_retry(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	v->attempts = v->crashes = v->space_tries = 0;
	v->not_before = 0;
	v->reason[0] = '\0';
	v->finished = 0;
	v->damaged = 0;
	v->waits_until = json_get_number(detail, "until");
	v->lacks_companion = false;
	v->members.as_is = json_get_bool(detail, "as_is");
	v->patients_differ = false;
	job_sends_retry(v);
	return json_get_bool(detail, "same_patient") ? on_statement(v, detail, row) : 0;
}

static int fill_in(struct job_view *v, const json_t *detail, const struct event_row *row)
{
	switch (row->event) {
	case EVENT_OPENED:
		return on_opened(v, detail, row);
	case EVENT_INSTANCE:
		return on_instance(v, detail, row);
	case EVENT_COMPLETE:
		return on_complete(v, detail, row);
	case EVENT_WAITS:
		v->waits_until = json_get_number(detail, "until");
		set_text(v->reason, sizeof(v->reason), json_get_text(detail, "reason"));
		return 0;
	case EVENT_COMPANION:
		v->companions++;
		return 0;
	case EVENT_STARTED:
		v->started = row->time;
		v->started_seq = row->seq;
		set_text(v->pilot, sizeof(v->pilot), json_get_text(detail, "pilot"));
		v->attempts++;
		v->reason[0] = '\0';
		set_text(v->device, sizeof(v->device), json_get_text(detail, "device"));
		return 0;
	case EVENT_CRASHED:
	case EVENT_RESULT_LOST: /* counts as a crash: otherwise a disk that damages every result would make the node repeat the
				   case forever */
		v->crashes++;
		/* fall through */
	case EVENT_INTERRUPTED:
		v->not_before = json_get_number(detail, "next");
		v->space_tries += json_get_bool(detail, "space");
		/* fall through */
	case EVENT_HELD:
		v->damaged = row->event == EVENT_HELD ? json_get_integer(detail, "damaged") : 0;
		v->patients_differ = row->event == EVENT_HELD && json_get_bool(detail, "patients");
		v->patients_other = v->patients_differ && json_get_integer(detail, "other") > 0;
		v->lacks_companion = row->event == EVENT_HELD && json_get_bool(detail, "lacks_companion");
		v->waits_until = 0;
		set_text(v->reason, sizeof(v->reason), json_get_text(detail, "reason"));
		return 0;
	case EVENT_RECONSTRUCTED:
		return on_reconstructed(v, detail, row);
	case EVENT_SEND_FAILED:
	case EVENT_SENT:
	case EVENT_SEND_REFUSED:
	case EVENT_COMMIT_REQUESTED:
	case EVENT_COMMIT_ACCEPTED:
	case EVENT_COMMIT_REQUEST_FAILED:
	case EVENT_COMMITTED:
	case EVENT_COMMIT_FAILED:
	case EVENT_COMMIT_REFUSED:
		return on_send(v, detail, row);
	case EVENT_FALLBACK:
		return job_sends_fallback(v, detail, row);
	case EVENT_PRIORITY:
		if (!json_is_integer(json_object_get(detail, "priority")))
			return -EBADMSG;
		v->priority = (int)json_get_integer(detail, "priority");
		return 0;
	case EVENT_RETRY:
		return on_retry(v, detail, row);
	case EVENT_FAILED:
	case EVENT_DEAD_LETTER:
	case EVENT_CANCEL:
		set_text(v->reason, sizeof(v->reason), json_get_text(detail, "reason"));
		/* fall through */
	case EVENT_DELIVERED:
		v->finished = row->time;
		v->seen = 0;
		return 0;
	case EVENT_CLEANED:
		v->never_delivered = !strcmp(json_get_text(detail, "why"), "cancelled");
		return 0;
	case EVENT_STORED:
		return 0;
	}
	return 0;
}

static void quarantine_job(struct job_view *v, const struct event_row *row, const char *why)
{
	v->state = JOB_IMPOSSIBLE;
	snprintf(v->reason, sizeof(v->reason), "journal row %lld: %s", (long long)row->seq, why);
}

/* ---- settled jobs ---- */

bool job_view_is_settled(const struct job_view *v)
{
	return v->state == JOB_CLEANED || (v->state == JOB_DELIVERED && (!v->further || v->further_open));
}

struct jobs_reached *jobs_get_reached(struct jobs *jobs, const char *destination)
{
	for (size_t i = 0; i < jobs->n_reached; i++)
		if (!strcmp(jobs->reached[i].destination, destination))
			return &jobs->reached[i];
	if (!list_grow(&jobs->reached, jobs->n_reached, &jobs->reached_capacity, sizeof(*jobs->reached)))
		return NULL;
	jobs->reached[jobs->n_reached] = (struct jobs_reached){.reached = 0};
	set_text(jobs->reached[jobs->n_reached].destination, CONFIG_NAME_SIZE, destination);
	return &jobs->reached[jobs->n_reached++];
}

bool job_send_is_unanswered(const struct job_send *s)
{
	return s->state == SEND_REFUSED && s->refusal && s->refusal->unanswered;
}

bool job_send_has_reached(const struct job_send *s)
{
	return s->since <= 0 && s->status[0];
}

/* Keep what the deliveries of a job that settles say about its destinations. false: no memory. */
static bool keep_reached(struct jobs *jobs, struct job_view *v)
{
	for (size_t i = 0; i < v->n_sends; i++) {
		struct job_send *s = &v->sends[i];
		struct jobs_reached *r = jobs_get_reached(jobs, s->destination);

		if (!r)
			return false;
		if (job_send_has_reached(s) && s->time > r->reached)
			r->reached = s->time;
		if (s->state == SEND_DONE && s->sent > r->sent)
			r->sent = s->sent;
		s->blocked_by = NULL; /* delivery_queue_update() no longer sets it */
	}
	return true;
}

static void observe_one(struct job_view *v, double now)
{
	assemble_clamp_time(&v->members, now);
	if (v->finished > 0 && (v->seen <= 0 || v->seen > now))
		v->seen = now;
}

void jobs_observe_clock(struct jobs *jobs, double now)
{
	size_t open = 0;

	for (size_t i = 0; now < jobs->observed && i < jobs->n; i++) /* the clock was set back: also the settled ones */
		observe_one(jobs->list[i], now);
	jobs->observed = now;
	for (size_t i = 0; i < jobs->n_open; i++) {
		struct job_view *v = jobs->open[i];

		observe_one(v, now);
		if (!job_view_is_settled(v) || !keep_reached(jobs, v))
			jobs->open[open++] = v;
	}
	jobs->n_open = open;
}

void jobs_take_from_open(struct jobs *jobs, const struct job_view *v)
{
	remove_view(jobs->open, &jobs->n_open, v);
}

/* Is the event already in the view? An event of a job that is not in memory: it was settled, and is read with all its events. */
static int is_applied(struct jobs *jobs, const struct event_row *row)
{
	struct job_view *v = jobs_in_memory(jobs, row->job);

	if (!v && row->job > 0 && !(row->known && row->event == EVENT_OPENED)) {
		int ret = jobs_read_one(jobs, row->job);

		if (ret < 0)
			return ret;
		v = jobs_in_memory(jobs, row->job);
	}
	return v && row->seq <= v->seq;
}

static int apply_new(void *ctx, const struct event_row *row)
{
	struct jobs *jobs = ctx;
	int ret = jobs->journal ? is_applied(jobs, row) : 0;

	if (ret > 0 && row->seq > jobs->last_seq)
		jobs->last_seq = row->seq;
	if (ret == 0) {
		ret = jobs_apply(jobs, row);
		if (ret == 0 && jobs->metrics)
			metrics_count(jobs->metrics, jobs_in_memory(jobs, row->job), row);
	}
	return ret < 0 ? ret : 0;
}

int jobs_apply(struct jobs *jobs, const struct event_row *row)
{
	struct job_view *v = jobs_in_memory(jobs, row->job);
	enum job_state next;
	json_t *detail = NULL;
	char why[160];
	int ret = 0;

	if (row->seq > jobs->last_seq)
		jobs->last_seq = row->seq;
	if (!v)
		v = view_add(jobs, row->job);
	if (!v || !insert_view(&jobs->open, &jobs->n_open, &jobs->open_capacity, v))
		return -ENOMEM;
	v->seq = row->seq;
	v->changed = row->time;
	v->recorded = false;
	if (v->state == JOB_IMPOSSIBLE)
		return 0; /* keep the first reason */
	if (!row->known) {
		quarantine_job(v, row, "this version does not know the event");
		return 0;
	}
	next = job_next(v->state, row->event);
	if (next == JOB_IMPOSSIBLE) {
		snprintf(why, sizeof(why), "event '%s' is not allowed in state '%s'", job_event_name(row->event),
			 job_state_name(v->state));
		quarantine_job(v, row, why);
		return 0;
	}
	v->state = next;
	detail = json_loads(row->detail, JSON_REJECT_DUPLICATES, NULL);
	ret = json_is_object(detail) ? fill_in(v, detail, row) : -EBADMSG;
	if (ret == 0 && row->event == EVENT_OPENED && !add_to_indexes(jobs, v))
		ret = -ENOMEM;
	if (ret == -EBADMSG) {
		snprintf(why, sizeof(why), "the detail of event '%s' cannot be read", job_event_name(row->event));
		quarantine_job(v, row, why);
		ret = 0;
	}
	json_decref(detail);
	return ret;
}

static int apply_each(void *ctx, const struct event_row *row)
{
	return jobs_apply(ctx, row);
}

static int replay_since(struct jobs *jobs, struct journal *j, int64_t job, int64_t after, struct err *err)
{
	int ret = journal_replay(j, job, after, job ? apply_each : apply_new, jobs, err);

	if (ret < 0 && err && !err->code && jobs->n_lost > 0) /* one that was settled could not be read */
		*err = jobs->lost[jobs->n_lost - 1].why;
	return ret == -ENOMEM && err && !err->code ? err_set(err, ENOMEM, "no memory for the jobs") : ret;
}

int jobs_refresh(struct jobs *jobs, struct journal *j, int64_t job, struct err *err)
{
	if (job == 0 && !jobs->journal && jobs->n == 0) {
		int ret = jobs_begin(jobs, j, 0, err);

		if (ret < 0)
			return ret;
	}
	if (job == 0) {
		jobs->journal = j;
		jobs->n_lost = 0;
	}
	return replay_since(jobs, j, job, jobs->last_seq, err);
}

int jobs_refresh_one(struct jobs *jobs, struct journal *j, int64_t job, struct err *err)
{
	const struct job_view *v = jobs_in_memory(jobs, job);

	return replay_since(jobs, j, job, v ? v->seq : 0, err);
}
