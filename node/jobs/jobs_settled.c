/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/jobs_settled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"

#define AT_ONCE 1000 /* jobs that are read, or recorded in a transaction, at a time */

static int add_id(void *ctx, int64_t job)
{
	struct jobs_numbers *ids = ctx;

	if (!list_grow(&ids->list, ids->n, &ids->room, sizeof(ids->list[0])))
		return -ENOMEM;
	ids->list[ids->n++] = job;
	return 0;
}

/* ---- read ---- */

static bool is_in_memory(const struct jobs *jobs, int64_t id)
{
	size_t lo = 0, hi = jobs->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (jobs->list[mid]->id == id)
			return true;
		if (jobs->list[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static int apply_one(void *ctx, const struct event_row *row)
{
	struct jobs *jobs = ctx;
	int64_t last = jobs->last_seq; /* which is about all jobs: events of others may be between */
	int ret = jobs_apply(jobs, row);

	jobs->last_seq = last;
	return ret;
}

static int read_job(struct jobs *jobs, struct journal *j, int64_t id, struct err *err)
{
	int ret = journal_replay(j, id, 0, apply_one, jobs, err);

	if (ret < 0)
		jobs_remove(jobs, id); /* not all of its events are in it */
	return ret == -ENOMEM && !err->code ? err_set(err, ENOMEM, "no memory for the jobs") : ret;
}

/* A record that is not about the last event, or that the events contradict, counts as none: the job is open. */
static int read_settled(struct jobs *jobs, int64_t id, struct err *err)
{
	struct settled_row row;
	int ret = journal_find_settled(jobs->journal, id, &row, err), found = ret;
	struct job_view *v;

	if (ret >= 0)
		ret = read_job(jobs, jobs->journal, id, err);
	if (ret < 0 || !is_in_memory(jobs, id))
		return ret;
	v = jobs_find(jobs, id);
	if (found && row.seq == v->seq && row.state == v->state && (v->state == JOB_DELIVERED || v->state == JOB_CLEANED)) {
		v->further_open = true;
		v->seen = row.done < v->finished ? row.done : v->finished;
		v->recorded = true;
		jobs_take_from_open(jobs, v);
	}
	return 1;
}

int jobs_read_one(struct jobs *jobs, int64_t id)
{
	struct err err = {0};
	int ret = read_settled(jobs, id, &err);

	if (ret < 0)
		jobs->lost = err;
	return ret;
}

int jobs_read_related(struct jobs *jobs, enum settled_relation relation, uint64_t hash)
{
	struct jobs_numbers ids = {0};
	int ret = journal_each_settled_of(jobs->journal, relation, hash, add_id, &ids, &jobs->lost);

	if (ret == -ENOMEM)
		err_set(&jobs->lost, ENOMEM, "no memory for the jobs");
	for (size_t i = 0; ret >= 0 && i < ids.n; i++)
		ret = is_in_memory(jobs, ids.list[i]) ? 0 : jobs_read_one(jobs, ids.list[i]);
	free(ids.list);
	return ret;
}

int jobs_whole(const struct jobs *jobs, struct err *err)
{
	return jobs->lost.code ? err_set(err, jobs->lost.code, "%s", jobs->lost.msg) : 0;
}

/* ---- the start ---- */

static int add_reached(void *ctx, const struct reached_row *row)
{
	struct jobs_reached *r = jobs_get_reached(ctx, row->destination);

	if (!r)
		return -ENOMEM;
	r->reached = row->reached;
	r->sent = row->sent;
	return 0;
}

/* Read the next jobs with a number > *after. 1: there may be more. */
static int read_some(struct jobs *jobs, struct journal *j, int64_t *after, struct err *err)
{
	struct jobs_numbers ids = {0};
	int ret = journal_each_open(j, *after, AT_ONCE, add_id, &ids, err);

	for (size_t i = 0; ret == 0 && i < ids.n; i++)
		ret = ids.list[i] == 0 || is_in_memory(jobs, ids.list[i]) ? 0 : read_job(jobs, j, ids.list[i], err);
	if (ret == 0 && ids.n > 0)
		*after = ids.list[ids.n - 1];
	ret = ret < 0 ? ret : ids.n == AT_ONCE;
	free(ids.list);
	return ret;
}

int jobs_begin(struct jobs *jobs, struct journal *j, double now, struct err *err)
{
	int64_t after = INT64_MIN, instance, last;
	struct err why = {0};
	int ret = journal_last_rows(j, &instance, &last, &why); /* before the jobs: what is newer follows */

	jobs->forgotten = 1;
	if (now > 0)
		journal_open_unlisted(j);
	if (ret == 0)
		ret = journal_each_reached(j, add_reached, jobs, &why);
	while (ret == 0 && (ret = read_some(jobs, j, &after, &why)) > 0) {
		ret = 0;
		if (now <= 0)
			continue;
		jobs_observe_clock(jobs, now);
		if (jobs_record_settled(jobs, j, now, NULL) < 0)
			now = 0; /* as on a full disk: they stay in memory */
		jobs_forget_settled(jobs, 0);
	}
	if (ret < 0) {
		jobs_clear(jobs);
		if (!why.code)
			err_set(&why, ENOMEM, "no memory for the jobs");
		return err_set(err, why.code, "%s", why.msg);
	}
	jobs->last_seq = last;
	jobs->journal = j;
	return 0;
}

/* ---- record, forget ---- */

static bool is_unrecorded(const struct job_view *v)
{
	return !v->recorded && v->id > 0 && job_view_is_settled(v);
}

static void describe_settled(const struct job_view *v, struct settled_row *ret)
{
	*ret = (struct settled_row){.job = v->id,
				    .seq = v->seq,
				    .state = v->state,
				    .study = v->study_link.hash,
				    .series = v->series_link.hash,
				    .done = job_view_done(v)};
}

static int record_some(struct jobs *jobs, struct journal *j, struct job_view *const *some, size_t n, double now, struct err *err)
{
	struct settled_row *rows = calloc(n, sizeof(rows[0]));
	struct reached_row *reached = calloc(jobs->n_reached + 1, sizeof(reached[0]));
	int ret = rows && reached ? 0 : err_set(err, ENOMEM, "no memory for the jobs");

	for (size_t i = 0; ret == 0 && i < n; i++)
		describe_settled(some[i], &rows[i]);
	for (size_t i = 0; ret == 0 && i < jobs->n_reached; i++)
		reached[i] = (struct reached_row){jobs->reached[i].destination, jobs->reached[i].reached, jobs->reached[i].sent};
	if (ret == 0)
		ret = journal_settle(j, rows, n, reached, jobs->n_reached, now, err);
	for (size_t i = 0; ret > 0 && i < n; i++)
		some[i]->recorded = true;
	free(rows);
	free(reached);
	return ret < 0 ? ret : 0;
}

int jobs_record_settled(struct jobs *jobs, struct journal *j, double now, struct err *err)
{
	struct job_view *some[AT_ONCE];
	size_t n = 0, open = 0;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < jobs->n; i++) {
		while (open < jobs->n_open && jobs->open[open]->id < jobs->list[i]->id)
			open++;
		if ((open == jobs->n_open || jobs->open[open] != jobs->list[i]) && is_unrecorded(jobs->list[i]))
			some[n++] = jobs->list[i];
		if (n < AT_ONCE)
			continue;
		ret = record_some(jobs, j, some, n, now, err);
		n = 0;
	}
	if (ret == 0 && n > 0)
		return record_some(jobs, j, some, n, now, err);
	ret = ret == 0 ? journal_settle(j, NULL, 0, NULL, 0, now, err) : ret; /* the clock may have been set back */
	return ret < 0 ? ret : 0;
}

void jobs_forget_settled(struct jobs *jobs, size_t keep)
{
	struct jobs_numbers ids = {0};

	if (!jobs->journal && keep > 0)
		return;
	for (size_t i = 0; i < jobs->n; i++)
		if (jobs->list[i]->recorded && add_id(&ids, jobs->list[i]->id) < 0)
			break;
	if (ids.n > keep)
		jobs->forgotten++;
	for (size_t i = ids.n; ids.n > keep && i > 0; i--) /* from the end: less to move */
		jobs_remove(jobs, ids.list[i - 1]);
	free(ids.list);
}

/* ---- by state ---- */

double job_view_done(const struct job_view *v)
{
	if (v->state == JOB_CLEANED)
		return v->changed;
	return v->seen > 0 && v->seen < v->finished ? v->seen : v->finished;
}

struct done_job {
	double done;
	int64_t id;
};

struct done_jobs {
	struct done_job *list;
	size_t n, room;
};

static int add_done(void *ctx, const struct settled_row *row)
{
	struct done_jobs *d = ctx;

	if (!list_grow(&d->list, d->n, &d->room, sizeof(d->list[0])))
		return -ENOMEM;
	d->list[d->n++] = (struct done_job){row->done, row->job};
	return 0;
}

static int earliest_first(const void *a, const void *b)
{
	const struct done_job *x = a, *y = b;

	if (x->done != y->done)
		return x->done < y->done ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

bool jobs_is_recorded_delivered(const struct jobs *jobs, int64_t id)
{
	struct settled_row row;

	return jobs->journal && !is_in_memory(jobs, id) && journal_find_settled(jobs->journal, id, &row, NULL) > 0 &&
	       row.state == JOB_DELIVERED;
}

int jobs_in_state(const struct jobs *jobs, enum job_state state, double until, struct jobs_numbers *ret, struct err *err)
{
	struct done_jobs d = {0};
	int rc = jobs->journal ? journal_each_settled_done(jobs->journal, state, until, add_done, &d, err) : 0;

	for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
		const struct job_view *v = jobs->list[i];

		if (!v->recorded && v->state == state && job_view_done(v) <= until)
			rc = add_done(&d, &(struct settled_row){.job = v->id, .done = job_view_done(v)});
	}
	if (d.n > 1)
		qsort(d.list, d.n, sizeof(d.list[0]), earliest_first);
	for (size_t i = 0; rc == 0 && i < d.n; i++)
		rc = add_id(ret, d.list[i].id);
	free(d.list);
	return rc == -ENOMEM ? err_set(err, ENOMEM, "no memory for the jobs") : rc;
}
