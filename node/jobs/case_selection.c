/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/case_selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/log.h"
#include "node/base/plural.h"
#include "node/store/event.h"

/* The images of a case, and the newest object of each. */
struct selection {
	struct selected {
		int64_t member, newer; /* ids of instances; newer 0: none */
	} * list;
	size_t n, capacity;
	const char *key;
	bool repairs; /* only newer objects that repair */
	long n_newer;
};

static int add_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct selection *s = ctx;

	(void)detail;
	if (row->companion)
		return 0;
	if (s->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 64;
		struct selected *list = realloc(s->list, capacity * sizeof(list[0]));

		if (!list)
			return -ENOMEM;
		s->list = list;
		s->capacity = capacity;
	}
	s->list[s->n++] = (struct selected){.member = row->id};
	return 0;
}

/* A newer object of another case (its series or side was corrected, too) replaces nothing. */
static bool is_usable(const struct selection *s, const char *text)
{
	json_t *detail = json_loads(text, 0, NULL);
	const char *key = json_string_value(json_object_get(detail, "key"));
	bool usable = key && !strcmp(key, s->key) && (!s->repairs || json_is_true(json_object_get(detail, "repairs")));

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

static int select_newer(struct journal *j, const struct job_view *v, bool repairs, struct selection *ret, struct err *err)
{
	struct selection s = {.key = v->key, .repairs = repairs};
	int rc = journal_each_member(j, v->id, add_member, &s, err);

	if (rc == 0)
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
	for (size_t i = 0; i < jobs->n; i++)
		if (!strcmp(jobs->list[i]->key, v->key) && jobs->list[i]->reconstructed > 0 &&
		    jobs->list[i]->state != JOB_CLEANED)
			return true;
	return false;
}

const char *case_newer_obstacle(const struct jobs *jobs, const struct job_view *v)
{
	if (v->result_of > 0)
		return "it is a further result: the images are those of its first job";
	if (v->state != JOB_COLLECTING && v->state != JOB_HELD && v->state != JOB_FAILED && v->state != JOB_CANCELLED)
		return "it is not unfinished, held, failed or cancelled";
	if (was_reconstructed(jobs, v))
		return "its images were reconstructed: newer objects need UIDs of their own";
	return NULL;
}

long case_newer_count(struct journal *j, const struct job_view *v, bool repairs, struct err *err)
{
	struct selection s;
	int rc = select_newer(j, v, repairs, &s, err);

	if (rc < 0)
		return rc;
	free(s.list);
	return s.n_newer;
}

static int keep_opening(void *ctx, const struct event_row *row)
{
	json_t **detail = ctx;

	*detail = json_loads(row->detail, 0, NULL);
	return 1; /* `opened` is the first event */
}

/* The `opened` event of the new case: that of the earlier one, and why. */
static char *make_opening(struct journal *j, const struct job_view *v, const char *reason, const char *by)
{
	json_t *detail = NULL;

	journal_replay(j, v->id, 0, keep_opening, &detail, NULL);
	if (detail)
		json_object_update_new(detail,
				       json_pack("{s:i, s:I, s:I, s:b, s:i, s:o}", "revision", v->revision + 1, "revision_of",
						 (json_int_t)v->id, "newer_of", (json_int_t)v->id, "corrects", by != NULL,
						 "priority", v->priority, "reason", event_json_text(reason)));
	if (detail && by)
		json_object_set_new(detail, "by", event_json_text(by));
	return event_json_dump(detail);
}

static int open_selection(struct journal *j, const struct jobs *jobs, const struct job_view *v, const struct selection *s,
			  const char *reason, const char *by, double now, int64_t *ret_job, struct err *err)
{
	int64_t *ids = calloc(s->n + 1, sizeof(ids[0]));
	char *opening = make_opening(j, v, reason, by);
	char *cancel = event_json_dump(json_pack("{s:o}", "reason", event_json_text(reason)));
	int rc = -ENOMEM;

	for (size_t i = 0; ids && i < s->n; i++)
		ids[i] = s->list[i].newer ? s->list[i].newer : s->list[i].member;
	if (ids && opening && cancel)
		rc = journal_open_selection(j, v->id, jobs->last_seq, ids, s->n, opening, cancel, now, ret_job, err);
	else
		err_set(err, ENOMEM, "no memory for a case in place of job %lld", (long long)v->id);
	free(ids);
	free(opening);
	free(cancel);
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
	rc = select_newer(j, v, !by, &s, err);
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
		rc = open_selection(j, jobs, v, &s, reason, by, now, ret_job, err);
	free(s.list);
	if (rc == 0)
		log_event(LOG_WARNING, "job-replaced", "job=%lld by=%lld reason=%s", (long long)v->id, (long long)*ret_job,
			  log_quote(reason));
	return rc;
}

bool case_newer_corrects(const struct jobs *jobs, const struct job_view *a, const struct job_view *b)
{
	const struct job_view *newer = a->id > b->id ? a : b, *older = a->id > b->id ? b : a;

	while (newer && newer->corrects && newer->id > older->id)
		newer = jobs_find(jobs, newer->newer_of);
	return newer == older;
}
