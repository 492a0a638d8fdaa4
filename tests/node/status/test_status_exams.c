/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases are one exam, where it stands, and in which order its cases are. */
#include "node/status/status_exams.h"
#include "tests/test.h"

#define N 9

/* Write the ids of the exam's cases, "3 1 2". */
static void ids_of(const struct status_exam *e, char ret[64])
{
	int n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < e->n; i++)
		n += snprintf(ret + n, 64 - (size_t)n, "%s%lld", i ? " " : "", (long long)e->cases[i]->id);
}

static int newest_first(const void *a, const void *b)
{
	const struct status_exam *x = a, *y = b;

	return (x->newest < y->newest) - (x->newest > y->newest);
}

TEST(test_exams)
{
	static struct job_view views[N] = {
		{.id = 1, .study = "1.2", .state = JOB_DELIVERED, .finished = 100, .changed = 900},
		{.id = 2, .study = "1.2", .state = JOB_DELIVERED, .finished = 110},
		{.id = 3, .study = "1.2", .state = JOB_DELIVERED, .finished = 120, .other.of = 1}, /* a further result of 1 */
		{.id = 4, .study = "1.3", .state = JOB_DELIVERED, .changed = 800},
		{.id = 5, .study = "1.3", .state = JOB_HELD, .changed = 130},
		{.id = 6, .study = "1.4", .state = JOB_READY, .changed = 140},
		{.id = 7, .study = "1.4", .state = JOB_RUNNING, .changed = 140},
		{.id = 8, .study = "", .state = JOB_CANCELLED, .finished = 150}, /* not known: no exam together */
		{.id = 9, .study = "", .state = JOB_CANCELLED, .finished = 160},
	};
	static const struct {
		const char *ids;
		enum status_group group;
		double when;
		int64_t lead;
	} want[] = {
		{"9", GROUP_DONE, 160, 9},	  {"8", GROUP_DONE, 150, 8},	 {"6 7", GROUP_WORK, 140, 7},
		{"5 4", GROUP_ATTENTION, 800, 5}, {"1 3 2", GROUP_DONE, 120, 1},
	};
	const struct job_view *cases[N + 1];
	struct status_exam exams[N], done[3];
	char ids[64];

	for (size_t i = 0; i < N; i++)
		cases[i] = &views[(4 * i) % N]; /* in any order */
	cases[N] = &views[0];
	assert_int_equal(status_exams_find(cases, N, exams), sizeof(want) / sizeof(want[0]));
	assert_ptr_equal(cases[N], &views[0]); /* behind the list nothing is changed */
	qsort(exams, sizeof(want) / sizeof(want[0]), sizeof(exams[0]), newest_first);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		ids_of(&exams[i], ids);
		assert_string_equal(ids, want[i].ids);
		assert_int_equal(exams[i].group, want[i].group);
		assert_true(exams[i].when == want[i].when);
		assert_int_equal(exams[i].lead->id, want[i].lead);
	}
	done[0] = exams[1];
	done[1] = exams[4];
	done[2] = exams[0];
	status_exams_order(done, 3); /* by when they finished: that files were removed later changes nothing */
	assert_int_equal(done[0].newest, 9);
	assert_int_equal(done[1].newest, 8);
	assert_int_equal(done[2].newest, 3);
	assert_int_equal(status_exams_find(cases, 0, exams), 0);
}

/* Work: what is nearest to its end first; waiting cases by priority, then in the order in which they became complete. */
TEST(test_work)
{
	struct job_view run = {.id = 1, .state = JOB_RUNNING}, first = {.id = 2, .state = JOB_READY, .completed_seq = 5},
			later = {.id = 3, .state = JOB_READY, .completed_seq = 6},
			urgent = {.id = 4, .state = JOB_READY, .completed_seq = 9, .priority = 1},
			arrives = {.id = 5, .state = JOB_COLLECTING};
	const struct job_view *order[] = {&run, &urgent, &first, &later, &arrives};

	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < 5; k++)
			assert_int_equal(status_exams_work_order(order[i], order[k]) < 0, i < k);
}
