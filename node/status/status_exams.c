/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_exams.h"

#include <stdlib.h>
#include <string.h>

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* The first result of the images of a case. */
static int64_t first_result(const struct job_view *v)
{
	return v->other.of ? v->other.of : v->id;
}

static int by_exam(const void *a, const void *b)
{
	const struct job_view *x = *(const struct job_view *const *)a, *y = *(const struct job_view *const *)b;
	int order = strcmp(x->study, y->study);

	if (order == 0 && x->study[0])
		order = (int)status_filter_group(x) - (int)status_filter_group(y);
	if (order == 0 && x->study[0])
		order = compare_numbers(first_result(x), first_result(y));
	return order ? order : compare_numbers(x->id, y->id);
}

int status_exams_work_order(const struct job_view *x, const struct job_view *y)
{
	static const int rank[] = {
		[JOB_RUNNING] = 0, [JOB_RECONSTRUCTED] = 1, [JOB_STORED] = 2, [JOB_READY] = 3, [JOB_COLLECTING] = 4};

	if (rank[x->state] != rank[y->state])
		return rank[x->state] - rank[y->state];
	if (x->state == JOB_READY && x->priority != y->priority)
		return y->priority - x->priority;
	if (x->state == JOB_READY && x->completed_seq != y->completed_seq)
		return x->completed_seq < y->completed_seq ? -1 : 1;
	return x->changed != y->changed ? (x->changed < y->changed ? 1 : -1) : compare_numbers(y->id, x->id);
}

static void describe_exam(struct status_exam *e)
{
	e->lead = e->cases[0];
	e->group = status_filter_group(e->lead);
	for (size_t i = 0; i < e->n; i++) {
		const struct job_view *v = e->cases[i];
		double when = e->group == GROUP_DONE && v->finished > 0 ? v->finished : v->changed;

		e->when = when > e->when ? when : e->when;
		e->newest = v->id > e->newest ? v->id : e->newest;
		if (e->group == GROUP_WORK && status_filter_group(v) == GROUP_WORK && status_exams_work_order(v, e->lead) < 0)
			e->lead = v;
	}
}

/* A case beside the hash of its study: most comparisons need no text. */
struct hashed {
	uint64_t hash;
	const struct job_view *v;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : by_exam(&x->v, &y->v);
}

/* Put the cases of an exam together, in order. Without memory for the hashes it takes longer. */
static void sort_by_exam(const struct job_view **cases, size_t n)
{
	struct hashed *list = malloc((n ? n : 1) * sizeof(list[0]));

	if (!list) {
		qsort(cases, n, sizeof(cases[0]), by_exam);
		return;
	}
	for (size_t i = 0; i < n; i++)
		list[i] = (struct hashed){jobs_index_hash(cases[i]->study, 0), cases[i]};
	qsort(list, n, sizeof(list[0]), by_hash);
	for (size_t i = 0; i < n; i++)
		cases[i] = list[i].v;
	free(list);
}

size_t status_exams_find(const struct job_view **cases, size_t n, struct status_exam *ret_exams)
{
	size_t count = 0;

	sort_by_exam(cases, n);
	for (size_t i = 0; i < n; i += ret_exams[count++].n) {
		struct status_exam *e = &ret_exams[count];

		*e = (struct status_exam){.cases = &cases[i], .n = 1};
		while (cases[i]->study[0] && i + e->n < n && !strcmp(cases[i + e->n]->study, cases[i]->study))
			e->n++;
		describe_exam(e);
	}
	return count;
}

static int section_order(const void *a, const void *b)
{
	const struct status_exam *x = a, *y = b;

	if (x->group == GROUP_WORK)
		return status_exams_work_order(x->lead, y->lead);
	return x->when != y->when ? (x->when < y->when ? 1 : -1) : compare_numbers(y->newest, x->newest);
}

void status_exams_order(struct status_exam *exams, size_t n)
{
	qsort(exams, n, sizeof(exams[0]), section_order);
}
