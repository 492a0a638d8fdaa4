/* SPDX-License-Identifier: Apache-2.0 */
/* What the node decides about cases and processes. */
#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include <dirent.h>
#include <jansson.h>

#include "node/base/exit_code.h"
#include "node/serve/retention.h"
#include "node/store/index_mark.h"

TEST(no_route_is_held, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	const struct job_view *v = step(t, add_job(t, "ct", 1, 1), NOW);

	assert_int_equal(v->state, JOB_HELD);
	assert_non_null(strstr(v->reason, "no route"));
	assert_non_null(strstr(v->reason, "'ct' from 'MOD'"));
}

struct events {
	json_t *complete; /* detail of the last `complete` event */
};

static int keep_complete(void *ctx, const struct event_row *row)
{
	struct events *e = ctx;

	if (row->known && row->event == EVENT_COMPLETE) {
		json_decref(e->complete);
		e->complete = json_loads(row->detail, 0, NULL);
	}
	return 0;
}

/* Replace the routes of the configuration. */
static void use_routes(struct stage *t, const char *routes)
{
	char text[1200];

	snprintf(text, sizeof(text),
		 "destinations = ( { name = \"pacs\"; }, { name = \"ws\"; aet = \"W\"; host = \"h\"; } );\nroutes = ( %s );",
		 routes);
	configure_as(t, "", text);
}

/* The results of a case are chosen by what its `opened` event stores; the first is the job's own, the others are listed. */
TEST(several_results, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct events e = {0};
	const struct job_view *v;
	int64_t job;
	char *text;

	use_routes(t, "{ name = \"left\"; view = \"L*\"; protocols = [ \"dbt-osem\", \"dbt-fbp\" ]; destinations = [ \"pacs\" ]; "
		      "continue = true; }, { name = \"all\"; protocols = [ \"dbt-mlem\", \"dbt-fbp\" ]; destinations = [ \"ws\" "
		      "]; }");
	assert_int_equal(journal_open_job(t->s.journal,
					  "{\"key\":\"a\",\"kind\":\"dbt\",\"calling\":\"MOD\",\"routing\":{\"view\":\"LMLO\"}}",
					  NOW, &job, NULL),
			 0);
	add_member(t, job, 1);
	v = step(t, job, NOW);
	assert_int_equal(v->state, JOB_READY);
	assert_string_equal(v->protocol, "dbt-osem");
	assert_int_equal(v->n_sends, 1);
	assert_int_equal(journal_replay(t->s.journal, job, 0, keep_complete, &e, NULL), 0);
	text = json_dumps(json_object_get(e.complete, "further"), JSON_COMPACT);
	assert_string_equal(text, "[{\"route\":\"left\",\"protocol\":\"dbt-fbp\",\"destinations\":[\"pacs\",\"ws\"]},"
				  "{\"route\":\"all\",\"protocol\":\"dbt-mlem\",\"destinations\":[\"ws\"]}]");
	free(text);
	/* A job that stored nothing: an earlier version of the program wrote its event. */
	job = add_job(t, "dbt", 1, 1);
	assert_string_equal(step(t, job, NOW)->protocol, "dbt-mlem");
	use_routes(t, "{ name = \"left\"; view = \"L*\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; }");
	job = add_job(t, "dbt", 1, 1);
	v = step(t, job, NOW);
	assert_int_equal(v->state, JOB_HELD);
	assert_non_null(strstr(v->reason, "route 'left' is for another view"));
	json_decref(e.complete);
}

TEST(no_further_result, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct events e = {0};
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = step(t, job, NOW);

	assert_int_equal(v->state, JOB_READY);
	assert_string_equal(v->sends[0].destination, "pacs");
	assert_int_equal(journal_replay(t->s.journal, job, 0, keep_complete, &e, NULL), 0);
	assert_string_equal(json_string_value(json_object_get(e.complete, "route")), "dbt");
	assert_null(json_object_get(e.complete, "further"));
	json_decref(e.complete);
}

TEST(incomplete_waits_then_holds, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 2, 3);

	assert_int_equal(step(t, job, NOW + 59)->state, JOB_COLLECTING);
	assert_true(t->s.next == NOW + 60);
	assert_int_equal(step(t, job, NOW + 60)->state, JOB_HELD);
	assert_non_null(strstr(jobs_find(&t->s.jobs, job)->reason, "2 of 3"));
	/* Held once, not at every look. */
	step(t, job, NOW + 70);
	step(t, job, NOW + 80);
	assert_int_equal(t->s.jobs.last_seq, 4);
}

/* Quiet is not quiet while a large object is still coming in, or while one waits to be looked at. What the files' own times are,
 * and where the wall clock jumps, does not matter: here they are years old. */
/* Incomplete cases of one series that differ in the frame of reference only: the reason says so, of each of them. */
TEST(frames_of_reference_of_one_series, .setup = setup, .teardown = teardown)
{
	static const struct {
		const char *key;
		int n;
		const char *reason;
	} cases[] = {
		{"1.1|1.2|L|CC|1.3.1", 1,
		 "7 files of one series have 3 frames of reference (0020,0052), each of which is a case: 1 of 25 instances"},
		{"1.1|1.2|L|CC|1.3.2", 4, "each of which is a case: 4 of 25 instances"},
		{"1.1|1.2|L|CC|", 2, "each of which is a case: 2 of 25 instances"},
		{"1.1|1.2|R|CC|1.3.1", 3, "3 of 25 instances"},
		{"1.1|1.9|L|CC|1.3.1", 3, "3 of 25 instances"},
		{"1.1|1.2|L|CC|1.3.4", 25, ""},
	};
	enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };
	struct stage *t = *state;
	int64_t job[N_CASES];

	for (int i = 0; i < N_CASES; i++) {
		char detail[200];

		snprintf(detail, sizeof(detail), "{\"key\":\"%s\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", cases[i].key);
		assert_int_equal(journal_open_job(t->s.journal, detail, NOW, &job[i], NULL), 0);
		for (int k = 0; k < cases[i].n; k++)
			add_member(t, job[i], 25);
	}
	step(t, job[0], NOW + 61);
	for (int i = 0; i < N_CASES; i++) {
		const struct job_view *v = jobs_find(&t->s.jobs, job[i]);

		if (strncmp(v->reason, cases[i].reason, strlen(cases[i].reason)) && !strstr(v->reason, cases[i].reason))
			fail_msg("%s: '%s' instead of '%s'", cases[i].key, v->reason, cases[i].reason);
		assert_int_equal(strstr(v->reason, "frames of reference") != NULL, i < 3);
	}
}

TEST(not_held_while_arriving, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 2, 3), waiting;
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/incoming/1.part", t->dir);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	t->s.clock = 1000;
	assert_int_equal(step(t, job, NOW + 300)->state, JOB_COLLECTING);
	assert_true(t->s.next > NOW + 300 && t->s.next < NOW + 310);
	t->s.clock = 1059;
	assert_int_equal(step(t, job, NOW + 86400)->state, JOB_COLLECTING);
	assert_int_equal(write(fd, "more", 4), 4); /* it grows: quiet time begins anew */
	t->s.clock = 1070;
	assert_int_equal(step(t, job, NOW + 300)->state, JOB_COLLECTING);
	t->s.clock = 1129;
	assert_int_equal(step(t, job, NOW + 300)->state, JOB_COLLECTING);
	close(fd);
	waiting = add_instance(t, "1.77");
	t->s.clock = 1131;
	assert_int_equal(step(t, job, NOW + 400)->state,
			 JOB_COLLECTING); /* the file does not grow; the instance is not indexed */
	assert_int_equal(journal_classify(t->s.journal, waiting, CLASSIFIED_IGNORED, 0, "{}", NOW, NULL), 0);
	assert_int_equal(step(t, job, NOW + 400)->state, JOB_HELD);
}

/* The last instance is indexed while the scheduler looks whether something is still arriving: the case is complete, not held. */
static struct stage *indexed_meanwhile;

DIR *opendir(const char *path)
{
	struct stage *t = indexed_meanwhile;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	indexed_meanwhile = NULL;
	if (t)
		add_member(t, jobs_find(&t->s.jobs, 1)->id, 3);
	return fd < 0 ? NULL : fdopendir(fd);
}

TEST(not_held_when_the_last_one_is_indexed_meanwhile, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 2, 3);

	indexed_meanwhile = t;
	assert_int_equal(step(t, job, NOW + 60)->state, JOB_COLLECTING);
	assert_null(indexed_meanwhile);
	assert_true(t->s.next < NOW + 61);
	assert_int_equal(step(t, job, NOW + 60)->state, JOB_READY);
}

TEST(running_without_a_worker_starts_again, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);

	step(t, job, NOW);
	append(t, job, EVENT_STARTED, "{}");
	assert_int_equal(step(t, job, NOW)->state, JOB_READY);
	assert_int_equal(jobs_find(&t->s.jobs, job)->crashes, 0);
}

static void worker_end(struct stage *t, int64_t job, int status, double kill_at, double now)
{
	struct process p = {.role = PROCESS_WORKER, .job = job, .kill_at = kill_at, .ipc_fd = -1};

	append(t, job, EVENT_STARTED, "{}");
	schedule_process_ended(&t->s, &p, status, now);
}

TEST(crashes_back_off_and_end, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = step(t, job, NOW);

	worker_end(t, job, SIGNAL_STATUS(SIGSEGV), 0, NOW);
	assert_int_equal(v->state, JOB_READY);
	assert_non_null(strstr(v->reason, "signal 11"));
	assert_true(v->not_before == NOW + 1);
	assert_int_equal(step(t, job, NOW)->state, JOB_READY);
	worker_end(t, job, EXIT_STATUS(3), 0, NOW + 2); /* the second of two attempts */
	assert_int_equal(step(t, job, NOW + 2)->state, JOB_FAILED);
	assert_non_null(strstr(v->reason, "2 attempts"));
	assert_non_null(strstr(v->reason, "exit code 3"));
	append(t, job, EVENT_RETRY, "{}");
	assert_int_equal(step(t, job, NOW + 3)->state, JOB_READY);
	assert_int_equal(v->crashes, 0);
}

TEST(told_to_stop_is_no_crash, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = step(t, job, NOW);

	worker_end(t, job, EXIT_STATUS(CODE_CANCELLED), 0, NOW);
	assert_true(v->state == JOB_READY && v->crashes == 0);
	worker_end(t, job, SIGNAL_STATUS(SIGKILL), NOW + 5, NOW);
	assert_true(v->state == JOB_READY && v->crashes == 0);
	append(t, job, EVENT_STARTED, "{}");
	schedule_interrupt(&t->s, NOW);
	assert_true(v->state == JOB_READY && v->crashes == 0);
}

TEST(every_destination_done, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = made(t, job, true);

	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5030}");
	assert_int_equal(step(t, job, NOW)->state, JOB_RECONSTRUCTED);
	assert_true(t->s.next == 5030);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\"}");
	assert_int_equal(step(t, job, NOW)->state, JOB_DELIVERED);
	assert_true(v->finished == NOW);
}

/* A time that was written while the clock was days ahead. */
TEST(clock_set_back_delays_nothing, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);

	made(t, job, true);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":1005000}");
	t->s.stopping = false; /* so that it would start: the slot of the destination is taken, and nothing is waited for */
	t->s.processes.list[0] = (struct process){.role = PROCESS_DELIVER, .job = job, .destination = "pacs", .ipc_fd = -1};
	t->s.processes.n = 1;
	step(t, job, NOW);
	assert_true(t->s.next == NOW + 3600);
	append(t, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":5060}");
	step(t, job, NOW);
	assert_true(t->s.next == 5060);
	t->s.processes.n = 0;
	t->s.stopping = true;
}

TEST(refused_ends_as_dead_letter, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = made(t, job, true);

	append(t, job, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"status\":\"0122\"}");
	assert_int_equal(step(t, job, NOW)->state, JOB_DEAD_LETTER);
	assert_string_equal(v->reason, "refused by pacs");
}

TEST(delivery_that_died, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = made(t, job, true);
	struct process p = {.role = PROCESS_DELIVER, .job = job, .destination = "pacs"};

	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGABRT), NOW);
	assert_int_equal(v->sends[0].failures, 1);
	assert_true(v->sends[0].next == NOW + 5); /* the default's retry_first */
	assert_non_null(strstr(v->sends[0].reason, "signal 6"));
	schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_FAILED), NOW);
	assert_true(v->sends[0].next == NOW + 10);
	schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_OK), NOW); /* it has written down itself */
	assert_int_equal(v->sends[0].failures, 2);
}

TEST(lost_result_is_made_again, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);

	assert_int_equal(made(t, job, false)->state, JOB_READY);
}

/* The first instance of a journal is read, whether or not another one comes. */
TEST(index_of_one_instance, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;

	t->s.stopping = false;
	t->s.index_not_before = t->s.clock + 77; /* so that the wait for it is seen, and no process is started */
	schedule_step(&t->s, NOW);
	assert_true(t->s.next > NOW + 77);
	assert_int_equal(add_instance(t, "1.1"), 1);
	schedule_step(&t->s, NOW);
	assert_true(t->s.next == NOW + 77);
	t->s.stopping = true;
}

/* A header that kills the indexer is set apart at the second death; others are not touched. */
TEST(index_deaths, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct process p = {.role = PROCESS_INDEX};
	int64_t first = add_instance(t, "1.1"), second = add_instance(t, "1.2");
	struct instance_row row;

	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, &row, 1, NULL), 1);
	assert_int_equal(row.id, first);
	assert_true(t->s.index_not_before > t->s.clock);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW + 2);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, &row, 1, NULL), 1);
	assert_int_equal(row.id, second);
	/* A failing journal is nobody's fault: nothing is set apart, however often. */
	for (int i = 0; i < 50; i++)
		schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_FAILED), NOW + 3);
	/* Nor is being told to stop. */
	p.kill_at = NOW;
	for (int i = 0; i < 5; i++)
		schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGTERM), NOW + 3);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, &row, 1, NULL), 1);
	p.kill_at = 0;
	for (int i = 0; i < 10; i++)
		schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_INPUT), NOW + 4);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, &row, 1, NULL), 0);
}

/* Failures are counted for each instance: those at two instances in turns are not added up. */
TEST(index_tries_of_each_instance, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct process p = {.role = PROCESS_INDEX};
	int64_t instances[] = {add_instance(t, "1.1"), add_instance(t, "1.2")};
	struct instance_row rows[3];
	int fd = index_mark_open(t->dir, NULL);

	assert_true(fd >= 0);
	for (int i = 0; i < 12; i++) {
		index_mark_write(fd, &(struct index_mark){.instance = instances[i % 2]});
		schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_INPUT), NOW + i);
	}
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, rows, 3, NULL), 2);
	close(fd);
}

/* The instance that the indexer has marked becomes unassigned, not the oldest one; at once if it took too much processor time,
 * and the indexer starts again without a pause. */
TEST(index_takes_too_long, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct process p = {.role = PROCESS_INDEX};
	int64_t first = add_instance(t, "1.1"), second = add_instance(t, "1.2"), third = add_instance(t, "1.3");
	struct index_mark mark = {.instance = second};
	struct instance_row rows[3];
	int fd = index_mark_open(t->dir, NULL);

	assert_true(fd >= 0);
	index_mark_write(fd, &mark);
	close(fd);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGPROF), NOW);
	assert_true(t->s.index_not_before <= t->s.clock);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, rows, 3, NULL), 2);
	assert_int_equal(rows[0].id, first);
	assert_int_equal(rows[1].id, third);
	/* The mark names an instance that no longer waits: the oldest one counts. */
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW + 2);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW + 4);
	assert_int_equal(journal_list_unindexed(t->s.journal, 0, rows, 3, NULL), 1);
	assert_int_equal(rows[0].id, third);
}

/* Without a journal nothing is decided and nothing breaks; when it is back, what is due is done. */
TEST(no_journal_decides_nothing, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct process p = {.role = PROCESS_WORKER, .job = job, .ipc_fd = -1};

	t->s.journal = journal_close(t->s.journal);
	schedule_step(&t->s, NOW);
	assert_true(t->s.next > NOW);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGSEGV), NOW);
	schedule_interrupt(&t->s, NOW);
	assert_int_equal(t->s.jobs.n, 0);
	assert_int_equal(journal_open(t->path, &t->s.journal, NULL), 0);
	assert_int_equal(step(t, job, NOW)->state, JOB_READY);
}

/* The wall clock goes back an hour after the last instance: the alarm comes after quiet time, not an hour late. */
TEST(clock_set_back_delays_no_alarm, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 2, 3);
	const double back = NOW - 3600;

	assert_int_equal(step(t, job, back)->state, JOB_COLLECTING);
	assert_true(t->s.next <= back + 60);
	assert_int_equal(step(t, job, back + 59)->state, JOB_COLLECTING);
	assert_int_equal(step(t, job, back + 60)->state, JOB_HELD);
}

/* SIGKILL comes when its grace is over, also when the wall clock goes back in between; so do the other deadlines. */
TEST(clock_set_back_delays_no_deadline, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct process p = {.role = PROCESS_INDEX};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		signal(SIGTERM, SIG_IGN);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	step(t, job, NOW);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_CANCEL, "{}");
	t->s.processes.list[0] = (struct process){.pid = pid, .role = PROCESS_WORKER, .job = job, .ipc_fd = -1};
	t->s.processes.n = 1;
	t->s.clock = 100;
	step(t, job, NOW);
	assert_true(t->s.processes.list[0].kill_at == 105);
	step(t, job, NOW - 3600);
	assert_true(process_table_tick(&t->s.processes, 104) == 105);
	process_table_tick(&t->s.processes, 105);
	kill(pid, SIGKILL); /* the child may not have come to ignoring SIGTERM: how it ends is not what is tested */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	t->s.processes.n = 0;
	/* An indexer that ended badly is started again a second later on the same clock. */
	add_instance(t, "1.9");
	schedule_process_ended(&t->s, &p, EXIT_STATUS(CODE_FAILED), NOW);
	assert_true(t->s.index_not_before == 101);
	t->s.stopping = false;
	step(t, job, NOW - 7200);
	assert_true(t->s.next == NOW - 7200 + 1);
	t->s.stopping = true;
}

static bool is_busy(void *ctx, int64_t job)
{
	return job == *(int64_t *)ctx;
}

static bool has_outbox(struct stage *t, const char *name)
{
	return access(test_path(test_path(t->dir, "outbox"), name), F_OK) == 0;
}

static void add_outbox(struct stage *t, const char *name)
{
	const char *path = test_path(test_path(t->dir, "outbox"), name);

	assert_int_equal(mkdir(path, 0700), 0);
	test_put_file(test_path(path, "x.dcm"), "", 0);
}

TEST(outbox_of_what_is_given_up, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t made_job = add_job(t, "dbt", 1, 1), cancelled, busy;
	char name[4][24] = {"", "", "", "x1"};

	made(t, made_job, true);
	cancelled = add_job(t, "pet", 1, 2);
	busy = add_job(t, "ct", 1, 2);
	append(t, cancelled, EVENT_CANCEL, "{}");
	append(t, busy, EVENT_CANCEL, "{}");
	assert_int_equal(jobs_refresh(&t->s.jobs, t->s.journal, 0, NULL), 0);
	snprintf(name[0], sizeof(name[0]), "%lld", (long long)cancelled);
	snprintf(name[1], sizeof(name[1]), "%lld", (long long)busy);
	snprintf(name[2], sizeof(name[2]), "4711"); /* of no job that is known */
	for (size_t i = 0; i < 4; i++)
		add_outbox(t, name[i]);
	retention_clean_outbox(&t->s.jobs, t->dir, is_busy, &busy);
	assert_true(has_outbox(t, "1") && !has_outbox(t, name[0]));
	assert_true(has_outbox(t, name[1]) && has_outbox(t, name[2]) && has_outbox(t, name[3]));
	busy = 0;
	retention_clean_outbox(&t->s.jobs, t->dir, is_busy, &busy);
	assert_true(has_outbox(t, "1") && !has_outbox(t, name[1]));
}

/* Between two looks through the folder: of a job that has changed, or whose process has ended. */
TEST(outbox_of_what_has_changed, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 2), busy;
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)job);
	append(t, job, EVENT_CANCEL, "{}");
	assert_int_equal(jobs_refresh(&t->s.jobs, t->s.journal, 0, NULL), 0);
	add_outbox(t, name);
	busy = job;
	retention_clean_changed_outboxes(&t->s.jobs, t->dir, is_busy, &busy);
	assert_true(has_outbox(t, name));
	busy = 0;
	retention_clean_changed_outboxes(&t->s.jobs, t->dir, is_busy, &busy);
	assert_false(has_outbox(t, name));
	add_outbox(t, name); /* nothing has changed: the next look through the folder finds it */
	retention_clean_changed_outboxes(&t->s.jobs, t->dir, is_busy, &busy);
	assert_true(has_outbox(t, name));
	jobs_find(&t->s.jobs, job)->outbox_seq = 0;
	retention_clean_changed_outboxes(&t->s.jobs, t->dir, is_busy, &busy);
	assert_false(has_outbox(t, name));
}

static void add_conflict(struct stage *t, int64_t instance)
{
	assert_int_equal(
		journal_classify(t->s.journal, instance, CLASSIFIED_CONFLICT, 0, "{\"key\":\"dbt\",\"repairs\":true}", NOW, NULL),
		0);
}

/* A newer object of a held case continues it, also where the indexer classified the later one of another sender first. */
TEST(newer_object_of_a_held_case, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1), newer, other;

	step(t, job, NOW);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_HELD, "{}");
	step(t, job, NOW);
	newer = add_instance(t, t->uid);
	other = add_instance(t, "1.2.3");
	add_conflict(t, other);
	step(t, job, NOW);
	assert_int_equal(step(t, job, NOW)->state, JOB_HELD);
	add_conflict(t, newer);
	assert_int_equal(step(t, job, NOW)->state, JOB_CANCELLED);
	assert_int_equal(t->s.jobs.n, 2);
}
