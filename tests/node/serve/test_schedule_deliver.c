/* SPDX-License-Identifier: Apache-2.0 */
/* What the node decides about destinations: fallback, commitment, order and priority; and what it leaves behind and forgets. */
#include <sqlite3.h>

#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include "node/base/folder.h"
#include "node/jobs/journal_retention.h"
#include "node/serve/retention.h"
#include "node/status/status.h"

/* The node with other destinations; `route` names those of the route. */
static void configure(struct stage *t, const char *destinations, const char *route)
{
	char text[1200];

	snprintf(text, sizeof(text),
		 "destinations = ( %s );\nroutes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ %s ]; } );\n",
		 destinations, route);
	configure_as(t, "attempts = 2;", text);
}

#define PACS "{ name = \"pacs\"; aet = \"A\"; host = \"h\"; fallback = \"b\"; fallback_after = 100.0; }"
#define BACKUP "{ name = \"b\"; aet = \"B\"; host = \"h\"; }"
#define COMMITS                                                                                                                  \
	"{ name = \"pacs\"; aet = \"A\"; host = \"h\"; commitment = true; commitment_timeout = 50.0; commitment_attempts = 2; "  \
	"retry_first = 5.0; }"

TEST(refused_goes_to_the_fallback, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;

	configure(t, PACS ", " BACKUP, "\"pacs\"");
	v = made(t, job, true);
	append(t, job, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"status\":\"0122\"}");
	step(t, job, NOW);
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_int_equal(v->n_sends, 2);
	assert_true(v->sends[0].replaced && !v->sends[1].replaced && v->sends[1].state == SEND_DUE);
	assert_int_equal(job_view_count_sends(v, SEND_REFUSED), 0);
	append(t, job, EVENT_SENT, "{\"destination\":\"b\",\"status\":\"0000\"}");
	assert_int_equal(step(t, job, NOW)->state, JOB_DELIVERED);
}

/* Both refused: the dead letter; a retry begins with the first again, and comes to the second again. */
TEST(fallback_that_fails_too, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;

	configure(t, PACS ", " BACKUP, "\"pacs\"");
	v = made(t, job, true);
	append(t, job, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"status\":\"0122\"}");
	step(t, job, NOW);
	append(t, job, EVENT_SEND_REFUSED, "{\"destination\":\"b\",\"status\":\"A900\",\"reason\":\"no match\"}");
	assert_int_equal(step(t, job, NOW)->state, JOB_DEAD_LETTER);
	assert_string_equal(v->reason, "refused by b: no match");
	append(t, job, EVENT_RETRY, "{}");
	step(t, job, NOW);
	assert_true(!v->sends[0].replaced && v->sends[0].state == SEND_DUE && v->sends[1].standby);
	append(t, job, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"status\":\"0122\"}");
	step(t, job, NOW);
	assert_true(v->sends[0].replaced && !v->sends[1].standby && v->sends[1].state == SEND_DUE);
	assert_int_equal(v->n_sends, 2);
	append(t, job, EVENT_SENT, "{\"destination\":\"b\"}");
	assert_int_equal(step(t, job, NOW)->state, JOB_DELIVERED);
}

TEST(fallback_after_a_time, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1), other = add_job(t, "dbt", 1, 1);
	const struct job_view *v, *w;

	configure(t, PACS ", " BACKUP, "\"pacs\"");
	v = made(t, job, true);
	w = made(t, other, true);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5010,\"down\":true}");
	step(t, job, NOW + 50);
	assert_true(!v->sends[0].replaced && t->s.next <= NOW + 100);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5200,\"down\":true}");
	step(t, job, NOW + 100);
	assert_true(v->sends[0].replaced);
	assert_true(w->sends[0].replaced); /* it waited behind the first for as long */
}

static const struct job_view *stored_at(struct stage *t, int64_t job)
{
	made(t, job, true);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\",\"commit\":true}");
	return step(t, job, NOW);
}

#define ASKED "{\"destination\":\"pacs\",\"transaction\":\"2.25.1\"}"
#define TAKEN "{\"destination\":\"pacs\",\"transaction\":\"2.25.1\",\"status\":\"0000\",\"until\":5050}"

TEST(commitment_is_awaited, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;

	configure(t, COMMITS, "\"pacs\"");
	v = stored_at(t, job);
	assert_int_equal(v->state, JOB_STORED);
	assert_false(retention_may_clean(&t->s.jobs, v, &(struct retention_rule){1, 1}, NOW + 1e9));
	append(t, job, EVENT_COMMIT_REQUESTED, ASKED);
	append(t, job, EVENT_COMMIT_ACCEPTED, TAKEN);
	assert_int_equal(step(t, job, NOW - 1)->state, JOB_STORED); /* the peer accepted after this step had begun */
	assert_int_equal(step(t, job, NOW + 40)->state, JOB_STORED);
	assert_true(t->s.next == NOW + 50);
	append(t, job, EVENT_COMMITTED, "{\"destination\":\"pacs\",\"transaction\":\"2.25.1\",\"sop_instances\":[\"1.5\"]}");
	assert_int_equal(step(t, job, NOW + 41)->state, JOB_DELIVERED);
	assert_string_equal(job_send_state_name(&v->sends[0]), "committed");
	assert_string_equal(v->sends[0].status, "0000");
}

TEST(commitment_that_never_comes, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;

	configure(t, COMMITS, "\"pacs\"");
	v = stored_at(t, job);
	append(t, job, EVENT_COMMIT_REQUESTED, ASKED);
	append(t, job, EVENT_COMMIT_ACCEPTED, TAKEN);
	step(t, job, NOW + 50);
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_int_equal(v->sends[0].state, SEND_DUE); /* sent again first */
	assert_true(v->sends[0].next == NOW + 55);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\",\"commit\":true}");
	append(t, job, EVENT_COMMIT_REQUESTED, ASKED);
	append(t, job, EVENT_COMMIT_ACCEPTED, TAKEN);
	step(t, job, NOW + 120);
	assert_int_equal(v->state, JOB_DEAD_LETTER);
	assert_non_null(strstr(v->reason, "not committed after 2 requests"));
	append(t, job, EVENT_COMMITTED, "{\"destination\":\"pacs\",\"transaction\":\"2.25.0\",\"sop_instances\":[\"1.5\"]}");
	assert_int_equal(step(t, job, NOW + 130)->state, JOB_DELIVERED); /* late, and of another transaction */
}

TEST(commitment_switched_off, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);

	configure(t, COMMITS, "\"pacs\"");
	assert_int_equal(stored_at(t, job)->state, JOB_STORED);
	configure(t, BACKUP ", { name = \"pacs\"; aet = \"A\"; host = \"h\"; }", "\"pacs\"");
	assert_int_equal(step(t, job, NOW)->state, JOB_DELIVERED);
	assert_string_equal(job_send_state_name(&jobs_find(&t->s.jobs, job)->sends[0]),
			    "sent"); /* nobody has committed himself */
}

TEST(commitment_process_that_died, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct process p = {.role = PROCESS_COMMIT, .job = job, .destination = "pacs"};
	const struct job_view *v;

	configure(t, COMMITS, "\"pacs\"");
	v = stored_at(t, job);
	append(t, job, EVENT_COMMIT_REQUESTED, ASKED);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW);
	assert_true(v->sends[0].failures == 1 && v->sends[0].next == NOW + 5 && !v->sends[0].transaction[0]);
	assert_int_equal(v->state, JOB_STORED);
}

#define OTHER "{ name = \"other\"; aet = \"O\"; host = \"h\"; }"

/* A destination taken out of the configuration, or misspelt there: the cases wait for it, said once each, and no failure of it.
 */
TEST(destination_not_configured, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1), other = add_job(t, "dbt", 1, 1), seq;
	const struct job_view *v, *w;

	configure(t, PACS ", " BACKUP, "\"pacs\"");
	v = made(t, job, true);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5010,\"down\":true}");
	configure(t, OTHER, "\"other\"");
	step(t, job, NOW);
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_true(v->sends[0].unconfigured && v->sends[0].alarm && v->sends[0].state == SEND_DUE && v->sends[0].failures == 1);
	assert_string_equal(v->sends[0].reason, "destination 'pacs' is not in the configuration");
	assert_int_equal(t->s.n_queues, 0);
	seq = t->s.jobs.last_seq;
	step(t, job, NOW + 1e5);
	assert_int_equal(t->s.jobs.last_seq, seq); /* nothing more is written, however long */
	append(t, job, EVENT_RETRY, "{}");
	step(t, job, NOW + 1e5);
	assert_true(v->sends[0].unconfigured && v->state == JOB_RECONSTRUCTED); /* said to who asked */

	/* Another one, reconstructed meanwhile: its route is of before. */
	configure(t, PACS ", " BACKUP, "\"pacs\"");
	w = made(t, other, true);
	configure(t, OTHER, "\"other\"");
	step(t, other, NOW);
	assert_true(w->sends[0].unconfigured && w->state == JOB_RECONSTRUCTED);

	/* It is back: tried at once, and not given to the fallback for the time that it was not there. */
	configure(t, PACS ", " BACKUP, "\"pacs\"");
	step(t, job, NOW + 2e5);
	assert_false(v->sends[0].replaced);
	assert_int_equal(t->s.n_queues, 1);
	assert_int_equal(t->s.queues[0].job, job);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\"}");
	assert_int_equal(step(t, job, NOW + 2e5)->state, JOB_DELIVERED);
	assert_false(v->sends[0].alarm || v->sends[0].unconfigured);
}

TEST(commitment_of_one_not_configured, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;

	configure(t, COMMITS, "\"pacs\"");
	v = stored_at(t, job);
	append(t, job, EVENT_COMMIT_REQUESTED, ASKED);
	append(t, job, EVENT_COMMIT_ACCEPTED, TAKEN);
	configure(t, OTHER, "\"other\"");
	step(t, job, NOW + 1e5); /* long after the report should have come */
	assert_int_equal(v->state, JOB_STORED);
	assert_true(v->sends[0].unconfigured && v->sends[0].alarm && v->sends[0].state == SEND_STORED);
	configure(t, COMMITS, "\"pacs\"");
	step(t, job, NOW + 1e5);
	assert_int_equal(t->s.queues[0].job, job); /* asked anew */
	assert_true(t->s.queues[0].role == PROCESS_COMMIT && v->sends[0].commit_tries == 0);
	append(t, job, EVENT_COMMITTED, "{\"destination\":\"pacs\",\"transaction\":\"2.25.1\",\"sop_instances\":[\"1.5\"]}");
	assert_int_equal(step(t, job, NOW + 1e5)->state, JOB_DELIVERED); /* the old report, late */
}

/* Who would be served: the line's choice, made without starting anything. */
static int64_t first_in_line(struct stage *t, const char *destination)
{
	step(t, 1, NOW);
	for (size_t i = 0; i < t->s.n_queues; i++)
		if (!strcmp(t->s.queues[i].destination, destination))
			return t->s.queues[i].job;
	return -1;
}

TEST(priority_and_order, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 1, 1), b = add_job(t, "pet", 1, 1), c = add_job(t, "parallel", 1, 1);

	made(t, a, true);
	made(t, b, true);
	made(t, c, true);
	assert_int_equal(first_in_line(t, "pacs"), a);
	append(t, c, EVENT_PRIORITY, "{\"priority\":1}");
	assert_int_equal(first_in_line(t, "pacs"), c);
	append(t, b, EVENT_RETRY, "{}"); /* a person waits for it */
	assert_int_equal(first_in_line(t, "pacs"), b);
	append(t, b, EVENT_SENT, "{\"destination\":\"pacs\"}");
	append(t, c, EVENT_PRIORITY, "{\"priority\":-1}");
	assert_int_equal(first_in_line(t, "pacs"), a);
}

/* One attempt at a destination that is down, not one for each case; a person's retry does not wait. */
TEST(down_holds_the_line, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 1, 1), b = add_job(t, "pet", 1, 1);

	made(t, a, true);
	made(t, b, true);
	append(t, a, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030,\"down\":true}");
	assert_int_equal(first_in_line(t, "pacs"), b);
	assert_true(t->s.queues[0].blocked_until == 5030 && !t->s.queues[0].immediate);
	append(t, b, EVENT_RETRY, "{}");
	assert_int_equal(first_in_line(t, "pacs"), b);
	assert_true(t->s.queues[0].immediate);
	append(t, a, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030}"); /* it got there this time */
	first_in_line(t, "pacs");
	assert_true(t->s.queues[0].blocked_until == 0);
}

/* A delivery process that the scheduler has started. */
static void runs(struct stage *t, int64_t job)
{
	struct process *p = &t->s.processes.list[t->s.processes.n++];

	*p = (struct process){.role = PROCESS_DELIVER, .job = job, .destination = "pacs", .ipc_fd = -1};
}

#define SEVERAL "{ name = \"pacs\"; aet = \"A\"; host = \"h\"; associations = 3; }"

/* Several cases at a time to a destination that responds; one at a time until it has, and while it does not. */
TEST(several_associations, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job[6];

	configure(t, SEVERAL, "\"pacs\"");
	for (int i = 0; i < 6; i++)
		job[i] = add_job(t, "dbt", 1, 1);
	for (int i = 0; i < 6; i++)
		made(t, job[i], true);
	assert_int_equal(first_in_line(t, "pacs"), job[0]);
	runs(t, job[0]);
	assert_int_equal(first_in_line(t, "pacs"), 0); /* it is not known yet whether the destination responds */
	append(t, job[5], EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}");
	assert_int_equal(first_in_line(t, "pacs"), job[1]);
	runs(t, job[1]);
	assert_int_equal(first_in_line(t, "pacs"), job[2]);
	runs(t, job[2]);
	assert_int_equal(first_in_line(t, "pacs"), 0); /* three */
	t->s.processes.n = 2;
	step(t, 1, NOW + 61);
	assert_int_equal(t->s.queues[0].job, 0); /* its last response was too long ago */
	assert_int_equal(first_in_line(t, "pacs"), job[2]);
	append(t, job[1], EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030,\"down\":true}");
	t->s.processes.n = 1;
	assert_int_equal(first_in_line(t, "pacs"), 0); /* the other one is still sending */
	t->s.processes.n = 0;
	assert_int_equal(first_in_line(t, "pacs"), job[0]);
}

/* One association more than the peer allows: the others continue, without waiting for that one's next attempt. */
TEST(later_response_ends_the_waiting, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 1, 1), b = add_job(t, "dbt", 1, 1), c = add_job(t, "dbt", 1, 1);

	configure(t, SEVERAL, "\"pacs\"");
	made(t, a, true);
	made(t, b, true);
	made(t, c, true);
	append(t, b, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030,\"down\":true}");
	assert_int_equal(first_in_line(t, "pacs"), a);
	assert_true(t->s.queues[0].blocked_until == 5030);
	append(t, a, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}");
	assert_int_equal(
		journal_append(t->s.journal, a, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}", NOW + 1, NULL), 0);
	step(t, c, NOW + 1);
	assert_int_equal(t->s.queues[0].job, c);
	assert_true(t->s.queues[0].blocked_until == 0);
	runs(t, c);
	step(t, c, NOW + 31); /* b is due, but a further association is opened only after it has been sent */
	assert_int_equal(t->s.queues[0].job, 0);
}

TEST(revision_waits_for_its_predecessor, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 1, 1), late, b = 0;
	char detail[200];

	late = add_instance(t, "1.99");
	snprintf(detail, sizeof(detail),
		 "{\"key\":\"dbt\",\"kind\":\"dbt\",\"calling\":\"M\",\"revision\":2,\"revision_of\":%lld,\"priority\":1}",
		 (long long)a);
	assert_int_equal(journal_open_revision(t->s.journal, a, late, "{\"received\":5000,\"expected\":2,\"frames\":1}", detail,
					       NOW, &b, NULL),
			 0);
	append(t, b, EVENT_COMPLETE, "{\"protocol\":\"dbt-osem\",\"destinations\":[\"pacs\"]}");
	made(t, b, true);
	assert_int_equal(first_in_line(t, "pacs"), 0); /* the first is not reconstructed yet */
	made(t, a, true);
	assert_int_equal(first_in_line(t, "pacs"), a); /* although the revision has the higher priority */
	append(t, a, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030}");
	assert_int_equal(first_in_line(t, "pacs"), 0);
	append(t, a, EVENT_SENT, "{\"destination\":\"pacs\"}");
	assert_int_equal(first_in_line(t, "pacs"), b);
}

/* What a crash between `cleaned` and the removal left, and what a cancelled job has, is gone after the first look. */
TEST(outboxes_that_were_left, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 1, 1);
	char path[128];

	made(t, a, true);
	append(t, a, EVENT_SENT, "{\"destination\":\"pacs\"}");
	append(t, a, EVENT_DELIVERED, "{}");
	append(t, a, EVENT_CLEANED, "{}");
	snprintf(path, sizeof(path), "%s/outbox/1", t->dir);
	assert_int_equal(access(path, F_OK), 0);
	t->s.stopping = false;
	t->s.slots.n = 0;
	step(t, a, NOW);
	t->s.stopping = true;
	assert_int_equal(access(path, F_OK), -1);
}

static int keep_row(void *ctx, const struct instance_row *row, const char *detail)
{
	(void)detail;
	*(struct instance_row *)ctx = *row;
	return 0;
}

/* Settled cases beside an open one of their study stay in the memory of the page, however many: no update reads them again. */
TEST(shown_cases_are_read_once, .setup = setup, .teardown = teardown)
{
	static const char cases[] =
		"WITH RECURSIVE i(n) AS (SELECT 2 UNION ALL SELECT n+1 FROM i WHERE n<1200), e(name, detail) AS"
		" (VALUES('opened', '{\"key\":\"9|a\",\"study\":\"9\"}'), ('cancel', '{}'), ('cleaned', '{}'))"
		"INSERT INTO event(time, job, name, detail) SELECT 1, n, name, detail FROM i, e";
	struct stage *t = *state;
	struct status page;
	sqlite3 *db;
	int64_t job;

	assert_done(journal_open_job(t->s.journal, "{\"key\":\"9|a\",\"study\":\"9\"}", NOW, &job, NULL), NULL);
	assert_int_equal(sqlite3_open(t->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, cases, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	t->s.stopping = false; /* record what is settled */
	step(t, job, NOW);
	t->s.stopping = true;
	status_begin(&page, t->s.config);
	for (int i = 0; i < 3; i++)
		status_update(&page, NOW + i);
	assert_int_equal(page.settled.cleaned, 1199);
	assert_int_equal(page.jobs.n, 1200);
	assert_int_equal(page.jobs.forgotten, 1);
	status_end(&page);
}

TEST(old_cases_are_forgotten, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t a = add_job(t, "dbt", 2, 2), b = add_job(t, "pet", 1, 1), ids[1];
	struct config config = *t->s.config;
	struct instance_row member = {0};
	struct status page;
	char path[128];

	config.node.journal_retention_days = 1;
	assert_int_equal(journal_each_member(t->s.journal, a, keep_row, &member, NULL), 0);
	status_begin(&page, &config);
	for (int i = 0; i < 2; i++) {
		made(t, i ? b : a, true);
		append(t, i ? b : a, EVENT_SENT, "{\"destination\":\"pacs\"}");
		append(t, i ? b : a, EVENT_DELIVERED, "{}");
	}
	for (int64_t id = 1; id <= 2; id++)
		assert_int_equal(journal_remove_instance(t->s.journal, id, NOW, NULL), 0);
	append(t, a, EVENT_CLEANED, "{}");
	step(t, a, NOW);
	assert_false(journal_retention_may_delete(&t->s.jobs, jobs_find(&t->s.jobs, a), 1, NOW + 86000));
	assert_true(journal_retention_may_delete(&t->s.jobs, jobs_find(&t->s.jobs, a), 1, NOW + 86401));
	assert_false(journal_retention_may_delete(&t->s.jobs, jobs_find(&t->s.jobs, b), 1, NOW + 86401));
	assert_false(journal_retention_may_delete(&t->s.jobs, jobs_find(&t->s.jobs, a), 0, NOW + 1e9)); /* 0: never */
	assert_int_equal(journal_retention_compact(t->s.journal, &t->s.jobs, t->dir, 1, NOW + 86401),
			 0);		   /* its result lies there still */
	status_update(&page, NOW + 86401); /* the status page knows what the journal knows */
	assert_int_equal(page.by_state[JOB_CLEANED], 1);
	snprintf(path, sizeof(path), "%s/outbox/1", t->dir);
	assert_int_equal(folder_remove(path, NULL), 0);
	assert_int_equal(journal_has_removed_file(t->s.journal, member.file, NULL), 1);
	assert_int_equal(journal_retention_compact(t->s.journal, &t->s.jobs, t->dir, 1, NOW + 86401), 1);
	status_update(&page, NOW + 86402);
	assert_int_equal(page.by_state[JOB_CLEANED], 0);
	assert_int_equal(page.by_state[JOB_DELIVERED], 1);
	status_end(&page);
	assert_null(jobs_find(&t->s.jobs, a));
	assert_non_null(jobs_find(&t->s.jobs, b));
	ids[0] = b;
	assert_int_equal(journal_delete_case(t->s.journal, ids, 1, NULL), -ESTALE); /* delivered, not cleaned */

	/* A new replay sees the same: all of one, nothing of the other; and what comes now gets numbers of its own. */
	jobs_clear(&t->s.jobs);
	assert_int_equal(step(t, b, NOW)->state, JOB_DELIVERED);
	assert_int_equal(t->s.jobs.n, 1);
	assert_int_equal(journal_has_removed_file(t->s.journal, member.file, NULL), 0);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, &(struct instance_row){0}, 1, NULL), 0);
	assert_true(add_job(t, "dbt", 1, 1) > b);
}
