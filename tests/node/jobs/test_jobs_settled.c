/* SPDX-License-Identifier: Apache-2.0 */
/* Settled jobs are recorded, left out at a start, and read when they are asked for; the events stay what counts. */
#include <sqlite3.h>

#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs_settled.h"
#include "node/jobs/journal_retention.h"
#include "tests/node/jobs/jobs_fixture.h"
#include "tests/node/store/journal_fixture.h"

#define KEY(study, series) "{\"key\":\"" study "|" series "\",\"kind\":\"dbt\",\"calling\":\"MOD\",\"study\":\"" study "\"}"

static void append(struct journal *j, int64_t job, enum job_event event, const char *detail, double now)
{
	struct err err = {0};

	assert_done(journal_append(j, job, event, detail, now, &err), &err);
}

static int64_t deliver(struct journal *j, const char *opened, double now)
{
	struct err err = {0};
	int64_t job;

	assert_done(journal_open_job(j, opened, now, &job, &err), &err);
	append(j, job, EVENT_COMPLETE, COMPLETE, now);
	append(j, job, EVENT_STARTED, "{\"device\":\"cpu\"}", now);
	append(j, job, EVENT_RECONSTRUCTED, MADE("1.5"), now);
	append(j, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}", now + 1);
	append(j, job, EVENT_SENT, "{\"destination\":\"ws\",\"status\":\"0000\"}", now + 2);
	append(j, job, EVENT_DELIVERED, "{}", now + 3);
	return job;
}

/* Read, record and forget what is settled. */
static void record(struct jobs *jobs, struct journal *j, double now)
{
	struct err err = {0};

	assert_done(jobs_refresh(jobs, j, 0, &err), &err);
	jobs_observe_clock(jobs, now);
	assert_done(jobs_record_settled(jobs, j, now, &err), &err);
	jobs_forget_settled(jobs, 0);
}

static size_t count_at_start(struct journal *j)
{
	struct jobs jobs = {0};
	size_t n;

	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	n = jobs.n;
	jobs_clear(&jobs);
	return n;
}

static void execute(const struct place *p, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static const char *describe(const struct job_view *v)
{
	static char text[2][4000];
	static int turn;
	json_t *view = job_report_view(v, NULL, "/none");
	char *dump = json_dumps(view, JSON_SORT_KEYS);

	turn = !turn;
	snprintf(text[turn], sizeof(text[0]), "%s seq=%lld seen=%g open=%d", dump, (long long)v->seq, job_view_done(v),
		 v->further_open);
	free(dump);
	json_decref(view);
	return text[turn];
}

TEST(read_again_as_it_was, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs all GOES(jobs_clear) = {0}, later GOES(jobs_clear) = {0};
	int64_t first = deliver(j, KEY("1", "a"), 1000), second = deliver(j, KEY("1", "b"), 2000),
		other = deliver(j, KEY("2", "a"), 3000);
	int64_t open;

	append(j, second, EVENT_CLEANED, "{\"why\":\"age\"}", 2500);
	assert_done(journal_open_job(j, KEY("1", "c"), 4000, &open, NULL), NULL);
	assert_int_equal(count_at_start(j), 4);
	record(&all, j, 5000);
	assert_int_equal(all.n, 1); /* recorded and forgotten */
	assert_int_equal(count_at_start(j), 1);

	assert_done(jobs_refresh(&later, j, 0, NULL), NULL);
	jobs_observe_clock(&later, 5000);
	assert_true(delivery_queue_reached(&later, "ws", 5000) == 3002);
	for (int64_t id = first; id <= other; id++) {
		struct jobs replayed GOES(jobs_clear) = {0};
		struct job_view *v;

		assert_done(jobs_refresh(&replayed, j, id, NULL), NULL);
		v = jobs_find(&replayed, id);
		v->further_open = true;
		assert_string_equal(describe(jobs_find(&later, id)), describe(v));
	}
	assert_int_equal(later.n, 4);
	assert_int_equal(later.n_open, 1);
	assert_null(jobs_find(&later, open + 1));
	journal_close(j);
}

/* By study and by series, each with those in memory, the newest first. */
TEST(found_by_study_and_series, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	int64_t first = deliver(j, KEY("1", "a"), 1000), second = deliver(j, KEY("1", "b"), 2000),
		other = deliver(j, KEY("2", "a"), 3000);
	int64_t open;
	struct job_view *v;

	record(&jobs, j, 5000);
	assert_done(journal_open_job(j, KEY("1", "c"), 6000, &open, NULL), NULL);
	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	for (int round = 0; round < 2; round++) {
		v = jobs_of_study(&jobs, "1|x");
		assert_int_equal(v->id, open);
		v = jobs_before_in_study(v);
		assert_int_equal(v->id, second);
		v = jobs_before_in_study(v);
		assert_int_equal(v->id, first);
		assert_null(jobs_before_in_study(v));
		v = jobs_of_series(&jobs, "x|a");
		assert_int_equal(v->id, other);
		assert_int_equal(jobs_before_in_series(v)->id, first);
		jobs_forget_settled(&jobs, round); /* 3 are read: they are forgotten each time */
		assert_int_equal(jobs.n, 1);
	}
	assert_null(jobs_of_study(&jobs, "3|x"));
	assert_done(jobs_whole(&jobs, NULL, NULL), NULL);
	journal_close(j);
}

/* Each event that a settled job allows makes it open, in the same transaction, for those that have forgotten it, too. */
TEST(open_again_with_each_event, .setup = setup, .teardown = teardown)
{
	static const struct {
		enum job_event event;
		const char *detail;
	} events[] = {
		{EVENT_CLEANED, "{\"why\":\"age\"}"},
		{EVENT_PRIORITY, "{\"priority\":1}"},
		{EVENT_COMMITTED, "{\"destination\":\"pacs\",\"sop_instances\":[\"1.5\"]}"},
		{EVENT_COMMIT_FAILED, "{\"destination\":\"pacs\"}"},
		{EVENT_RETRY, "{}"},
		{EVENT_INSTANCE, INSTANCE},
	};
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	size_t appended = 0;

	for (int event = 0; event <= EVENT_CLEANED; event++) {
		const char *detail = "{}";
		int64_t job;

		if (job_next(JOB_DELIVERED, (enum job_event)event) == JOB_IMPOSSIBLE)
			continue;
		for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
			detail = (int)events[i].event == event ? events[i].detail : detail;
		job = deliver(j, KEY("1", "a"), 1000);
		record(&jobs, j, 5000);
		assert_int_equal(count_at_start(j), 0);
		append(j, job, (enum job_event)event, detail, 6000);
		appended++;
		assert_int_equal(count_at_start(j), 1);
		assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
		assert_int_equal(jobs.n_open, 1);
		assert_int_equal(jobs.open[0]->id, job);
		assert_string_equal(jobs.open[0]->kind, "dbt"); /* all of its events */
		assert_true(jobs.open[0]->changed == 6000);
		if (jobs.open[0]->state != JOB_CLEANED)
			execute(p, "DELETE FROM event WHERE job=(SELECT MAX(job) FROM event)");
		jobs_clear(&jobs);
	}
	assert_true(appended > 0);
	journal_close(j);
}

/* What happens to rows without the node: the next start reads the events. */
TEST(records_are_not_believed, .setup = setup, .teardown = teardown)
{
	static const struct {
		const char *sql;
		size_t at_start;  /* jobs of the 2 that it reads */
		uint64_t settled; /* jobs that are recorded after a start of the manager: a row that was lost is made again */
	} changes[] = {
		{"SELECT 1", 0, 2},
		{"UPDATE event SET detail='{' WHERE job=1 AND name='delivered'", 1, 1},
		{"DELETE FROM event WHERE job=1", 0, 1},
		{"UPDATE settled_job SET version=version+1", 2, 2},
		{"DELETE FROM settled_job", 0, 2},
		{"DROP TRIGGER event_opens", 2, 2},
		{"DROP TABLE open_job", 2, 2},
		{"DROP TABLE settled_job", 2, 2},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct place *p = *state;
		struct journal *j = open_journal(p);
		struct jobs jobs = {0};
		struct job_view *v;
		struct settled_row row;
		uint64_t settled;

		deliver(j, KEY("1", "a"), 1000);
		deliver(j, KEY("1", "b"), 1000);
		record(&jobs, j, 5000);
		jobs_clear(&jobs);
		journal_close(j);
		execute(p, changes[i].sql);
		j = open_journal(p);
		assert_int_equal(count_at_start(j), changes[i].at_start);
		execute(p, "UPDATE settled_job SET seq=0"); /* not about the last event: as open as any */
		assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
		v = jobs_find(&jobs, 2);
		assert_non_null(v);
		assert_int_equal(v->state, JOB_DELIVERED);
		assert_ptr_equal(jobs_next_open(&jobs, 1), v);
		jobs_clear(&jobs);
		assert_done(jobs_begin(&jobs, j, 5000, NULL), NULL);
		record(&jobs, j, 5000);
		assert_done(journal_count_settled(j, &settled, NULL), NULL);
		assert_int_equal(settled, changes[i].settled);
		assert_int_equal(journal_find_settled(j, 2, &row, NULL), 1);
		assert_int_equal(row.seq, jobs_find(&jobs, 2)->seq);
		jobs_clear(&jobs);
		journal_close(j);
		unlink(p->path);
	}
}

/* A row with a wrong value is none: the events count, and the next start of the manager writes it anew. */
TEST(wrong_rows_are_not_believed, .setup = setup, .teardown = teardown)
{
	static const char *const wrong[] = {"state=state+1",   "study=study+1", "series=0",   "done=done-1",	  "patient=7",
					    "opened=opened+1", "finished=0",	"warnings=1", "words=words||' '", "mark=mark+1"};
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct settled_row row;
	int64_t job = deliver(j, KEY("1", "a"), 1000);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct jobs jobs = {0};
		char sql[80];

		record(&jobs, j, 5000);
		snprintf(sql, sizeof(sql), "UPDATE settled_job SET %s", wrong[i]);
		execute(p, sql);
		assert_int_equal(journal_find_settled(j, job, &row, NULL), 0);
		assert_int_equal(jobs_find(&jobs, job)->state, JOB_DELIVERED);
		assert_ptr_equal(jobs_next_open(&jobs, 0), jobs_find(&jobs, job));
		jobs_clear(&jobs);
		assert_done(jobs_begin(&jobs, j, 5000, NULL), NULL);
		record(&jobs, j, 5000);
		assert_int_equal(journal_find_settled(j, job, &row, NULL), 1);
		assert_true(row.state == JOB_DELIVERED && row.done == 1003);
		jobs_clear(&jobs);
	}
	journal_close(j);
}

/* An event that comes while a job is recorded leaves it open. */
TEST(changed_meanwhile, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p), *another = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	int64_t job = deliver(j, KEY("1", "a"), 1000);

	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	jobs_observe_clock(&jobs, 5000);
	append(another, job, EVENT_CLEANED, "{}", 5000);
	assert_done(jobs_record_settled(&jobs, j, 5000, NULL), NULL);
	assert_int_equal(count_at_start(j), 1);
	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	assert_int_equal(jobs_find(&jobs, job)->state, JOB_CLEANED);
	record(&jobs, j, 5000);
	assert_int_equal(count_at_start(j), 0);
	journal_close(another);
	journal_close(j);
}

/* By time; one that was done while the clock was ahead counts from when it was seen, also after a restart. */
TEST(listed_by_state_and_time, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	struct jobs_numbers found = {0};
	struct err err = {0};
	int64_t late = deliver(j, KEY("1", "a"), 9000), early = deliver(j, KEY("1", "b"), 1000), last;

	record(&jobs, j, 5000);
	last = deliver(j, KEY("1", "c"), 6000); /* in memory */
	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	assert_done(jobs_in_state(&jobs, JOB_DELIVERED, 6003, &found, &err), &err);
	assert_int_equal(found.n, 3);
	assert_true(found.list[0] == early && found.list[1] == late && found.list[2] == last);
	assert_true(job_view_done(jobs_find(&jobs, late)) == 5000);
	found.n = 0;
	assert_done(jobs_in_state(&jobs, JOB_DELIVERED, 1003, &found, &err), &err);
	assert_int_equal(found.n, 1);
	found.n = 0;
	assert_done(jobs_in_state(&jobs, JOB_CLEANED, 1e9, &found, &err), &err);
	assert_int_equal(found.n, 0);
	record(&jobs, j, 2000); /* the clock was set back */
	assert_done(jobs_in_state(&jobs, JOB_DELIVERED, 2000, &found, &err), &err);
	assert_int_equal(found.n, 3);
	free(found.list);
	journal_close(j);
}

/* The manager records in between, as far as it can. Without the tables, as in a journal of an earlier version, all are read. */
TEST(begun_with_and_without_records, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p), *reader = NULL;
	struct err err = {0};

	for (int i = 0; i < 1001; i++) /* more than are recorded at a time */
		deliver(j, KEY("1", "a"), 1000);
	for (int round = 0; round < 4; round++) {
		struct jobs jobs = {0};

		if (round == 1)
			execute(p, "DROP TABLE settled_job");
		if (round == 2)
			execute(p, "UPDATE event SET time=time");
		assert_done(journal_open_reader(p->path, &reader, &err), &err);
		assert_done(jobs_begin(&jobs, round < 3 ? reader : j, 5000, &err), &err);
		assert_int_equal(jobs.n, round < 3 ? 1001 : 1);
		assert_int_equal(jobs_find(&jobs, 1000)->state, JOB_DELIVERED);
		jobs_clear(&jobs);
		journal_close(reader);
		if (round == 1) {
			journal_close(j);
			j = open_journal(p);
		}
	}
	journal_close(j);
}

/* Cases of many images are recorded one by one, so that the receiver does not wait for all of them. */
TEST(many_images_are_recorded_apart, .setup = setup, .teardown = teardown)
{
	static const char images[] = "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM i WHERE n<10000)"
				     "INSERT INTO event(time, job, name, instance, detail) SELECT 1, j, 'instance', n, '" INSTANCE
				     "' FROM i, (SELECT MAX(job) j FROM event)";
	struct journal *j = open_journal(*state);
	struct jobs jobs = {0};

	for (int i = 0; i < 2; i++) {
		int64_t job;

		assert_done(journal_open_job(j, OPENED, 1, &job, NULL), NULL);
		execute(*state, images);
		append(j, job, EVENT_CANCEL, "{\"reason\":\"r\"}", 2);
		append(j, job, EVENT_CLEANED, "{\"why\":\"cancelled\"}", 3);
	}
	assert_done(jobs_refresh(&jobs, j, 0, NULL), NULL);
	jobs_observe_clock(&jobs, 4);
	execute(*state, "CREATE TRIGGER t BEFORE INSERT ON settled_job WHEN NEW.job=2 BEGIN SELECT RAISE(ABORT, 'x'); END");
	assert_true(jobs_record_settled(&jobs, j, 4, NULL) < 0);
	assert_int_equal(count_at_start(j), 1);
	jobs_clear(&jobs);
	journal_close(j);
}

/* A phantom may have a case for each day: the newest are read. */
TEST(many_cases_of_a_patient, .setup = setup, .teardown = teardown)
{
	static const char cases[] =
		"WITH RECURSIVE i(n) AS (SELECT 2 UNION ALL SELECT n+1 FROM i WHERE n<300), e(name, detail) AS"
		" (VALUES('opened', '" OPENED "'), ('cancel', '{}'), ('cleaned', '{}'))"
		"INSERT INTO event(time, job, name, detail) SELECT 1, n, name, detail FROM i, e";
	const struct job_view of = {.patients.first[PATIENT_ID] = 7};
	struct journal *j = open_journal(*state);
	struct jobs jobs = {0};

	execute(*state, cases);
	record(&jobs, j, 4);
	assert_int_equal(jobs.n, 0);
	execute(*state, "UPDATE settled_job SET patient=7");
	jobs_read_patient(&jobs, &of);
	assert_int_equal(jobs.n, 240);
	assert_int_equal(jobs.list[0]->id, 61);
	jobs_clear(&jobs);
	journal_close(j);
}

/* The rows of old cases are deleted, those of this table with them. */
TEST(deleted_with_its_case, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	int64_t old = deliver(j, KEY("1", "a"), 1000), same = deliver(j, KEY("1", "a"), 1000),
		kept = deliver(j, KEY("1", "b"), 1000);
	uint64_t settled = 0;

	append(j, old, EVENT_CLEANED, "{}", 2000);
	append(j, kept, EVENT_CLEANED, "{}", 2000 + 2 * DAY);
	record(&jobs, j, 2000 + 2 * DAY);
	assert_int_equal(journal_retention_compact(j, &jobs, p->dir, 1, 2000 + 2 * DAY),
			 0); /* another job of the case is delivered */
	append(j, same, EVENT_CLEANED, "{}", 2000);
	record(&jobs, j, 2000 + 2 * DAY);
	assert_int_equal(journal_retention_compact(j, &jobs, p->dir, 1, 2000 + 2 * DAY), 1);
	assert_null(jobs_find(&jobs, old));
	assert_null(jobs_find(&jobs, same));
	assert_non_null(jobs_find(&jobs, kept));
	assert_done(journal_count_settled(j, &settled, NULL), NULL);
	assert_int_equal(settled, 1);
	journal_close(j);
}

/* What cannot be read is no reason to do something without it. */
TEST(says_what_cannot_be_read, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs GOES(jobs_clear) = {0};
	struct jobs_numbers found = {0};
	struct err err = {0};
	int64_t job = deliver(j, KEY("1", "a"), 1000);

	record(&jobs, j, 5000);
	execute(p, "ALTER TABLE settled_job RENAME COLUMN done TO broken");
	assert_null(jobs_find(&jobs, job));
	assert_true(jobs_whole(&jobs, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "done"));
	err = (struct err){0};
	assert_true(jobs_in_state(&jobs, JOB_DELIVERED, 6000, &found, &err) < 0);
	assert_non_null(strstr(err.msg, "done"));
	append(j, job, EVENT_CLEANED, "{}", 6000);
	err = (struct err){0};
	assert_true(jobs_refresh(&jobs, j, 0, &err) < 0);
	assert_non_null(strstr(err.msg, "done"));
	execute(p, "ALTER TABLE settled_job RENAME COLUMN broken TO done");
	assert_done(jobs_refresh(&jobs, j, 0, &err), &err);
	assert_int_equal(jobs_find(&jobs, job)->state, JOB_CLEANED);
	assert_done(jobs_whole(&jobs, NULL, NULL), NULL);
	journal_close(j);
}

#define PAGE 4096

/* Break the chain of the pages of a long text of x. */
static void damage_text(const struct place *p)
{
	char page[PAGE], text[100];
	int fd = open(p->path, O_RDWR), n = 0;

	memset(text, 'x', sizeof(text));
	for (off_t at = 0; pread(fd, page, PAGE, at) == PAGE; at += PAGE)
		if (!memcmp(page + 4, text, sizeof(text))) { /* the first four bytes: the number of the next page */
			assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, at), 4);
			n++;
		}
	close(fd);
	assert_true(n > 1);
}

/* One that cannot be read concerns those of its study and of its series, and no others. */
TEST(unreadable_concerns_its_exam, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct jobs jobs = {0};
	struct err err = {0};
	char opened[5 * PAGE];
	int64_t job, same, series, other;

	memset(opened, 'x', sizeof(opened));
	memcpy(opened, "{\"key\":\"1|a\",\"study\":\"1\",\"pad\":\"", strlen("{\"key\":\"1|a\",\"study\":\"1\",\"pad\":\""));
	strcpy(opened + sizeof(opened) - 3, "\"}");
	job = deliver(j, opened, 1000);
	deliver(j, KEY("3", "c"), 1000);
	record(&jobs, j, 5000);
	jobs_clear(&jobs);
	journal_close(j);
	damage_text(p);
	j = open_journal(p);
	assert_done(journal_open_job(j, KEY("1", "b"), 6000, &same, NULL), NULL);
	assert_done(journal_open_job(j, KEY("2", "a"), 6000, &series, NULL), NULL);
	assert_done(journal_open_job(j, KEY("3", "c"), 6000, &other, NULL), NULL);
	assert_done(jobs_refresh(&jobs, j, 0, &err), &err);
	for (int64_t id = same; id <= other; id++) {
		const struct job_view *v = jobs_find(&jobs, id);

		(void)jobs_of_study(&jobs, v->key);
		(void)jobs_of_series(&jobs, v->key);
	}
	assert_null(jobs_find(&jobs, job));
	assert_true(jobs_whole(&jobs, jobs_find(&jobs, same), &err) < 0);
	assert_non_null(strstr(err.msg, "case 1: "));
	assert_true(jobs_whole(&jobs, jobs_find(&jobs, series), NULL) < 0);
	assert_done(jobs_whole(&jobs, jobs_find(&jobs, other), NULL), NULL);
	assert_true(jobs_whole(&jobs, NULL, NULL) < 0);
	assert_int_equal(jobs_before_in_study(jobs_of_study(&jobs, "3|c"))->state, JOB_DELIVERED);
	jobs_clear(&jobs);
	journal_close(j);
}
