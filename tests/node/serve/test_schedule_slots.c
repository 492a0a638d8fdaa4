/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs the slots get, with made-up workers: the other ends of their sockets are held by the test. */
#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include "node/base/exit_code.h"

static void close_pair(int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

TEST(jobs_go_to_their_slots, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), second = add_job(t, "dbt", 2, 2), third = add_job(t, "dbt", 3, 3);
	int a[2], b[2];

	slots_configure(&t->s.slots, "cuda:0, cuda:1", t->s.clock);
	add_worker(t, 0, a);
	add_worker(t, 1, b);
	t->s.stopping = false;
	assert_int_equal(step(t, third, NOW)->state, JOB_READY);
	assert_int_equal(given(a[1], NULL), first);
	assert_int_equal(given(b[1], NULL), second);
	assert_true(given(a[1], NULL) == 0 && given(b[1], NULL) == 0);
	assert_string_equal(jobs_find(&t->s.jobs, first)->device, "device 0");
	assert_string_equal(jobs_find(&t->s.jobs, second)->device, "device 1");
	/* Journal first, then the word. */
	append(t, second, EVENT_HELD, "{\"reason\":\"data\"}");
	assert_true(worker_ipc_send(b[1], WORKER_DONE, second, 0, NULL, true));
	assert_int_equal(step(t, second, NOW)->state, JOB_HELD);
	assert_int_equal(given(b[1], NULL), third);
	assert_int_equal(jobs_find(&t->s.jobs, first)->state, JOB_RUNNING);
	/* A worker that is done without a word in the journal: the job starts again. */
	assert_true(worker_ipc_send(a[1], WORKER_DONE, first, 0, NULL, true));
	step(t, first, NOW);
	step(t, first, NOW);
	assert_int_equal(given(a[1], NULL), first);
	assert_int_equal(jobs_find(&t->s.jobs, first)->crashes, 0);
	/* One that hangs up without ending is not listened to any more. */
	close(b[1]);
	schedule_read_workers(&t->s, NOW);
	assert_int_equal(t->s.processes.list[1].ipc_fd, -1);
	t->s.stopping = true;
	close_pair(a);
}

/* The case that somebody waits for goes first, though another was ready before it. */
TEST(priority_goes_first, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), second = add_job(t, "dbt", 2, 2);
	int a[2];

	slots_configure(&t->s.slots, "cuda:0", t->s.clock);
	append(t, second, EVENT_PRIORITY, "{\"priority\":1}");
	assert_int_equal(step(t, first, NOW)->state, JOB_READY);
	assert_int_equal(step(t, second, NOW)->state, JOB_READY);
	add_worker(t, 0, a);
	t->s.stopping = false;
	step(t, first, NOW);
	assert_int_equal(given(a[1], NULL), second);
	t->s.stopping = true;
	close_pair(a);
}

/* A worker that reports the end of a job that it no longer has does not free its slot, nor end the job that it runs. */
TEST(done_with_another_job, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), second = add_job(t, "dbt", 2, 2);
	int a[2];

	slots_configure(&t->s.slots, "cuda:0", t->s.clock);
	add_worker(t, 0, a);
	t->s.stopping = false;
	step(t, first, NOW);
	assert_int_equal(given(a[1], NULL), first);
	assert_true(worker_ipc_send(a[1], WORKER_DONE, second, 0, NULL, true));
	assert_int_equal(step(t, second, NOW)->state, JOB_READY);
	assert_int_equal(given(a[1], NULL), 0);
	assert_int_equal(jobs_find(&t->s.jobs, first)->state, JOB_RUNNING);
	assert_int_equal(t->s.slots.list[0].state, SLOT_BUSY);
	assert_int_equal(t->s.processes.list[0].job, first);
	t->s.stopping = true;
	close_pair(a);
}

/* The device's fault: not the case's. Another slot takes it at once. */
TEST(broken_device_hands_its_job_on, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v;
	const struct slot *slot;
	int a[2], b[2];

	slots_configure(&t->s.slots, "cuda:0, cuda:1", t->s.clock);
	add_worker(t, 0, a);
	add_worker(t, 1, b);
	t->s.stopping = false;
	v = step(t, job, NOW);
	assert_int_equal(given(a[1], NULL), job);
	assert_true(worker_ipc_send(a[1], WORKER_BROKEN, job, 0, "device 0: an illegal address", true));
	assert_int_equal(step(t, job, NOW)->state, JOB_RUNNING);
	assert_int_equal(given(b[1], NULL), job);
	assert_string_equal(v->device, "device 1");
	assert_int_equal(v->crashes, 0);
	slot = &t->s.slots.list[0];
	assert_true(slot->disabled && slot->state == SLOT_ENDING);
	assert_string_equal(slot->reason, "device 0: an illegal address");
	/* Said again, as it ends: nothing more happens to the job. */
	assert_true(worker_ipc_send(a[1], WORKER_BROKEN, job, 0, "again", true));
	step(t, job, NOW);
	assert_int_equal(v->state, JOB_RUNNING);
	assert_int_equal(process_table_find(&t->s.processes, PROCESS_WORKER, job, NULL)->slot, t->s.slots.list[1].id);
	t->s.stopping = true;
	close_pair(a);
	close_pair(b);
}

/* What a worker said before it died is heard; what it had not said costs its job an attempt. */
TEST(last_words, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = step(t, job, NOW);
	struct process p = {.role = PROCESS_WORKER, .job = job};
	int a[2];

	slots_configure(&t->s.slots, "cuda:0", t->s.clock);
	p.slot = t->s.slots.list[0].id;
	for (int said = 0; said < 2; said++) {
		assert_int_equal(worker_ipc_pair(a), 0);
		p.ipc_fd = a[0];
		append(t, job, EVENT_STARTED, "{}");
		slots_update(&t->s.slots, p.slot, SLOT_SPAWNED, 0, NULL, 0);
		slots_update(&t->s.slots, p.slot, SLOT_READY, 0, "x", 0);
		slots_update(&t->s.slots, p.slot, SLOT_ASSIGNED, 0, NULL, 0);
		if (said)
			assert_true(worker_ipc_send(a[1], WORKER_BROKEN, job, 0, "an uncorrectable error", true));
		schedule_process_ended(&t->s, &p, said ? EXIT_STATUS(CODE_DEVICE) : SIGNAL_STATUS(SIGKILL), NOW);
		assert_int_equal(v->state, JOB_READY);
		assert_int_equal(v->crashes, 1); /* of the first one */
		assert_int_equal(slots_find(&t->s.slots, p.slot)->state, SLOT_DOWN);
		assert_true(slots_find(&t->s.slots, p.slot)->disabled == said);
		close_pair(a);
	}
	assert_string_equal(v->reason, "an uncorrectable error");
	/* Killed because it hung: that is counted, being told to stop is not. */
	p = (struct process){.role = PROCESS_WORKER, .job = job, .ipc_fd = -1, .kill_at = 1, .hung = true};
	append(t, job, EVENT_STARTED, "{}");
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGKILL), NOW);
	assert_int_equal(v->crashes, 2);
	assert_non_null(strstr(v->reason, "no progress for 1800 s"));
}

/* A job in the hands of a pilot is given back to that pilot only: not to one with the secret of another ID. */
TEST(only_its_pilot_returns, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	struct worker_message said = {.kind = WORKER_READY, .job = job, .number = 1, .text = "cpu"}, reply;
	struct process *p;
	int a[2];

	t->config->cluster.port = 1;
	assert_int_equal(step(t, job, NOW)->state, JOB_READY);
	append(t, job, EVENT_STARTED, "{\"device\":\"cpu, pilot d1\",\"pilot\":\"d1\",\"attempt\":1}");
	said.attempt = step(t, job, NOW)->started_seq;
	assert_int_equal(jobs_find(&t->s.jobs, job)->state, JOB_RUNNING); /* for cluster.lease */
	slots_seats(&t->s.slots, true, t->s.clock);
	add_worker(t, 0, a);
	p = &t->s.processes.list[0];
	assert_int_equal(worker_ipc_receive(p->ipc_fd, &reply, false), 1); /* READY of no pilot */
	p->seat = true;
	for (int i = 2; i > 0; i--) {
		snprintf(said.pilot, sizeof(said.pilot), "d%d", i);
		assert_true(worker_ipc_send_message(a[1], &said, true));
		schedule_read_workers(&t->s, NOW);
		assert_int_equal(worker_ipc_receive(a[1], &reply, false), 1);
		assert_int_equal(reply.kind, i == 2 ? WORKER_FORGET : WORKER_JOB);
		assert_int_equal(reply.job, job);
	}
	assert_int_equal(p->job, job);
	close_pair(a);
}

/* Slurm wants its nodes back: only the seat of that pilot, while it has no case, is told to end, and once. */
TEST(an_idle_pilot_ends, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct worker_message said = {.kind = WORKER_READY, .number = 1, .text = "cpu", .pilot = "d1"}, reply;
	int a[2];

	t->config->cluster.port = 1;
	slots_seats(&t->s.slots, true, t->s.clock);
	add_worker(t, 0, a);
	assert_int_equal(worker_ipc_receive(t->s.processes.list[0].ipc_fd, &reply, false), 1); /* READY of no pilot */
	t->s.processes.list[0].seat = true;
	assert_false(schedule_end_pilot(&t->s, "d1")); /* not there yet */
	assert_true(worker_ipc_send_message(a[1], &said, true));
	schedule_read_workers(&t->s, NOW);
	assert_false(schedule_end_pilot(&t->s, "d2"));
	assert_int_equal(worker_ipc_receive(a[1], &reply, false), 0);
	assert_true(schedule_end_pilot(&t->s, "d1"));
	assert_int_equal(worker_ipc_receive(a[1], &reply, false), 1);
	assert_int_equal(reply.kind, WORKER_END);
	assert_int_equal(t->s.slots.list[0].state, SLOT_ENDING);
	assert_false(schedule_end_pilot(&t->s, "d1"));
	close_pair(a);
}

/* A slot is free again although nothing can be written. */
TEST(slot_without_a_journal, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	struct process p = {.role = PROCESS_WORKER, .job = 1, .ipc_fd = -1};

	slots_configure(&t->s.slots, "cpu", 0);
	p.slot = t->s.slots.list[0].id;
	slots_update(&t->s.slots, p.slot, SLOT_SPAWNED, 0, NULL, 0);
	t->s.journal = journal_close(t->s.journal);
	schedule_process_ended(&t->s, &p, SIGNAL_STATUS(SIGKILL), NOW);
	assert_int_equal(t->s.slots.list[0].state, SLOT_DOWN);
	assert_int_equal(t->s.slots.list[0].deaths, 1);
}

/* Every pilot is ended before it is done, as by a limit of time: not for ever. */
TEST(pilots_that_are_ended_each_time, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1);
	const struct job_view *v = step(t, job, NOW);
	struct worker_message m = {.kind = WORKER_LEFT, .job = job};

	slots_configure(&t->s.slots, "cpu", t->s.clock);
	strcpy(m.text, "the pilot was asked to end");
	for (int i = 0; i < 16 && v->state != JOB_FAILED; i++) {
		struct process *p = &t->s.processes.list[t->s.processes.n++];
		int a[2];

		assert_int_equal(worker_ipc_pair(a), 0);
		*p = (struct process){
			.role = PROCESS_WORKER, .slot = t->s.slots.list[0].id, .ipc_fd = a[0], .seat = true, .job = job};
		append(t, job, EVENT_STARTED, "{\"pilot\":\"gpu-1\",\"device\":\"x\"}");
		jobs_refresh(&t->s.jobs, t->s.journal, 0, NULL);
		assert_true(worker_ipc_send_message(a[1], &m, true));
		v = step(t, job, NOW);
		close_pair(a);
		t->s.processes.n = 0;
	}
	assert_int_equal(v->state, JOB_FAILED);
	assert_true(v->attempts > 2); /* node.attempts: the first ones do not count */
}
