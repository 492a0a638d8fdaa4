/* SPDX-License-Identifier: Apache-2.0 */
/* A job's state as it is kept from append to append: it costs no more with each event, and is what a replay of all of them says,
 * whoever wrote, undid or removed some meanwhile. */
#include "node/store/journal.h"
#include "node/store/journal_internal.h"
#include "tests/test.h"

struct place {
	char dir[64], path[96];
	struct journal *a, *b; /* two processes' */
	int64_t job;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	test_folder(p->dir, sizeof(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->dir);
	*state = p;
	return journal_open(p->path, &p->a, NULL) < 0 || journal_open(p->path, &p->b, NULL) < 0 ||
	       journal_open_job(p->a, "{\"key\":\"k\"}", 1, &p->job, NULL) < 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	journal_close(p->a);
	journal_close(p->b);
	free(p);
	return 0;
}

static int append(struct journal *j, int64_t job, enum job_event event)
{
	return journal_append(j, job, event, "{}", 2, NULL);
}

/* Steps of SQLite's machine for the replay within one more append. */
static int steps(struct place *p)
{
	sqlite3_stmt_status(p->a->stmt[JOURNAL_JOB_EVENTS], SQLITE_STMTSTATUS_VM_STEP, 1);
	assert_int_equal(append(p->a, p->job, EVENT_PRIORITY), 0);
	return sqlite3_stmt_status(p->a->stmt[JOURNAL_JOB_EVENTS], SQLITE_STMTSTATUS_VM_STEP, 1);
}

TEST(costs_no_more_with_each_event, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int few, many;

	assert_int_equal(append(p->a, p->job, EVENT_PRIORITY), 0);
	few = steps(p);
	for (int i = 0; i < 300; i++)
		assert_int_equal(append(p->a, p->job, EVENT_PRIORITY), 0);
	many = steps(p);
	assert_true(few > 0);
	assert_true(many <= few + 5);
}

/* Steps of SQLite's machine to find the case of an instance. */
static int steps_to_case(struct place *p)
{
	int64_t job = 0;

	sqlite3_stmt_status(p->a->stmt[JOURNAL_LATEST_OF_KEY], SQLITE_STMTSTATUS_VM_STEP, 1);
	assert_int_equal(journal_find_latest(p->a, "k", &job, NULL), 1);
	return sqlite3_stmt_status(p->a->stmt[JOURNAL_LATEST_OF_KEY], SQLITE_STMTSTATUS_VM_STEP, 1);
}

TEST(costs_no_more_with_each_case, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t job, found = 0;
	int few, many;

	assert_int_equal(journal_find_latest(p->a, "k", &found, NULL), 1);
	few = steps_to_case(p);
	for (int i = 0; i < 300; i++)
		assert_int_equal(journal_open_job(p->b, i % 2 ? "{\"key\":\"k\"}" : "{\"key\":\"a\"}", 1, &job, NULL), 0);
	many = steps_to_case(p);
	assert_true(few > 0);
	assert_true(many <= few + 5);
}

TEST(others_write_too, .setup = setup, .teardown = teardown)
{
	static const enum job_event life[] = {EVENT_INSTANCE, EVENT_HELD,	 EVENT_RETRY,  EVENT_COMPLETE,
					      EVENT_STARTED,  EVENT_INTERRUPTED, EVENT_STARTED};
	struct place *p = *state;
	enum job_state now, mine;

	for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++) {
		assert_int_equal(append(i % 2 ? p->a : p->b, p->job, life[i]), 0);
		assert_int_equal(append(i % 2 ? p->b : p->a, p->job, EVENT_CLEANED), -ESTALE);
		assert_int_equal(journal_job_state(p->a, p->job, &mine, NULL), 0);
		assert_int_equal(journal_job_state(p->b, p->job, &now, NULL), 0);
		assert_int_equal(mine, now);
	}
	assert_int_equal(now, JOB_RUNNING);
	assert_int_equal(append(p->a, p->job, EVENT_CANCEL), 0);
	assert_int_equal(append(p->b, p->job, EVENT_RECONSTRUCTED), -ESTALE);
}

/* More jobs than there are places for: two share one. */
TEST(many_jobs, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t jobs[2 * JOURNAL_STATE_CACHE_SIZE + 1];
	size_t n = sizeof(jobs) / sizeof(jobs[0]);
	enum job_state now;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(journal_open_job(p->a, "{\"key\":\"k\"}", 1, &jobs[i], NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(append(p->a, jobs[i], i % 2 ? EVENT_COMPLETE : EVENT_HELD), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(journal_job_state(p->a, jobs[i], &now, NULL), 0);
		assert_int_equal(now, i % 2 ? JOB_READY : JOB_HELD);
	}
}

/* A transaction that was undone has given its numbers back: another event has them then. */
TEST(what_was_undone_never_was, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	enum job_state now;

	assert_int_equal(sqlite3_exec(p->a->db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(p->a->db,
				      "INSERT INTO event(time, job, name, detail) SELECT 1, job, 'complete', '{}' FROM event",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(journal_job_state(p->a, p->job, &now, NULL), 0);
	assert_int_equal(now, JOB_READY);
	assert_int_equal(journal_end_transaction(p->a, -EIO, NULL), -EIO);
	assert_int_equal(append(p->b, p->job, EVENT_HELD), 0);
	assert_int_equal(journal_job_state(p->a, p->job, &now, NULL), 0);
	assert_int_equal(now, JOB_HELD);
}

TEST(forgotten_by_another, .setup = setup, .teardown = teardown)
{
	static const enum job_event life[] = {EVENT_COMPLETE, EVENT_STARTED, EVENT_RECONSTRUCTED, EVENT_DELIVERED, EVENT_CLEANED};
	struct place *p = *state;
	enum job_state now;

	for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++)
		assert_int_equal(append(p->a, p->job, life[i]), 0);
	assert_int_equal(journal_job_state(p->a, p->job, &now, NULL), 0);
	assert_int_equal(now, JOB_CLEANED);
	assert_int_equal(journal_delete_case(p->b, &p->job, 1, NULL), 0);
	assert_int_equal(journal_job_state(p->a, p->job, &now, NULL), 0);
	assert_int_equal(now, JOB_NONE);
	assert_int_equal(append(p->a, p->job, EVENT_PRIORITY), -ENOENT);
}
