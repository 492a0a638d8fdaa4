/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: append and replay, refusal of what does not fit, several writers at once. */
#include <sqlite3.h>

#include "tests/node/store/journal_fixture.h"
#include "tests/test.h"

#include <sys/resource.h>
#include <sys/wait.h>

TEST(instances, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	struct instance_row row, rows[3], sent;

	sent = instance("1.2.3", "aa");
	assert_int_equal(journal_add_instance(j, &sent, NULL), 0);
	assert_int_equal(journal_has_instance(j, "1.2.3", "aa", &row, NULL), 1);
	assert_memory_equal(&row, &sent, sizeof(row));
	assert_int_equal(journal_has_instance(j, "1.2.3", "bb", NULL, NULL), 0);
	assert_int_equal(journal_has_instance(j, "1.2.4", "aa", NULL, NULL), 0);
	assert_int_equal(journal_has_file(j, sent.file, NULL), 1);
	assert_int_equal(journal_has_file(j, "instances/other.dcm", NULL), 0);
	row = instance("1.2.5", "cc");
	strcpy(row.file, sent.file);
	assert_true(journal_add_instance(j, &row, NULL) < 0); /* one file, one instance */
	for (int i = 0; i < 4; i++)
		add(j, "1.2.9", "dd");
	assert_int_equal(journal_list_unindexed(j, 0, rows, 3, NULL), 3);
	assert_int_equal(rows[0].id, sent.id);
	assert_int_equal(journal_list_unindexed(j, rows[2].id, &row, 1, NULL), 1);
	assert_int_equal(row.id, rows[2].id + 1);
	assert_true(rows[1].id < rows[2].id);
	assert_int_equal(journal_remove_instance(j, sent.id, 5, NULL), 0);
	assert_int_equal(journal_remove_instance(j, sent.id, 6, NULL), 0); /* twice is once */
	assert_int_equal(journal_has_instance(j, "1.2.3", "aa", NULL, NULL), 0);
	assert_int_equal(journal_has_file(j, sent.file, NULL), 0);
	journal_close(j);
}

static int count_each(void *ctx, const struct instance_row *row, const char *detail)
{
	(void)row;
	(void)detail;
	++*(int *)ctx;
	return 0;
}

/* A worker in the sandbox can create no file beside the journal: a result of thousands of slices needs none. */
TEST(many_objects_without_another_file, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	struct rlimit limit, none;
	int64_t job = open_job(j);
	size_t n = 0, size = 4000000;
	char *detail = malloc(size);
	struct err err = {0};

	assert_int_equal(journal_append(j, job, EVENT_COMPLETE, "{}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_STARTED, "{}", 3, NULL), 0);
	n += (size_t)snprintf(detail, size, "{\"objects\": [");
	for (int i = 0; i < 20000; i++)
		n += (size_t)snprintf(detail + n, size - n, "%s{\"sop_instance\": \"2.25.1234567890123456789012345678901%d\"}",
				      i ? ", " : "", i);
	snprintf(detail + n, size - n, "]}");
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	if (journal_append_if_unchanged(j, job, INT64_MAX, EVENT_RECONSTRUCTED, detail, 4, &err) != 0)
		print_error("%s\n", err.msg);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(err.code, 0);
	free(detail);
	journal_close(j);
}

/* Senders take turns, so a later instance may be classified first: nothing waits twice or is passed over. */
TEST(classifications_in_any_order, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t first = add(j, "1.1", "aa"), second = add(j, "1.2", "bb"), third = add(j, "1.1", "cc"), job = open_job(j);
	struct journal_totals totals = {0};
	struct instance_row rows[3];
	int64_t instance, event;
	uint64_t n_waiting;
	int n = 0;

	assert_int_equal(journal_classify(j, third, CLASSIFIED_MEMBER, job, "{}", 2, NULL), 0);
	assert_int_equal(journal_list_unindexed(j, 0, rows, 3, NULL), 2);
	assert_int_equal(rows[0].id, first);
	assert_int_equal(rows[1].id, second);
	assert_int_equal(journal_count_unindexed(j, &n_waiting, NULL), 0);
	assert_int_equal(n_waiting, 2);
	assert_int_equal(journal_each_indexed(j, 0, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 0); /* in order of arrival: only after those before it */
	assert_int_equal(journal_last_rows(j, &instance, &event, NULL), 0);
	assert_int_equal(instance, first - 1);
	assert_int_equal(journal_add_totals(j, &totals, NULL), 0);
	assert_int_equal(journal_find_member(j, "1.1", first, &rows[0], NULL), 1); /* the later one came first */
	assert_int_equal(rows[0].id, third);
	assert_int_equal(journal_classify(j, first, CLASSIFIED_CONFLICT, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, second, CLASSIFIED_IGNORED, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_each_indexed(j, 0, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(journal_last_rows(j, &instance, &event, NULL), 0);
	assert_int_equal(instance, third);
	assert_int_equal(journal_add_totals(j, &totals, NULL), 0);
	assert_int_equal(totals.classified[CLASSIFIED_MEMBER], 1);
	assert_int_equal(totals.classified[CLASSIFIED_CONFLICT], 1);
	assert_int_equal(totals.classified[CLASSIFIED_IGNORED], 1);
	journal_close(j);
}

TEST(classifications, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t first = add(j, "1.1", "aa"), second = add(j, "1.1", "bb"), job = open_job(j);
	struct instance_row row;
	struct trace t = {0};

	assert_int_equal(journal_classify(j, first, CLASSIFIED_MEMBER, job, "{\"n\":1}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, first, CLASSIFIED_IGNORED, 0, "{}", 2, NULL), -EEXIST);
	assert_int_equal(journal_find_member(j, "1.1", second, &row, NULL), 1);
	assert_int_equal(row.id, first);
	assert_int_equal(journal_find_member(j, "1.1", first, &row, NULL), 0);
	assert_int_equal(journal_classify(j, second, CLASSIFIED_CONFLICT, 0, "{\"of\":1}", 2, NULL), 0);
	assert_int_equal(journal_list_unindexed(j, 0, &row, 1, NULL), 0);
	assert_int_equal(journal_each_member(j, job, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.row[0].instance, first);
	assert_string_equal(t.detail[0], "{\"n\":1}");
	t.n = 0;
	assert_int_equal(journal_each_classified(j, CLASSIFIED_CONFLICT, 10, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.row[0].instance, second);
	journal_close(j);
}

/* A CT image that two jobs use: its members come first, a new `complete` event replaces what was joined before, and it is removed
 * with the last of the jobs. */
TEST(companions, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t own = add(j, "1.1", "aa"), ct[3] = {add(j, "1.2", "bb"), add(j, "1.3", "cc"), add(j, "1.4", "dd")},
		a = open_job(j), b = open_job(j), last = 0, event;
	struct instance_row row;
	struct trace t = {0};
	int n = 0;

	for (int i = 0; i < 3; i++)
		assert_int_equal(journal_classify(j, ct[i], CLASSIFIED_COMPANION, 0, "{\"ct\":1}", 2, NULL), 0);
	assert_int_equal(journal_each_companion(j, 0, count_each, &n, NULL), 0);
	assert_int_equal(n, 0); /* the first instance still waits */
	assert_int_equal(journal_classify(j, own, CLASSIFIED_MEMBER, a, "{}", 2, NULL), 0);
	assert_int_equal(journal_each_companion(j, ct[0], count_each, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(journal_find_member(j, "1.2", own, &row, NULL), 1); /* other content under its UID is a conflict */
	n = 0;
	assert_int_equal(journal_each_unassigned(j, 1e9, 10, count_each, &n, NULL), 0);
	assert_int_equal(journal_each_unused_companion(j, 1, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(journal_each_unused_companion(j, 2, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(journal_last_rows(j, &last, &event, NULL), 0);
	assert_int_equal(journal_append_complete(j, a, event, "{}", ct, 1, 3, NULL), 0);
	assert_int_equal(journal_append_complete(j, a, event, "{}", ct, 1, 3, NULL), -ESTALE); /* it is complete */
	assert_int_equal(journal_append(j, a, EVENT_HELD, "{}", 3, NULL), 0);
	assert_int_equal(journal_append(j, a, EVENT_RETRY, "{}", 3, NULL), 0);
	assert_int_equal(journal_append_complete(j, a, event, "{}", ct, 2, 4, NULL), -ESTALE); /* changed meanwhile */
	assert_int_equal(journal_append_complete(j, a, INT64_MAX, "{}", ct + 1, 2, 4, NULL), 0);
	assert_int_equal(journal_each_member(j, a, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.row[0].instance, own);
	assert_int_equal(t.row[1].instance, ct[1]);
	assert_int_equal(t.row[2].instance, ct[2]);
	assert_string_equal(t.detail[2], "{\"ct\":1}");
	assert_int_equal(journal_append_complete(j, b, INT64_MAX, "{}", ct + 2, 1, 4, NULL), 0);
	n = 0;
	assert_int_equal(journal_each_unused_companion(j, 1e9, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 0);
	/* Removed with the last job that has it. */
	assert_int_equal(journal_append(j, a, EVENT_CANCEL, "{}", 5, NULL), 0);
	assert_int_equal(journal_append_cleaned(j, a, INT64_MAX, "{}", 5, NULL), 0);
	n = 0;
	assert_int_equal(journal_each_companion(j, 0, count_each, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(journal_append(j, b, EVENT_CANCEL, "{}", 6, NULL), 0);
	assert_int_equal(journal_append_cleaned(j, b, INT64_MAX, "{}", 6, NULL), 0);
	assert_int_equal(journal_each_companion(j, 0, count_each, &n, NULL), 0);
	assert_int_equal(n, 1);
	/* A removed one cannot be joined; nothing of the attempt remains. */
	b = open_job(j);
	assert_int_equal(journal_append_complete(j, b, INT64_MAX, "{}", ct, 1, 7, NULL), -ESTALE);
	t.n = 0;
	assert_int_equal(journal_replay(j, b, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	/* Their rows are deleted after those of the last job. */
	assert_int_equal(journal_delete_unassigned(j, 100, NULL), 0);
	assert_int_equal(journal_delete_case(j, &a, 1, NULL), 0);
	assert_int_equal(journal_delete_unassigned(j, 100, NULL), 2);
	journal_close(j);
}

/* Jobs are numbered 1, 2, 3, whatever other events there are; the number of one that was deleted is not used again. */
TEST(numbers_of_jobs, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t last = 0;

	for (int64_t k = 1; k <= 3; k++) {
		last = open_job(j);
		assert_int_equal(last, k);
		assert_int_equal(journal_append(j, last, EVENT_PRIORITY, "{}", 2, NULL), 0);
	}
	assert_int_equal(journal_append(j, last, EVENT_CANCEL, "{}", 5, NULL), 0);
	assert_int_equal(journal_append_cleaned(j, last, INT64_MAX, "{}", 5, NULL), 0);
	assert_int_equal(journal_delete_case(j, &last, 1, NULL), 0);
	assert_int_equal(open_job(j), 4);
	journal_close(j);
}

/* In a journal of an earlier version the number of a job is the row of its `opened` event. Here that of the last one was deleted. */
TEST(numbers_of_earlier_jobs, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	int64_t job = open_job(j);
	sqlite3 *db;

	assert_int_equal(journal_append(j, job, EVENT_PRIORITY, "{}", 2, NULL), 0);
	journal_close(j);
	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "DROP TABLE job_number; INSERT INTO event(time, job, name, instance, detail)"
				      " VALUES(1, 3, 'opened', 0, '{}'); DELETE FROM event WHERE job=3",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	j = open_journal(p);
	assert_int_equal(open_job(j), 4);
	assert_int_equal(open_job(j), 5);
	journal_close(j);
}

static int64_t latest(struct journal *j, const char *key)
{
	int64_t job = 0;
	int found = journal_find_latest(j, key, &job, NULL);

	assert_int_equal(found, job > 0);
	return job;
}

static int64_t open_with(struct journal *j, const char *detail)
{
	int64_t job = 0;

	assert_int_equal(journal_open_job(j, detail, 1, &job, NULL), 0);
	return job;
}

/* The newest first job of a case, also in a journal of an earlier version, which has no table of keys. */
TEST(found_by_key, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	int64_t first = open_with(j, "{\"key\":\"1.2|3|L M\"}"), other = open_with(j, "{\"key\":\"1.2|3\"}"), newer;
	sqlite3 *db;

	assert_int_equal(latest(j, "1.2|3|L M"), first);
	newer = open_with(j, "{\"key\":\"1.2|3|L M\",\"result_of\":0}");
	open_with(j, "{\"key\":\"1.2|3|L M\",\"result_of\":1}"); /* a further result */
	open_with(j, "{}");
	open_with(j, "no JSON");
	for (int round = 0; round < 2; round++) {
		assert_int_equal(latest(j, "1.2|3|L M"), newer);
		assert_int_equal(latest(j, "1.2|3"), other);
		assert_int_equal(latest(j, ""), 0);
		journal_close(j);
		assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, "DROP TABLE job_key", NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		j = open_journal(p);
	}
	assert_int_equal(journal_append(j, newer, EVENT_CANCEL, "{}", 5, NULL), 0);
	assert_int_equal(journal_append_cleaned(j, newer, INT64_MAX, "{}", 5, NULL), 0);
	assert_int_equal(journal_delete_case(j, &newer, 1, NULL), 0);
	assert_int_equal(latest(j, "1.2|3|L M"), first);
	journal_close(j);
}

/* An earlier version, to which a site went back for a while, opens jobs and does not know the table. */
TEST(found_by_key_after_going_back, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *open = open_journal(p), *j;
	int64_t first = open_with(open, "{\"key\":\"1.2|3\"}"), later;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO event(time, job, name, detail) VALUES(2, 2, 'opened', '{\"key\":\"1.2|3\"}'),"
				      "(2, 3, 'opened', '{\"key\":\"1.2|4\"}'), (2, 4, 'opened', 'no JSON')",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(latest(open, "1.2|3"), first);
	later = open_with(open, "{\"key\":\"1.2|5\"}"); /* also where they could not be added at the start */
	assert_int_equal(latest(open, "1.2|3"), 2);
	assert_int_equal(latest(open, "1.2|5"), later);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM job_key WHERE job>1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	j = open_journal(p);
	assert_int_equal(latest(j, "1.2|3"), 2);
	assert_int_equal(latest(j, "1.2|4"), 3);
	assert_int_equal(latest(j, "1.2|5"), later);
	journal_close(open);
	journal_close(j);
}

/* An object that was ignored, and is received again when it is needed. */
TEST(ignored_once, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t first = add(j, "1.1", "aa"), second;
	struct instance_row row;

	assert_int_equal(journal_is_ignored(j, "1.1", "aa", NULL), 0); /* it waits for the indexer */
	assert_int_equal(journal_classify(j, first, CLASSIFIED_IGNORED, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_is_ignored(j, "1.1", "aa", NULL), 1);
	assert_int_equal(journal_is_ignored(j, "1.1", "bb", NULL), 0);
	second = add(j, "1.1", "aa");
	assert_int_equal(journal_is_ignored(j, "1.1", "aa", NULL), 0);
	assert_int_equal(journal_classify(j, second, CLASSIFIED_COMPANION, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_is_ignored(j, "1.1", "aa", NULL), 0);
	assert_int_equal(journal_has_instance(j, "1.1", "aa", &row, NULL), 1);
	assert_int_equal(row.id, second);
	journal_close(j);
}

TEST(replay_after_reopen, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t a = open_job(j), b = open_job(j);
	enum job_state s;
	struct trace t = {0};

	assert_int_equal(journal_append(j, a, EVENT_COMPLETE, "{\"protocol\":\"p\"}", 3.5, NULL), 0);
	assert_int_equal(journal_append(j, b, EVENT_HELD, "{\"reason\":\"r\"}", 4, NULL), 0);
	journal_close(j);
	j = open_journal(*state);
	assert_int_equal(journal_replay(j, 0, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.row[2].event, EVENT_COMPLETE);
	assert_int_equal(t.row[2].job, a);
	assert_true(t.row[2].known && t.row[2].time == 3.5);
	assert_string_equal(t.detail[2], "{\"protocol\":\"p\"}");
	t.n = 0;
	assert_int_equal(journal_replay(j, b, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	t.n = 0;
	assert_int_equal(journal_replay(j, 0, t.row[0].seq, collect, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(journal_job_state(j, a, &s, NULL), 0);
	assert_int_equal(s, JOB_READY);
	assert_int_equal(journal_job_state(j, 99, &s, NULL), 0);
	assert_int_equal(s, JOB_NONE);
	journal_close(j);
}

TEST(what_does_not_fit_is_refused, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t job = open_job(j), late = add(j, "1.7", "aa");
	struct err err = {0};
	struct instance_row row;
	struct trace t = {0};

	assert_error(journal_append(j, job, EVENT_SENT, "{}", 2, &err), &err, ESTALE, "collecting");
	assert_non_null(strstr(err.msg, "sent"));
	assert_int_equal(journal_append(j, 999, EVENT_CANCEL, "{}", 2, &err), -ENOENT);
	assert_int_equal(journal_append(j, job, EVENT_COMPLETE, "{}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_STARTED, "{}", 2, NULL), 0);
	/* A member of a running job: neither the event nor the classification may remain. */
	assert_int_equal(journal_classify(j, late, CLASSIFIED_MEMBER, job, "{}", 2, &err), -ESTALE);
	assert_int_equal(journal_list_unindexed(j, 0, &row, 1, NULL), 1);
	assert_int_equal(journal_replay(j, 0, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 3);
	journal_close(j);
}

/* An event that follows from a job is refused if another process has changed the job since it was read; not if it has changed
 * another job. */
TEST(decided_on_what_was_read, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state), *other = open_journal(*state);
	int64_t job = 0, second = 0, instance = 0, seen = 0;
	struct err err = {0};

	assert_int_equal(journal_open_job(j, "{}", 1, &job, NULL), 0);
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_open_job(other, "{}", 2, &second, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_PRIORITY, "{}", 3, NULL), 0);
	assert_error(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 4, &err), &err, ESTALE, "changed");
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_append(other, job, EVENT_PRIORITY, "{}", 5, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 6, NULL), -ESTALE);
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 7, NULL), 0);
	journal_close(other);
	journal_close(j);
}

TEST(revision_takes_all, .setup = setup, .teardown = teardown)
{
	struct journal *j = open_journal(*state);
	int64_t a = add(j, "1.1", "aa"), b = add(j, "1.2", "bb"), late = add(j, "1.3", "cc"), job = open_job(j), revision = 0;
	struct trace t = {0};
	enum job_state s;

	assert_int_equal(journal_classify(j, a, CLASSIFIED_MEMBER, job, "{\"i\":1}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, b, CLASSIFIED_MEMBER, job, "{\"i\":2}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_COMPLETE, "{}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_STARTED, "{}", 2, NULL), 0);
	assert_int_equal(journal_open_revision(j, job, late, "{\"i\":3}", "{\"key\":\"k\"}", 3, &revision, NULL), 0);
	assert_true(revision > job);
	assert_int_equal(journal_each_member(j, revision, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.row[0].instance, a);
	assert_int_equal(t.row[2].instance, late);
	assert_string_equal(t.detail[1], "{\"i\":2}");
	t.n = 0;
	assert_int_equal(journal_each_member(j, job, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(journal_job_state(j, revision, &s, NULL), 0);
	assert_int_equal(s, JOB_COLLECTING);
	/* The same instance a second time: nothing of the second revision remains. */
	assert_int_equal(journal_open_revision(j, job, late, "{}", "{}", 3, &revision, NULL), -EEXIST);
	t.n = 0;
	journal_replay(j, 0, 0, collect, &t, NULL);
	assert_int_equal(t.n, 9);
	/* A case whose images were removed cannot be revised: its revision would have members without files. */
	assert_int_equal(journal_append(j, job, EVENT_CANCEL, "{}", 4, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_CLEANED, "{}", 5, NULL), 0);
	assert_int_equal(journal_open_revision(j, job, add(j, "1.9", "dd"), "{}", "{\"key\":\"k\"}", 6, &revision, NULL),
			 -ESTALE);
	journal_close(j);
}

/* Writers in processes of their own, opening a journal that is not there yet: each row must be there once. */
TEST(many_processes, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	enum { WRITERS = 6, ROWS = 20 };
	pid_t pid[WRITERS];
	struct instance_row rows[WRITERS * ROWS + 1];
	struct journal *j;
	int status;

	for (int w = 0; w < WRITERS; w++) {
		pid[w] = fork();
		if (pid[w] == 0) {
			struct err err = {0};
			int64_t job;
			char uid[65];

			if (journal_open(p->path, &j, &err) < 0 || journal_open_job(j, "{}", 1, &job, &err) < 0)
				_exit(1);
			for (int i = 0; i < ROWS; i++) {
				struct instance_row row;

				snprintf(uid, sizeof(uid), "1.%d.%d", w, i);
				row = instance(uid, "dd");
				if (journal_add_instance(j, &row, &err) < 0 ||
				    journal_append(j, job, i % 2 ? EVENT_RETRY : EVENT_HELD, "{}", i, &err) < 0)
					_exit(2);
			}
			journal_close(j);
			_exit(0);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	j = open_journal(p);
	assert_int_equal(journal_list_unindexed(j, 0, rows, WRITERS * ROWS + 1, NULL), WRITERS * ROWS);
	for (int w = 0; w < WRITERS; w++)
		for (int i = 0; i < ROWS; i++) {
			char uid[65];

			snprintf(uid, sizeof(uid), "1.%d.%d", w, i);
			assert_int_equal(journal_has_instance(j, uid, "dd", NULL, NULL), 1);
		}
	journal_close(j);
}

/* Two processes act on one job at the same moment: exactly one of cancel and started-from-ready wins,
 * the state always replays. */
TEST(racing_events, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	enum { ROUNDS = 30 };
	int64_t job[ROUNDS];
	pid_t pid;
	int status;

	for (int i = 0; i < ROUNDS; i++) {
		job[i] = open_job(j);
		assert_int_equal(journal_append(j, job[i], EVENT_COMPLETE, "{}", 1, NULL), 0);
	}
	journal_close(j);
	pid = fork();
	j = open_journal(p);
	for (int i = 0; i < ROUNDS; i++) {
		int ret = journal_append(j, job[i], pid ? EVENT_FAILED : EVENT_INSTANCE, "{}", 2, NULL);

		if (pid == 0 && ret < 0 && ret != -ESTALE)
			_exit(1);
	}
	if (pid == 0) {
		journal_close(j);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < ROUNDS; i++) {
		enum job_state s;

		assert_int_equal(journal_job_state(j, job[i], &s, NULL), 0);
		assert_true(s == JOB_FAILED || s == JOB_COLLECTING);
	}
	journal_close(j);
}
