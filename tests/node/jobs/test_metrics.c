/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of events: what is counted, and that the journal's counters with the open jobs are those of a walk over all events. */
#include <sqlite3.h>

#include "node/jobs/jobs_settled.h"
#include "node/jobs/metrics.h"
#include "tests/node/jobs/jobs_fixture.h"
#include "tests/node/store/journal_fixture.h"

static void event(struct metrics *m, struct job_view *v, enum job_event e, double time, const char *detail)
{
	struct event_row row = {.time = time, .job = v->id, .event = e, .known = true, .detail = (char *)detail};

	metrics_count(m, v, &row);
}

TEST(counted_by_event)
{
	static const char one[] = "{\"destination\": \"pacs\", \"sop_instance\": \"1\"}";
	static const char three[] = "{\"destination\": \"pacs\", \"sop_instances\": [\"1\", \"2\", \"3\"]}";
	struct job_view v = {.id = 1, .state = JOB_RUNNING, .completed = 100, .started = 103, .attempts = 1};
	struct metrics m = {0};

	event(&m, &v, EVENT_STARTED, 103, "{}");
	event(&m, &v, EVENT_RECONSTRUCTED, 104.5, "{}");
	v.reconstructed = 104.5;
	v.members.recorded = 99;
	event(&m, &v, EVENT_SEND_FAILED, 105, one);
	event(&m, &v, EVENT_SENT, 106, one);
	event(&m, &v, EVENT_SENT, 106, three);
	event(&m, &v, EVENT_SEND_REFUSED, 107, one);
	event(&m, &v, EVENT_SENT, 106, "no JSON"); /* its job is quarantined by jobs_apply() */
	v.reconstructed = 2000;
	event(&m, &v, EVENT_DELIVERED, 1000, "{}"); /* the clock was set back */
	assert_int_equal(m.events[EVENT_SENT], 3);
	assert_int_equal(m.wait.count, 1);
	assert_true(m.wait.sum == 3e6 && m.reconstruction.sum == 1.5e6 && m.delivery.sum == 0 && m.all.sum == 901e6);
	assert_int_equal(m.wait.bucket[3], 1); /* up to 5 s */
	assert_int_equal(m.all.bucket[8], 1);
	assert_int_equal(m.n_destinations, 1);
	assert_int_equal(m.destinations[0].sent, 4);
	assert_int_equal(m.destinations[0].refused, 1);
	assert_int_equal(m.destinations[0].failed, 1);
	v.attempts = 2; /* it waits once */
	event(&m, &v, EVENT_STARTED, 110, "{}");
	assert_int_equal(m.wait.count, 1);
	for (int i = 0; i < 2 * METRICS_DESTINATIONS; i++) { /* more names than there is room for */
		char detail[80];

		snprintf(detail, sizeof(detail), "{\"destination\": \"d%d\"}", i);
		event(&m, &v, EVENT_SENT, 110, detail);
	}
	assert_int_equal(m.n_destinations, METRICS_DESTINATIONS);
}

/* ---- any history ---- */

/* A node with a manager, which settles; a page, which shows the counters; and a walk over all events that ever were. */
struct node {
	struct place *place;
	struct journal *journal, *reader;
	struct jobs manager, page, walk;
	struct metrics shown, walked;
	unsigned random;
	double now;
};

static unsigned draw(struct node *n, unsigned below)
{
	n->random = n->random * 1664525 + 1013904223;
	return (n->random >> 8) % below;
}

static void append_any(struct node *n, int64_t job)
{
	static const struct {
		enum job_event event;
		const char *detail;
	} any[] = {
		{EVENT_INSTANCE, INSTANCE},
		{EVENT_COMPLETE, COMPLETE},
		{EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[]}"},
		{EVENT_STARTED, "{\"device\":\"cpu\"}"},
		{EVENT_STARTED, "{\"device\":\"cpu\"}"},
		{EVENT_CRASHED, "{\"reason\":\"r\"}"},
		{EVENT_RECONSTRUCTED, MADE("1.5")},
		{EVENT_RECONSTRUCTED, MADE("1.5")},
		{EVENT_SENT, "{\"destination\":\"pacs\",\"sop_instances\":[\"1.5\"],\"status\":\"0000\"}"},
		{EVENT_SEND_FAILED, "{\"destination\":\"ws\",\"status\":\"\",\"reason\":\"r\",\"next\":5}"},
		{EVENT_SEND_REFUSED, "{\"destination\":\"ws\",\"sop_instances\":[\"1.5\"],\"status\":\"A900\",\"reason\":\"r\"}"},
		{EVENT_SENT, "{"}, /* damaged: the job is quarantined */
		{EVENT_DELIVERED, "{}"},
		{EVENT_DELIVERED, "{}"},
		{EVENT_CLEANED, "{\"why\":\"age\"}"},
		{EVENT_CANCEL, "{\"reason\":\"r\"}"},
		{EVENT_RETRY, "{}"},
		{EVENT_PRIORITY, "{\"priority\":1}"},
	};
	unsigned i = draw(n, sizeof(any) / sizeof(any[0]));
	int ret = any[i].detail[1] || draw(n, 20) == 0
			  ? journal_append(n->journal, job, any[i].event, any[i].detail, n->now, NULL)
			  : 0;

	assert_true(ret == 0 || ret == -ESTALE || ret == -ENOENT);
	n->now += draw(n, 100) ? draw(n, 4000) / 7.0 : -50; /* the clock is set back at times */
}

static int walk_event(void *ctx, const struct event_row *row)
{
	struct node *n = ctx;

	assert_int_equal(jobs_apply(&n->walk, row), 0);
	metrics_count(&n->walked, jobs_find(&n->walk, row->job), row);
	return 0;
}

static void walk(struct node *n)
{
	assert_done(journal_replay(n->journal, 0, n->walk.last_seq, walk_event, n, NULL), NULL);
}

static void execute(struct node *n, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(n->place->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void manager_step(struct node *n)
{
	struct err err = {0};

	if (!n->manager.journal)
		assert_done(jobs_begin(&n->manager, n->journal, n->now, &err), &err);
	assert_done(jobs_refresh(&n->manager, n->journal, 0, &err), &err);
	jobs_observe_clock(&n->manager, n->now);
	for (size_t i = 0; i < n->manager.n; i++)
		n->manager.list[i]->further_open = true;
	assert_done(jobs_record_settled(&n->manager, n->journal, n->now, &err), &err);
	jobs_forget_settled(&n->manager, draw(n, 2) ? 0 : 5);
}

static void page_update(struct node *n)
{
	struct err err = {0};

	n->page.metrics = &n->shown;
	assert_done(journal_look_begin(n->reader, &err), &err);
	assert_done(jobs_refresh(&n->page, n->reader, 0, &err), &err);
	assert_done(jobs_find_recorded(&n->page, &err), &err);
	journal_look_end(n->reader);
	jobs_observe_clock(&n->page, n->now);
	(void)jobs_find(&n->page, 1 + draw(n, 40)); /* what is read between updates is not counted twice */
	jobs_forget_settled(&n->page, draw(n, 2) ? 0 : 5);
}

static void restart(struct node *n)
{
	jobs_clear(&n->manager);
	jobs_clear(&n->page);
	n->journal = journal_close(n->journal);
	n->reader = journal_close(n->reader);
	n->journal = open_journal(n->place);
	assert_done(journal_open_reader(n->place->path, &n->reader, NULL), NULL);
}

static void end(struct node *n)
{
	jobs_clear(&n->manager);
	jobs_clear(&n->page);
	jobs_clear(&n->walk);
	journal_close(n->reader);
	journal_close(n->journal);
}

static void delete_one(struct node *n)
{
	int64_t job = 1 + draw(n, 40);
	struct settled_row row;
	int ret;

	if (journal_find_settled(n->journal, job, &row, NULL) <= 0)
		return; /* what is not settled is deleted long after that */
	walk(n);
	ret = journal_delete_case(n->journal, &job, 1, NULL);
	assert_true(ret == 0 || ret == -ESTALE);
}

static void assert_same(const struct metrics *a, const struct metrics *b)
{
	assert_memory_equal(a->events, b->events, sizeof(a->events));
	assert_memory_equal(&a->wait, &b->wait, sizeof(a->wait));
	assert_memory_equal(&a->reconstruction, &b->reconstruction, sizeof(a->wait));
	assert_memory_equal(&a->delivery, &b->delivery, sizeof(a->wait));
	assert_memory_equal(&a->all, &b->all, sizeof(a->wait));
	assert_int_equal(a->n_destinations, b->n_destinations);
	for (size_t i = 0; i < a->n_destinations; i++) {
		const struct metrics_deliveries *x = &a->destinations[i], *y = &b->destinations[0];

		y += strcmp(x->name, y->name) != 0; /* in any order */
		assert_string_equal(x->name, y->name);
		assert_true(x->sent == y->sent && x->refused == y->refused && x->failed == y->failed);
	}
}

/* An image arrived before the clock was set back: what is shown does not change with a restart. */
TEST(clock_set_back_after_an_arrival, .setup = setup, .teardown = teardown)
{
	static const struct {
		enum job_event event;
		const char *detail;
	} then[] = {
		{EVENT_COMPLETE, COMPLETE}, {EVENT_STARTED, "{}"}, {EVENT_RECONSTRUCTED, MADE("1.5")}, {EVENT_DELIVERED, "{}"}};
	struct node n = {.place = *state, .now = 900.5};
	int64_t job;

	restart(&n);
	assert_done(journal_open_job(n.journal, OPENED, n.now, &job, NULL), NULL);
	assert_done(journal_append(n.journal, job, EVENT_INSTANCE, INSTANCE, n.now, NULL), NULL);
	n.now -= 100;
	page_update(&n); /* which counts it as received now */
	n.now += 150;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++)
		assert_done(journal_append(n.journal, job, then[i].event, then[i].detail, n.now, NULL), NULL);
	for (int i = 0; i < 3; i++) { /* as it goes on; started again before the case is recorded, and after that */
		page_update(&n);
		assert_true(n.shown.all.count == 1 && n.shown.all.sum == 50e6);
		if (i == 1)
			manager_step(&n);
		restart(&n);
	}
	end(&n);
}

/* Cases settle, are opened again, and are deleted; processes are started again; the tables are lost or written by another version. */
TEST(as_by_a_walk_over_all_events, .setup = setup, .teardown = teardown)
{
	static const char *const troubles[] = {
		"SELECT 1",
		"UPDATE settled_job SET version=1",		      /* recorded by an earlier version */
		"UPDATE settled_job SET study=study+1 WHERE job%3=0", /* damaged */
		"DELETE FROM settled_job WHERE job%5=0",	      /* lost */
		"DROP TABLE settled_job",			      /* made again */
		"DELETE FROM open_job WHERE job IN (SELECT job FROM event WHERE name='delivered')",
	};
	struct node n = {.place = *state, .random = test_seed(), .now = 1e6};
	unsigned settled = 0;

	restart(&n);
	for (int i = 0; i < 4000; i++) {
		unsigned what = draw(&n, 200);
		int64_t job;

		if (what < 2 && i < 2000)
			assert_done(journal_open_job(n.journal, OPENED, n.now, &job, NULL), NULL);
		else if (what < 10)
			manager_step(&n);
		else if (what < 14)
			delete_one(&n);
		else if (what < 16) {
			jobs_clear(&n.manager);
			jobs_clear(&n.page);
			if (what == 15) {
				n.journal = journal_close(n.journal);
				n.reader = journal_close(n.reader);
				execute(&n, troubles[draw(&n, sizeof(troubles) / sizeof(troubles[0]))]);
			}
			restart(&n);
			manager_step(&n);
		} else {
			append_any(&n, 1 + draw(&n, 40));
		}
		if (what >= 40)
			continue;
		page_update(&n);
		walk(&n);
		assert_same(&n.shown, &n.walked);
		settled += n.manager.n > n.manager.n_open;
	}
	assert_true(settled > 0 && n.walked.events[EVENT_CLEANED] > 5 && n.walked.events[EVENT_PRIORITY] > 5);
	end(&n);
}
