/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - read the state of journal, spool and disk; see node/status/status.h. */
#include "node/status/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_hint.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs_settled.h"
#include "node/result/thumbnail.h"
#include "node/status/status_text.h"
#include "node/store/node_file.h"

void status_begin(struct status *s, const struct config *config)
{
	*s = (struct status){.config = config, .person.role = STATUS_ROLE_ADMINISTER};
	status_names_begin(&s->names);
}

/* Clear everything that was read from the journal; the next update reads it from the first row. */
static void forget_journal(struct status *s)
{
	s->journal = journal_close(s->journal);
	jobs_clear(&s->jobs);
	memset(&s->totals, 0, sizeof(s->totals));
	s->n_senders = 0;
	s->senders_until = 0;
	s->settled = (struct settled_sums){0};
}

static void list_clear(struct status_list *l)
{
	free(l->list);
	*l = (struct status_list){0};
}

static void forget_look(struct status *s)
{
	list_clear(&s->attention);
	list_clear(&s->work);
	list_clear(&s->done);
	free(s->cases);
	free(s->exams);
	s->cases = NULL;
	s->exams = NULL;
	s->n_exams = 0;
	json_decref(s->node);
	json_decref(s->unassigned);
	s->node = s->unassigned = NULL;
	memset(s->by_state, 0, sizeof(s->by_state));
	memset(s->by_group, 0, sizeof(s->by_group));
}

void status_end(struct status *s)
{
	forget_look(s);
	forget_journal(s);
	status_names_end(&s->names);
}

/* ---- the journal ---- */

/* Move the sender to the front. Of more than STATUS_SENDERS_MAX the oldest is dropped. */
static int add_sender(void *ctx, const struct journal_sender *row)
{
	struct status *s = ctx;
	struct status_sender one = {.last = row->last, .objects = row->instances};
	size_t at = 0;

	snprintf(one.calling, sizeof(one.calling), "%s", row->calling);
	snprintf(one.host, sizeof(one.host), "%s", row->host);
	while (at < s->n_senders && strcmp(s->senders[at].calling, one.calling) != 0)
		at++;
	if (at < s->n_senders)
		one.objects += s->senders[at].objects;
	else if (s->n_senders < STATUS_SENDERS_MAX)
		s->n_senders++;
	else
		at = STATUS_SENDERS_MAX - 1;
	memmove(&s->senders[1], &s->senders[0], at * sizeof(s->senders[0]));
	s->senders[0] = one;
	return 0;
}

#define FORGET_MAX 16 /* maximum number of jobs checked per update */

/* Remove the jobs whose rows were deleted from the journal (node/jobs/journal_retention.h) from the view. */
static int forget_history(struct status *s, double now, struct err *err)
{
	const double age = s->config->node.journal_retention_days * 86400.0;
	size_t looked = 0, i = 0;
	int ret = 0;

	while (age > 0 && ret == 0 && i < s->jobs.n && looked < FORGET_MAX) {
		const struct job_view *v = s->jobs.list[i++];
		struct jobs one = {0};

		if (v->state != JOB_CLEANED || now - v->changed < age)
			continue;
		looked++;
		ret = jobs_refresh(&one, s->journal, v->id, err);
		if (ret == 0 && !jobs_find(&one, v->id)) {
			jobs_remove(&s->jobs, v->id);
			i--; /* list[i] is now the next job */
		}
		jobs_clear(&one);
	}
	return ret;
}

static int read_journal(struct status *s, double now, struct err *err)
{
	json_t *unassigned;
	char path[300];
	int ret = 0;

	snprintf(path, sizeof(path), "%s/journal.db", s->config->node.spool);
	if (!s->journal)
		ret = journal_open_reader(path, &s->journal, err);
	if (ret == 0)
		ret = journal_look_begin(s->journal, err);
	s->jobs.metrics = &s->metrics;
	if (ret == 0)
		ret = jobs_refresh(&s->jobs, s->journal, 0, err);
	if (ret == 0)
		ret = forget_history(s, now, err);
	if (ret == 0)
		ret = jobs_find_recorded(&s->jobs, err);
	if (ret == 0)
		ret = journal_sum_settled(s->journal, now - STATUS_LOOK_SECONDS, &s->settled, err);
	if (ret == 0)
		ret = journal_add_totals(s->journal, &s->totals, err);
	if (ret == 0)
		ret = journal_each_sender(s->journal, &s->senders_until, add_sender, s, err);
	if (ret == 0)
		ret = node_facts_of_journal(s->journal, &s->facts, err);
	if (ret == 0) {
		unassigned = job_report_unassigned(s->journal, STATUS_UNASSIGNED_READ, err);
		s->unassigned = unassigned ? job_report_unassigned_groups(unassigned) : NULL;
		json_decref(unassigned);
		ret = s->unassigned ? 0 : -EIO;
	}
	return ret;
}

/* ---- lists of cases ---- */

/* Copy the exams of a group, in order. */
static void fill_list(struct status *s, struct status_list *l, enum status_group group, size_t max)
{
	l->list = calloc(s->n_exams ? s->n_exams : 1, sizeof(l->list[0]));
	if (!l->list) {
		snprintf(s->facts.journal_error, sizeof(s->facts.journal_error), "no memory for the list of cases");
		return;
	}
	for (size_t i = 0; i < s->n_exams; i++)
		if (s->exams[i].group == group)
			l->list[l->all++] = s->exams[i];
	status_exams_order(l->list, l->all);
	l->n = l->all > max ? max : l->all;
}

static void count_cases(struct status *s)
{
	s->unanswered = 0;
	s->by_state[JOB_DELIVERED] = s->settled.delivered;
	s->by_state[JOB_CLEANED] = s->settled.cleaned;
	s->n_cases = s->by_group[GROUP_DONE] = s->settled.delivered + s->settled.cleaned;
	s->by_group[GROUP_WARNED] = s->settled.warned;
	s->warned_new = s->settled.warned_since;
	for (size_t i = 0; i < s->jobs.n; i++) {
		const struct job_view *v = s->jobs.list[i];

		if (v->recorded)
			continue;
		s->n_cases++;
		s->by_state[v->state]++;
		s->by_group[status_filter_group(v)]++;
		s->unanswered += job_is_unanswered(v);
		s->by_group[GROUP_WARNED] += job_view_is_warned(v);
		s->warned_new += job_view_is_warned(v) && s->now - v->finished < STATUS_LOOK_SECONDS;
	}
}

/* Exams of which the page may show cases, each by one of its cases. */
struct picks {
	struct jobs_numbers jobs;
	uint64_t *studies; /* hashes of the studies of the first n_known of them, in order; of the others, as they came */
	size_t n_known, n, room;
};

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int add_pick(struct picks *p, int64_t job, uint64_t study)
{
	if (!list_grow(&p->studies, p->n, &p->room, sizeof(p->studies[0])))
		return -ENOMEM;
	p->studies[p->n++] = study;
	return jobs_numbers_add(&p->jobs, job);
}

static bool is_picked(const struct picks *p, uint64_t study)
{
	if (study == JOBS_NO_STUDY)
		return false; /* each of its cases is an exam */
	for (size_t i = p->n_known; i < p->n; i++)
		if (p->studies[i] == study)
			return true;
	return bsearch(&study, p->studies, p->n_known, sizeof(study), by_hash) != NULL;
}

/* Of a settled case, those that ended last first. */
static int pick_done(void *ctx, const struct settled_row *row)
{
	struct picks *p = ctx;

	if (is_picked(p, row->study))
		return 0;
	return p->n - p->n_known == STATUS_DONE_MAX ? 1 : add_pick(p, row->job, row->study);
}

static int find_picks(struct status *s, struct picks *p)
{
	struct err err = {0};
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < s->jobs.n; i++)
		if (!s->jobs.list[i]->recorded)
			ret = add_pick(p, s->jobs.list[i]->id, s->jobs.list[i]->study_link.hash);
	if (p->n > 1)
		qsort(p->studies, p->n, sizeof(p->studies[0]), by_hash);
	p->n_known = p->n;
	return ret == 0 && s->journal ? journal_each_settled(s->journal, SETTLED_BY_END, pick_done, p, &err) : ret;
}

/* The cases of a case's exam, itself among them. */
static int add_exam(struct jobs_numbers *all, const struct jobs *jobs, const struct job_view *v)
{
	int ret = jobs_numbers_add(all, v->id);
	const struct job_view *other = ret == 0 && v->study[0] && v->key[0] ? jobs_of_study(jobs, v->key) : NULL;

	for (; ret == 0 && other; other = jobs_before_in_study(other))
		if (other != v && !strcmp(other->study, v->study))
			ret = jobs_numbers_add(all, other->id);
	return ret;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* List the cases of these exams, without doubles. */
static int find_cases(struct status *s, const struct picks *p)
{
	struct jobs_numbers all = {0};
	size_t n = 0;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < p->jobs.n; i++) {
		const struct job_view *v = jobs_find(&s->jobs, p->jobs.list[i]);

		ret = v ? add_exam(&all, &s->jobs, v) : 0;
	}
	if (all.n > 1)
		qsort(all.list, all.n, sizeof(all.list[0]), by_number);
	s->cases = ret == 0 ? malloc((all.n + 1) * sizeof(s->cases[0])) : NULL;
	s->exams = s->cases ? malloc((all.n + 1) * sizeof(s->exams[0])) : NULL;
	for (size_t i = 0; s->exams && i < all.n; i++) {
		s->cases[n] = i > 0 && all.list[i] == all.list[i - 1] ? NULL : jobs_find(&s->jobs, all.list[i]);
		n += s->cases[n] != NULL;
	}
	s->n_exams = s->exams ? status_exams_find(s->cases, n, s->exams) : 0;
	free(all.list);
	return s->exams ? 0 : -ENOMEM;
}

/* The number of all exams that are done: those of settled cases, without those that have a case that is not done; and those of none. */
static size_t count_done(const struct status *s)
{
	size_t n = s->settled.studies;

	for (size_t i = 0; i < s->n_exams; i++) {
		const struct status_exam *e = &s->exams[i];
		bool settled = false;

		for (size_t k = 0; k < e->n; k++)
			settled = settled || e->cases[k]->recorded;
		n += !settled && e->group == GROUP_DONE;
		n -= settled && e->group != GROUP_DONE && n > 0;
	}
	return n;
}

static void update_cases(struct status *s)
{
	struct picks p = {0};

	count_cases(s);
	if (find_picks(s, &p) < 0 || find_cases(s, &p) < 0)
		snprintf(s->facts.journal_error, sizeof(s->facts.journal_error), "the list of cases cannot be made");
	free(p.jobs.list);
	free(p.studies);
	fill_list(s, &s->attention, GROUP_ATTENTION, STATUS_ATTENTION_MAX);
	fill_list(s, &s->work, GROUP_WORK, STATUS_WORK_MAX);
	fill_list(s, &s->done, GROUP_DONE, STATUS_DONE_MAX);
	s->done.all = count_done(s) > s->done.n ? count_done(s) : s->done.n;
}

size_t status_count_before(const struct status *s, const struct job_view *v)
{
	size_t n = 0;

	for (size_t i = 0; v->state == JOB_READY && i < s->jobs.n_open; i++)
		n += s->jobs.open[i]->state == JOB_READY && status_exams_work_order(s->jobs.open[i], v) < 0;
	return n;
}

void status_update(struct status *s, double now)
{
	size_t keep = JOBS_SETTLED_KEPT;
	struct err err = {0};

	for (size_t i = 0; i < s->n_exams; i++)
		keep += s->exams[i].n; /* else they are read again each time if they are many */
	forget_look(s);
	jobs_forget_settled(&s->jobs, keep);
	s->now = now;
	node_facts_of_spool(s->config, now, &s->facts);
	s->facts.expect_running = true;
	s->node = node_file_read(s->config->node.spool);
	if (read_journal(s, now, &err) < 0) {
		s->facts.journal_missing = err.code == ENOENT;
		snprintf(s->facts.journal_error, sizeof(s->facts.journal_error), "%.299s", err.msg);
		forget_journal(s);
		json_decref(s->unassigned);
		s->unassigned = NULL;
	}
	jobs_observe_clock(&s->jobs, now);
	delivery_queue_update(&s->jobs);
	node_facts_of_jobs(s->config, &s->jobs, &s->facts);
	update_cases(s);
	if (s->journal)
		journal_look_end(s->journal);
	node_problems_find(&s->facts, &s->problems);
	if (s->config->status.show_patient)
		status_names_request(&s->names, s);
}

bool status_is_healthy(const struct status *s)
{
	return !node_problems_are_critical(&s->problems);
}

bool status_may(const struct status *s, enum status_page page)
{
	return config_status_may_act(s->config) && s->person.role >= status_page_role(page);
}

bool status_progress(const struct status *s, int64_t job, char ret_stage[64], double *ret_fraction, double *ret_left)
{
	json_t *status = job_report_progress(s->config->node.spool, job);
	const char *stage;
	bool known;

	stage = json_string_value(json_object_get(status, "stage"));
	known = stage && json_is_number(json_object_get(status, "fraction"));
	if (known) {
		double fraction = json_get_number(status, "fraction");

		snprintf(ret_stage, 64, "%s", stage);
		*ret_fraction = fraction > 0 ? fraction < 1 ? fraction : 1 : 0;
		*ret_left = json_is_number(json_object_get(status, "left")) ? json_get_number(status, "left") : -1;
	}
	json_decref(status);
	return known;
}

bool status_picture_path(const struct status *s, const struct job_view *v, char ret_path[400])
{
	return s->config->status.thumbnails && v->n_objects > 0 &&
	       thumbnail_path(s->config->node.spool, v->id, ret_path, 400) == 0 && access(ret_path, R_OK) == 0;
}
