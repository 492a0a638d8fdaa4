/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/jobs_settled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"
#include "node/jobs/metrics.h"

#define AT_ONCE 1000	     /* jobs that are read, or recorded in a transaction, at a time */
#define IMAGES_AT_ONCE 10000 /* images of the jobs of a transaction: it reads their events while the receiver waits */

int jobs_numbers_add(void *ctx, int64_t job)
{
	struct jobs_numbers *ids = ctx;

	if (!list_grow(&ids->list, ids->n, &ids->room, sizeof(ids->list[0])))
		return -ENOMEM;
	ids->list[ids->n++] = job;
	return 0;
}

/* ---- read ---- */

/* Events after last_seq are left to jobs_refresh(), which reads those of all jobs in their order. */
static int apply_one(void *ctx, const struct event_row *row)
{
	struct jobs *jobs = ctx;
	int64_t last = jobs->last_seq; /* which is about all jobs: events of others may be between */
	int ret = row->seq > last ? 1 : jobs_apply(jobs, row);

	jobs->last_seq = last;
	if (ret == 0 && jobs->metrics && row->seq > jobs->counted)
		metrics_count(jobs->metrics, jobs_in_memory(jobs, row->job), row);
	return ret;
}

static int read_job(struct jobs *jobs, struct journal *j, int64_t id, int64_t counted, struct err *err)
{
	int ret;

	jobs->counted = counted;
	ret = journal_replay(j, id, 0, apply_one, jobs, err);
	if (ret < 0)
		jobs_remove(jobs, id); /* not all of its events are in it */
	return ret == -ENOMEM && !err->code ? err_set(err, ENOMEM, "no memory for the jobs") : ret;
}

/* Return true if the record is about the last event, and the events do not contradict it: else it counts as none. */
static bool take_record(struct job_view *v, const struct settled_row *row)
{
	if (row->seq != v->seq || row->state != v->state || (v->state != JOB_DELIVERED && v->state != JOB_CLEANED))
		return false;
	v->further_open = true;
	v->seen = row->done < v->finished ? row->done : v->finished;
	v->recorded = true;
	return true;
}

/* If there is no place for another one, the last may concern every job. */
static void add_lost(struct jobs *jobs, const struct jobs_lost *one)
{
	for (size_t i = 0; i < jobs->n_lost; i++)
		if (jobs->lost[i].id == one->id && jobs->lost[i].study == one->study && jobs->lost[i].series == one->series)
			return;
	if (jobs->n_lost < JOBS_LOST_MAX)
		jobs->lost[jobs->n_lost++] = *one;
	else
		jobs->lost[JOBS_LOST_MAX - 1].any = true;
}

int jobs_read_one(struct jobs *jobs, int64_t id)
{
	struct jobs_lost lost = {.id = id, .any = true};
	struct settled_row row;
	int ret = journal_find_settled(jobs->journal, id, &row, &lost.why), found = ret;
	struct job_view *v;

	if (found > 0)
		lost = (struct jobs_lost){.id = id, .study = row.study, .series = row.series};
	if (ret >= 0)
		ret = read_job(jobs, jobs->journal, id, INT64_MAX, &lost.why);
	if (ret < 0)
		add_lost(jobs, &lost);
	v = ret < 0 ? NULL : jobs_in_memory(jobs, id);
	if (!v)
		return ret;
	if (found && take_record(v, &row))
		jobs_take_from_open(jobs, v);
	return 1;
}

int jobs_find_recorded(struct jobs *jobs, struct err *err)
{
	struct settled_row row;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < jobs->n; i++) {
		struct job_view *v = jobs->list[i];

		if (v->recorded || (v->state != JOB_DELIVERED && v->state != JOB_CLEANED))
			continue;
		ret = journal_find_settled(jobs->journal, v->id, &row, err);
		if (ret > 0)
			take_record(v, &row); /* jobs_observe_clock() takes it from those that are open */
	}
	return ret < 0 ? ret : 0;
}

int jobs_read_related(struct jobs *jobs, enum settled_relation relation, uint64_t hash)
{
	struct jobs_lost lost = {.study = relation == SETTLED_STUDY ? hash : 0, .series = relation == SETTLED_SERIES ? hash : 0};
	struct jobs_numbers ids = {0};
	int ret = journal_each_settled_of(jobs->journal, relation, hash, jobs_numbers_add, &ids, &lost.why);

	if (ret == -ENOMEM)
		err_set(&lost.why, ENOMEM, "no memory for the jobs");
	if (ret < 0)
		add_lost(jobs, &lost);
	for (size_t i = 0; ret >= 0 && i < ids.n; i++)
		ret = jobs_in_memory(jobs, ids.list[i]) ? 0 : jobs_read_one(jobs, ids.list[i]);
	free(ids.list);
	return ret;
}

int jobs_whole(const struct jobs *jobs, const struct job_view *v, struct err *err)
{
	for (size_t i = 0; i < jobs->n_lost; i++) {
		const struct jobs_lost *lost = &jobs->lost[i];

		if (v && !lost->any && lost->study != v->study_link.hash && lost->series != v->series_link.hash)
			continue;
		if (lost->id)
			return err_set(err, lost->why.code, "case %lld: %s", (long long)lost->id, lost->why.msg);
		return err_set(err, lost->why.code, "%s", lost->why.msg);
	}
	return 0;
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
	int ret = journal_each_open(j, *after, AT_ONCE, jobs_numbers_add, &ids, err);

	for (size_t i = 0; ret == 0 && i < ids.n; i++) {
		int64_t counted = INT64_MAX;

		if (ids.list[i] == 0 || jobs_in_memory(jobs, ids.list[i]))
			continue;
		if (jobs->metrics)
			ret = journal_find_counted(j, ids.list[i], &counted, err);
		if (ret == 0)
			ret = read_job(jobs, j, ids.list[i], counted, err);
	}
	if (ret == 0 && ids.n > 0)
		*after = ids.list[ids.n - 1];
	ret = ret < 0 ? ret : ids.n == AT_ONCE;
	free(ids.list);
	return ret;
}

int jobs_begin(struct jobs *jobs, struct journal *j, double now, struct err *err)
{
	int64_t after = INT64_MIN, instance;
	struct err why = {0};
	int ret = journal_last_rows(j, &instance, &jobs->last_seq, &why); /* before the jobs: what is newer follows */

	jobs->forgotten = 1;
	if (ret == 0 && jobs->metrics)
		ret = metrics_read(jobs->metrics, j, &why);
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
	jobs->journal = j;
	return 0;
}

/* ---- record, forget ---- */

static bool is_unrecorded(const struct job_view *v)
{
	return !v->recorded && v->id > 0 && job_view_is_settled(v);
}

static char *add_line(char *at, const char *text)
{
	for (; *text; text++)
		*at++ = *text == '\n' ? ' ' : *text;
	*at++ = '\n';
	return at;
}

/* Accession number, sender, study, key, the file whose header the result has, and each series of the result. NULL: no memory. */
static char *join_words(const struct job_view *v)
{
	const char *header = v->header ? v->header : "";
	size_t n = strlen(v->accession) + strlen(v->calling) + strlen(v->study) + strlen(v->key) + strlen(header) + 6;
	char *words, *at;

	for (size_t i = 0; i < v->n_objects; i++)
		n += i == 0 || strcmp(v->objects[i].series, v->objects[i - 1].series) != 0 ? strlen(v->objects[i].series) + 1 : 0;
	words = at = malloc(n);
	if (!words)
		return NULL;
	at = add_line(at, v->accession);
	at = add_line(at, v->calling);
	at = add_line(at, strncmp(v->key, v->study, strlen(v->study)) ? v->study : ""); /* it is nearly always in the key */
	at = add_line(at, v->key);
	at = add_line(at, header);
	for (size_t i = 0; i < v->n_objects; i++)
		if (i == 0 || strcmp(v->objects[i].series, v->objects[i - 1].series) != 0)
			at = add_line(at, v->objects[i].series);
	*at = '\0';
	return words;
}

void jobs_settled_view(const struct settled_row *row, char words[JOBS_WORDS_SIZE], struct job_view *ret, const char **ret_series)
{
	char *lines[5] = {"", "", "", "", ""};

	snprintf(words, JOBS_WORDS_SIZE, "%s", row->words ? row->words : "");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *end = strchr(words, '\n');

		if (!end)
			break;
		lines[i] = words;
		*end = '\0';
		words = end + 1;
	}
	ret->id = row->job;
	ret->state = row->state;
	ret->opened = row->opened;
	ret->warned = row->warnings == SETTLED_WARNED;
	snprintf(ret->accession, sizeof(ret->accession), "%s", lines[0]);
	snprintf(ret->calling, sizeof(ret->calling), "%s", lines[1]);
	snprintf(ret->study, sizeof(ret->study), "%s", lines[2]);
	ret->key = lines[3];
	ret->header = lines[4][0] ? lines[4] : NULL;
	*ret_series = words;
}

/* The events of a job that settles are counted with its record. */
static int record_one(struct journal *j, const struct job_view *v, struct metrics *metrics, struct err *err)
{
	char *words = join_words(v);
	const struct settled_row row = {.job = v->id,
					.seq = v->seq,
					.state = v->state,
					.study = v->study_link.hash,
					.series = v->series_link.hash,
					.patient = v->patients.first[PATIENT_ID],
					.done = job_view_done(v),
					.opened = v->opened,
					.finished = v->finished > 0 ? v->finished : v->changed,
					.warnings = v->state != JOB_DELIVERED || !v->warnings ? SETTLED_UNWARNED
						    : v->warned				      ? SETTLED_WARNED
											      : SETTLED_STANDING,
					.words = words};
	struct jobs one = {.metrics = metrics, .last_seq = v->seq};
	int64_t counted = 0;
	int ret = words ? journal_settle_job(j, &row, &counted, err) : err_set(err, ENOMEM, "no memory for the jobs");

	if (ret > 0 && counted < v->seq)
		ret = read_job(&one, j, v->id, counted, err) < 0 ? -EIO : 1;
	free(words);
	jobs_clear(&one);
	return ret;
}

static int record_some(struct jobs *jobs, struct journal *j, struct job_view *const *some, size_t n, double now, struct err *err)
{
	bool recorded[AT_ONCE] = {false};
	struct metrics metrics;
	int ret = journal_settle_begin(j, err);

	if (ret <= 0)
		return ret;
	ret = n > 0 ? metrics_read(&metrics, j, err) : 0;
	for (size_t i = 0; ret >= 0 && i < n; i++) {
		ret = record_one(j, some[i], &metrics, err);
		recorded[i] = ret > 0;
	}
	for (size_t i = 0; ret >= 0 && n > 0 && i < jobs->n_reached; i++)
		ret = journal_settle_reached(
			j, &(struct reached_row){jobs->reached[i].destination, jobs->reached[i].reached, jobs->reached[i].sent},
			err);
	if (ret >= 0 && n > 0)
		ret = metrics_record(&metrics, j, err);
	ret = journal_settle_end(j, ret < 0 ? ret : n > 0, now, err);
	for (size_t i = 0; ret == 0 && i < n; i++)
		some[i]->recorded = recorded[i];
	return ret;
}

int jobs_record_settled(struct jobs *jobs, struct journal *j, double now, struct err *err)
{
	struct job_view *some[AT_ONCE];
	size_t n = 0, open = 0;
	long images = 0;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < jobs->n; i++) {
		while (open < jobs->n_open && jobs->open[open]->id < jobs->list[i]->id)
			open++;
		if ((open < jobs->n_open && jobs->open[open] == jobs->list[i]) || !is_unrecorded(jobs->list[i]))
			continue;
		some[n++] = jobs->list[i];
		images += jobs->list[i]->members.instances;
		if (n < AT_ONCE && images < IMAGES_AT_ONCE)
			continue;
		ret = record_some(jobs, j, some, n, now, err);
		n = 0;
		images = 0;
	}
	return ret == 0 ? record_some(jobs, j, some, n, now, err) : ret; /* also without jobs: the clock may have been set back */
}

void jobs_forget_settled(struct jobs *jobs, size_t keep)
{
	struct jobs_numbers ids = {0};

	if (!jobs->journal && keep > 0)
		return;
	for (size_t i = 0; i < jobs->n; i++)
		if (jobs->list[i]->recorded && jobs_numbers_add(&ids, jobs->list[i]->id) < 0)
			break;
	if (ids.n > keep)
		jobs->forgotten++;
	for (size_t i = ids.n; ids.n > keep && i > 0; i--) /* from the end: less to move */
		jobs_remove(jobs, ids.list[i - 1]);
	free(ids.list);
}

/* ---- by patient, by state ---- */

void jobs_read_patient(const struct jobs *jobs, const struct job_view *v)
{
	if (jobs->journal && v->patients.first[PATIENT_ID])
		(void)jobs_read_related((struct jobs *)jobs, SETTLED_PATIENT, v->patients.first[PATIENT_ID]);
}

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

	return jobs->journal && !jobs_in_memory(jobs, id) && journal_find_settled(jobs->journal, id, &row, NULL) > 0 &&
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
		rc = jobs_numbers_add(ret, d.list[i].id);
	free(d.list);
	return rc == -ENOMEM ? err_set(err, ENOMEM, "no memory for the jobs") : rc;
}
