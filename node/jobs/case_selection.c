/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/case_selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/jobs/case_results.h"
#include "node/jobs/jobs_settled.h"
#include "node/store/event.h"

/* The images of a case, with the newest object or the exposure of each. */
struct selection {
	struct selected {
		int64_t member, newer; /* ids of instances; newer 0: none */
		struct exposure_facts exposure;
	} * list;
	size_t n, capacity;
	const char *key;
	bool repairs; /* only newer objects that repair */
	bool unknown; /* the exposure of an image is not known: it has none of the attributes, or an earlier version indexed it */
	long n_newer;
};

/* False: there are no facts. */
static bool read_exposure(const char *text, struct exposure_facts *ret_facts)
{
	json_t *detail = json_loads(text, 0, NULL);
	const json_t *list = json_object_get(detail, "exposure");

	for (size_t k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		const char *value = json_string_value(json_array_get(list, k));

		snprintf(ret_facts->value[k], sizeof(ret_facts->value[k]), "%s", value ? value : "");
	}
	json_decref(detail);
	return list != NULL;
}

static int add_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct selection *s = ctx;

	if (row->companion)
		return 0;
	if (!list_grow(&s->list, s->n, &s->capacity, sizeof(*s->list)))
		return -ENOMEM;
	s->list[s->n] = (struct selected){.member = row->id};
	if (!read_exposure(detail, &s->list[s->n++].exposure))
		s->unknown = true;
	return 0;
}

/* A newer object of another case (its series or side was corrected, too) replaces nothing. */
static bool is_usable(const struct selection *s, const char *text)
{
	json_t *detail = json_loads(text, 0, NULL);
	const char *key = json_string_value(json_object_get(detail, "key"));
	bool usable = key && !strcmp(key, s->key) && (!s->repairs || json_get_bool(detail, "repairs"));

	json_decref(detail);
	return usable;
}

/* Called in order of arrival: the last one counts. */
static int replace_member(void *ctx, const struct instance_row *row, const char *detail, int64_t member)
{
	struct selection *s = ctx;

	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].member == member && is_usable(s, detail)) {
			s->n_newer += s->list[i].newer == 0;
			s->list[i].newer = row->id;
		}
	return 0;
}

/* List the images of a job. newer: with their newest objects. */
static int list_images(struct journal *j, const struct job_view *v, bool newer, bool repairs, struct selection *ret,
		       struct err *err)
{
	struct selection s = {.key = v->key, .repairs = repairs};
	int rc = journal_each_member(j, v->id, add_member, &s, err);

	if (rc == 0 && newer)
		rc = journal_each_newer(j, v->id, replace_member, &s, err);
	if (rc < 0) {
		free(s.list);
		return err && !err->code ? err_set(err, -rc, "no memory for the images of job %lld", (long long)v->id) : rc;
	}
	*ret = s;
	return 0;
}

static bool was_reconstructed(const struct jobs *jobs, const struct job_view *v)
{
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (!strcmp(o->key, v->key) && o->reconstructed > 0 && o->state != JOB_CLEANED)
			return true;
	return false;
}

const char *case_newer_obstacle(const struct jobs *jobs, const struct job_view *v)
{
	if (v->other.of > 0)
		return "it is a further result: the images are those of its first job";
	if (v->state != JOB_COLLECTING && v->state != JOB_HELD && v->state != JOB_FAILED && v->state != JOB_CANCELLED)
		return "it is not unfinished, held, failed or cancelled";
	if (was_reconstructed(jobs, v))
		return "its images were reconstructed: newer objects need UIDs of their own";
	return NULL;
}

long case_newer_count(struct journal *j, const struct job_view *v, bool repairs, struct err *err)
{
	struct selection s = {0};
	int rc = list_images(j, v, true, repairs, &s, err);

	if (rc < 0)
		return rc;
	free(s.list);
	return s.n_newer;
}

/* The `opened` event of the new case: that of the earlier one, and why. more: further members, released. */
static char *make_opening(struct journal *j, const struct job_view *v, const char *reason, const char *by, json_t *more)
{
	json_t *detail = case_results_opening(j, v->id, NULL);

	json_object_update(detail, more);
	json_decref(more);
	json_object_update_new(detail, json_pack("{s:i, s:I, s:i, s:o}", "revision", v->revision + 1, "revision_of",
						 (json_int_t)v->id, "priority", v->priority, "reason", event_json_text(reason)));
	if (by)
		json_object_set_new(detail, "by", event_json_text(by));
	return event_json_dump(detail);
}

/* Open a case with the newer objects, or the images, of a list; members: of its `opened` event, released. */
static int open_selection(struct journal *j, const struct jobs *jobs, const struct job_view *v, const struct selection *s,
			  const char *reason, const char *by, json_t *members, double now, int64_t *ret_job, struct err *err)
{
	int64_t *ids = calloc(s->n + 1, sizeof(ids[0]));
	char *opening = make_opening(j, v, reason, by, members);
	char *cancel = event_json_dump(json_pack("{s:o}", "reason", event_json_text(reason)));
	int rc = -ENOMEM;

	for (size_t i = 0; ids && i < s->n; i++)
		ids[i] = s->list[i].newer ? s->list[i].newer : s->list[i].member;
	if (ids && opening && cancel)
		rc = jobs_whole(jobs, v, err);
	if (rc == 0)
		rc = journal_open_selection(j, v->id, jobs->last_seq, ids, s->n, opening, cancel, now, ret_job, err);
	else if (rc == -ENOMEM && err && !err->code)
		err_set(err, ENOMEM, "no memory for a case in place of job %lld", (long long)v->id);
	free(ids);
	free(opening);
	free(cancel);
	if (rc == 0)
		log_event(LOG_WARNING, "job-replaced", "job=%lld by=%lld reason=%s", (long long)v->id, (long long)*ret_job,
			  log_quote(reason));
	return rc;
}

int case_newer_open(struct journal *j, const struct jobs *jobs, const struct job_view *v, const char *where, const char *by,
		    double now, int64_t *ret_job, struct err *err)
{
	const char *obstacle = case_newer_obstacle(jobs, v);
	struct selection s;
	char reason[240];
	int rc;

	if (obstacle)
		return err_set(err, ESTALE, "job %lld: %s", (long long)v->id, obstacle);
	rc = list_images(j, v, true, !by, &s, err);
	if (rc < 0)
		return rc;
	if (s.n_newer == 0)
		rc = err_set(err, ENOENT, "job %lld: no newer object of its images is stored", (long long)v->id);
	if (by)
		snprintf(reason, sizeof(reason),
			 "replaced: a case with %ld newer object%s under the same UIDs, requested %s by %.60s", s.n_newer,
			 plural(s.n_newer), where, by);
	else
		snprintf(reason, sizeof(reason),
			 "replaced: a case with %ld newer object%s, because the pixels of the earlier one%s cannot be read",
			 s.n_newer, plural(s.n_newer), plural(s.n_newer));
	if (rc == 0)
		rc = open_selection(j, jobs, v, &s, reason, by,
				    json_pack("{s:I, s:b}", "newer_of", (json_int_t)v->id, "corrects", by != NULL), now, ret_job,
				    err);
	free(s.list);
	return rc;
}

static bool is_given_up(const struct job_view *v)
{
	return v->state == JOB_CANCELLED || (v->state == JOB_CLEANED && v->never_delivered);
}

/* The job that received the images of a job: of a sweep, and of its further results, the one that has all sweeps; 0: not known. */
static int64_t receiver_of(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *first = v->other.of > 0 ? jobs_find(jobs, v->other.of) : v;

	return !first ? 0 : first->sweep > 0 ? first->revision_of : first->id;
}

/* Was each image of a case that a person cancelled before it had a result sent again for this one? */
static bool was_sent_again(const struct jobs *jobs, const struct job_view *older, const struct job_view *newer)
{
	int64_t job = newer->again && is_given_up(older) && older->reconstructed <= 0 && !strcmp(older->key, newer->key)
			      ? receiver_of(jobs, newer)
			      : 0;

	return job > older->id && jobs->journal && journal_is_sent_again(jobs->journal, older->id, job, NULL) == 1;
}

bool case_newer_corrects(const struct jobs *jobs, const struct job_view *a, const struct job_view *b)
{
	const struct job_view *newer = a->id > b->id ? a : b, *older = a->id > b->id ? b : a;

	while (newer && newer->id > older->id && !was_sent_again(jobs, older, newer)) {
		if (!newer->corrects)
			return false;
		newer = jobs_find(jobs, newer->newer_of);
	}
	return newer && newer->id >= older->id;
}

const struct job_view *case_replaced_by(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *found = NULL; /* the first one: the later ones are further results */

	for (const struct job_view *o = is_given_up(v) ? jobs_of_study(jobs, v->key) : NULL; o; o = jobs_before_in_study(o))
		if (o->id > v->id && !is_given_up(o) && !strcmp(o->key, v->key) && case_newer_corrects(jobs, o, v))
			found = o;
	return found;
}

/* ---- sweeps ---- */

static bool may_be_divided(const struct job_view *v)
{
	return v->other.of == 0 &&
	       (v->state == JOB_COLLECTING || v->state == JOB_HELD || v->state == JOB_FAILED || v->state == JOB_CANCELLED);
}

static int divide_sweeps(const struct selection *s, const struct job_view *v, bool proved, struct exposures *ret_sweeps,
			 struct err *err)
{
	struct exposure_facts *facts = calloc(s->n + 1, sizeof(*facts));
	int rc = 0;

	if (!facts)
		return err_set(err, ENOMEM, "no memory for the images of job %lld", (long long)v->id);
	for (size_t i = 0; i < s->n; i++)
		facts[i] = s->list[i].exposure;
	/* of too many images, weaker signs are enough: a person decides */
	if (!s->unknown)
		rc = exposures_prove(facts, s->n, ret_sweeps, err);
	if (!s->unknown && rc == 0 && !proved && v->members.expected > 0 && v->members.instances > v->members.expected)
		rc = exposures_find(facts, s->n, ret_sweeps, err);
	if (rc > 0)
		rc = exposures_date(ret_sweeps, facts, s->n, err);
	else
		ret_sweeps->n = 0;
	free(facts);
	return rc < 0 ? rc : ret_sweeps->n;
}

int case_sweeps_find(struct journal *j, const struct job_view *v, bool proved, struct exposures *ret_sweeps, struct err *err)
{
	struct selection s;
	int rc = may_be_divided(v) ? list_images(j, v, false, false, &s, err) : 1;

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = divide_sweeps(&s, v, proved, ret_sweeps, err);
	free(s.list);
	return rc;
}

int case_sweeps_offered(struct journal *j, const struct job_view *v, struct exposures *ret_sweeps)
{
	if (!j || !v->reason[0] || case_sweeps_find(j, v, false, ret_sweeps, NULL) <= 0)
		ret_sweeps->n = 0;
	return ret_sweeps->n;
}

void case_sweep_text(const struct exposures *sweeps, int number, char *ret_text, size_t size)
{
	const struct exposure *e = &sweeps->list[number - 1];
	char value[2 * DICOM_UID_SIZE + 4];
	uint32_t tag;
	const char *name = exposures_attribute(sweeps, &tag);

	exposure_text(e, value, sizeof(value));
	if (e->moment[0])
		snprintf(ret_text, size,
			 e->images == 1 ? "sweep %d of %s: %d image with %s %s %s" : "sweep %d of %s: %d images with %s %s %s",
			 number, e->moment, e->images, name, tag_text(tag), value);
	else
		snprintf(ret_text, size,
			 e->images == 1 ? "sweep %d: %d image with %s %s %s" : "sweep %d: %d images with %s %s %s", number,
			 e->images, name, tag_text(tag), value);
}

/* The id of the first case of which it is a revision, of a revision, and so on. */
static int64_t first_revision(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *before;

	while (v->revision_of > 0 && v->revision_of < v->id && (before = jobs_find(jobs, v->revision_of)))
		v = before;
	return v->id;
}

const struct job_view *case_sweep_chosen(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *found = NULL;

	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (o->sweep > 0 && o->id >= (found ? found->id : v->id) && o->state != JOB_CANCELLED &&
		    !strcmp(o->key, v->key) && first_revision(jobs, o) == first_revision(jobs, v))
			found = o;
	return found;
}

static int no_sweep(const struct job_view *v, long number, const struct exposures *sweeps, int n, struct err *err)
{
	char text[500];

	if (n == 0)
		return err_set(err, EINVAL, "job %lld: no header tells two sweeps apart", (long long)v->id);
	exposures_text(sweeps, text, sizeof(text));
	return err_set(err, EINVAL, "job %lld has no sweep %ld; allowed: 1 to %d, in the order of %s", (long long)v->id, number,
		       n, text);
}

int case_sweep_open(struct journal *j, const struct jobs *jobs, const struct job_view *v, long number, const char *where,
		    const char *by, double now, int64_t *ret_job, struct err *err)
{
	struct exposures sweeps;
	struct selection s;
	char which[260], reason[400];
	size_t kept = 0;
	int n;

	if (!may_be_divided(v))
		return err_set(err, ESTALE, "job %lld is not unfinished, held, failed or cancelled", (long long)v->id);
	n = list_images(j, v, false, false, &s, err);
	if (n == 0)
		n = divide_sweeps(&s, v, false, &sweeps, err);
	if (n >= 0 && (number < 1 || number > n))
		n = no_sweep(v, number, &sweeps, n, err);
	if (n > 0) {
		for (size_t i = 0; i < s.n; i++)
			if (exposure_has(&sweeps, (int)number - 1, &s.list[i].exposure))
				s.list[kept++] = s.list[i];
		s.n = kept;
		case_sweep_text(&sweeps, (int)number, which, sizeof(which));
		snprintf(reason, sizeof(reason), "replaced: a case of %s, chosen %s by %.60s", which, where, by);
		n = open_selection(j, jobs, v, &s, reason, by, json_pack("{s:i}", "sweep", (int)number), now, ret_job, err);
	}
	free(s.list);
	return n;
}
