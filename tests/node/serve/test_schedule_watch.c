/* SPDX-License-Identifier: Apache-2.0 */
/* Work processes that do nothing any more are killed, on a clock of the test's; those that do something are not, however long. */
#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include <sys/mman.h>
#include <time.h>

#define DESTINATION "{ name = \"pacs\"; aet = \"A\"; host = \"h\"; connect_timeout = 1; acse_timeout = 1; dimse_timeout = %d; }"

static void configure(struct stage *t, int worker_timeout, int dimse_timeout)
{
	char keys[40], text[800];

	snprintf(keys, sizeof(keys), "worker_timeout = %d;", worker_timeout);
	snprintf(text, sizeof(text),
		 "destinations = ( " DESTINATION
		 " );\nroutes = ( { name = \"r\"; protocols = [ \"dbt-osem\" ]; destinations = [ \"pacs\" ]; } );\n",
		 dimse_timeout);
	configure_as(t, keys, text);
}

/* SIGSTOP stops every thread; during pause(), the background thread of ThreadSanitizer would still use processor time. */
static int stop_for_ever(void *ctx)
{
	(void)ctx;
	for (;;)
		raise(SIGSTOP);
	return 0;
}

/* A slow line: a little work each time that the test asks for it; ctx: how often it asked, how often it was done. */
static int work_now_and_then(void *ctx)
{
	volatile int *count = ctx;

	for (;;) {
		while (count[1] == count[0])
			usleep(1000);
		count[1] = count[0];
	}
	return 0;
}

static int work_for_nothing(void *ctx)
{
	volatile int *count = ctx;

	for (;;)
		count[1]++;
	return 0;
}

static struct process *start(struct stage *t, enum process_role role, int64_t job, int (*run)(void *), void *ctx)
{
	struct process p = {.role = role, .job = job};
	struct err err = {0};

	strcpy(p.destination, role == PROCESS_INDEX ? "" : "pacs");
	t->s.clock = 100;
	assert_int_equal(process_table_fork(&t->s.processes, &p, run, ctx, t->s.clock, &err), 0);
	return &t->s.processes.list[t->s.processes.n - 1];
}

/* The end of a process that is being killed. */
static struct process reap(struct stage *t, int *ret_status)
{
	struct process p = {0};

	while (process_table_reap(&t->s.processes, &p, ret_status) != 1)
		usleep(1000);
	return p;
}

/* Wait until it has stopped, and then until two checks find the same processor time: its threads may still be leaving theirs. */
static void wait_until_stopped(const struct process *p)
{
	double before = -1, cpu;
	siginfo_t info = {0};

	assert_int_equal(waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	while ((cpu = process_cpu_seconds(p)) > before) {
		before = cpu;
		usleep(20000);
	}
	assert_true(cpu > 0);
}

static void at(struct stage *t, double clock)
{
	t->s.clock = clock;
	schedule_step(&t->s, NOW + clock);
}

TEST(silent_delivery_is_killed, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct process *p, gone;
	const struct job_view *v;
	int status;

	configure(t, 600, 500);
	v = made(t, job, true);
	p = start(t, PROCESS_DELIVER, job, stop_for_ever, NULL);
	wait_until_stopped(p);
	at(t, 200);
	assert_true(t->s.next < NOW + 200 + 1004); /* it is looked at again without being asked */
	at(t, 200 + 1003);			   /* longer than 600 s, not than twice 1 + 1 + 500 s */
	assert_false(p->hung);
	at(t, 200 + 1004);
	assert_true(p->hung && p->kill_at > 0);
	gone = reap(t, &status);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	schedule_process_ended(&t->s, &gone, status, NOW + 1204);
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_true(v->sends[0].state == SEND_DUE && v->sends[0].failures == 1 && v->sends[0].next > NOW + 1204);
	assert_string_equal(v->sends[0].reason, "the delivery process made no progress and was killed");
}

/* The states of the jobs cannot be read: nothing is concluded from the end of a process. */
TEST(end_without_a_journal, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct process p = {.role = PROCESS_DELIVER, .job = job, .destination = "pacs"}, indexer = {.role = PROCESS_INDEX};
	struct journal *journal = t->s.journal;
	const struct job_view *v;

	configure(t, 600, 1);
	v = made(t, job, true);
	add_instance(t, "1.7");
	jobs_find(&t->s.jobs, job)->outbox_seq = v->seq;
	t->s.journal = NULL;
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGKILL), NOW + 1);
	schedule_process_ended(&t->s, &indexer, SIGNAL_STATUS(SIGKILL), NOW + 1);
	t->s.journal = journal;
	assert_int_equal(v->outbox_seq, 0);
	assert_true(v->sends[0].state == SEND_DUE && v->sends[0].failures == 0 && t->s.index_tries == 0);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGKILL), NOW + 1);
	schedule_process_ended(&t->s, &indexer, SIGNAL_STATUS(SIGKILL), NOW + 1);
	assert_true(v->sends[0].failures == 1 && t->s.index_tries == 1);
}

TEST(slow_delivery_is_not, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	volatile int *count = mmap(NULL, 2 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct process *p;
	int status;

	assert_true(count != MAP_FAILED);
	configure(t, 600, 1);
	made(t, job, true);
	p = start(t, PROCESS_DELIVER, job, work_now_and_then, (void *)count);
	for (double clock = 200; clock < 10000; clock += 500) {
		count[0]++;
		while (count[1] != count[0])
			usleep(1000);
		at(t, clock);
		assert_false(p->hung);
	}
	process_kill(p, t->s.clock);
	reap(t, &status);
	munmap((void *)count, 2 * sizeof(int));
}

TEST(circling_delivery_is_killed, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	int count[2] = {0}, status;
	struct process *p;

	configure(t, 600, 1);
	made(t, job, true);
	p = start(t, PROCESS_DELIVER, job, work_for_nothing, count);
	at(t, 101);
	p->cpu_at_event = -601; /* as if it had begun so long ago: an event of its job is the beginning anew */
	append(t, job, EVENT_PRIORITY, "{\"priority\":1}");
	p->event = 0;
	at(t, 102);
	assert_false(p->hung);
	p->cpu_at_event = -601;
	at(t, 103);
	assert_true(p->hung);
	reap(t, &status);
}

TEST(silent_indexer_is_killed, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct process *p, gone;
	int status;

	add_instance(t, "1.7");
	configure(t, 600, 1);
	p = start(t, PROCESS_INDEX, 0, stop_for_ever, NULL);
	wait_until_stopped(p);
	at(t, 200);
	assert_false(p->hung);
	at(t, 800);
	assert_true(p->hung);
	gone = reap(t, &status);
	schedule_process_ended(&t->s, &gone, status, NOW + 800);
	assert_int_equal(t->s.index_tries, 1); /* counted: an instance at which it hangs each time is set apart in the end */
	assert_true(t->s.index_not_before > t->s.clock);
}
