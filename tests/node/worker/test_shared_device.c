/* SPDX-License-Identifier: Apache-2.0 */
/* A case waits for memory and for its turn, and can be cancelled while it waits; a processor has no turns. */
#include <signal.h>
#include <sys/wait.h>

#include "node/worker/shared_device.h"
#include "tests/test.h"

#define GB ((size_t)1 << 30)

static int waits; /* calls of progress() while a case waited */

static void progress(void *ctx, const char *stage, double fraction)
{
	(void)ctx;
	(void)fraction;
	waits += !strcmp(stage, "wait");
}

static bool after_a_while(void *ctx)
{
	(void)ctx;
	return waits > 3;
}

/* Another worker of the device: it holds 60 GB and the turn until it is killed. */
static pid_t other_worker(int fd, const char *device)
{
	int pipes[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct shared_device s;
		const struct monitor *m;
		struct device dev = {.memory = 80 * GB};

		if (shared_device_open(&s, fd, device, 100 * GB, NULL) < 0)
			_exit(1);
		shared_device_limit(&s, &dev);
		m = shared_device_begin(&s, NULL, true);
		if (monitor_reserve(m, 60 * GB, GB) < 0 || monitor_take_turn(m, true) < 0 || write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	return pid;
}

TEST(one_waits_for_the_other)
{
	int fd = ledger_create();
	pid_t other = other_worker(fd, "cuda:0");
	const struct monitor inner = {.progress = progress, .cancelled = after_a_while};
	struct device dev = {.memory = 20 * GB};
	struct shared_device s;
	const struct monitor *m;

	assert_int_equal(shared_device_open(&s, fd, "cuda:0", 100 * GB, NULL), 0);
	shared_device_limit(&s, &dev);
	assert_true(dev.memory == 80 * GB);
	m = shared_device_begin(&s, &inner, true);
	assert_int_equal(monitor_reserve(m, 30 * GB, GB), -ECANCELED);
	assert_true(waits > 3);
	waits = 0;
	assert_int_equal(monitor_reserve(m, 20 * GB, GB), 0);
	assert_int_equal(monitor_take_turn(m, true), -ECANCELED);
	shared_device_end(&s, 0);
	waits = 0;
	m = shared_device_begin(&s, &inner, false); /* the node does not want turns */
	assert_int_equal(monitor_take_turn(m, true), 0);
	m = shared_device_begin(&s, &inner, true);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(monitor_take_turn(m, true), 0);
	assert_int_equal(monitor_take_turn(m, false), 0);
	assert_int_equal(waits, 0);
	shared_device_end(&s, 0);
	shared_device_close(&s);
	close(fd);
}

/* On a processor the plan's bytes are of the host, with those of all workers. */
TEST(processors_share_the_host)
{
	int fd = ledger_create();
	pid_t other = other_worker(fd, "cpu");
	const struct monitor inner = {.progress = progress, .cancelled = after_a_while};
	struct shared_device s;
	const struct monitor *m;

	waits = 0;
	assert_int_equal(shared_device_open(&s, fd, "cpu:2", 100 * GB, NULL), 0);
	m = shared_device_begin(&s, &inner, true);
	assert_int_equal(monitor_reserve(m, 30 * GB, 5 * GB), 0);
	assert_int_equal(monitor_take_turn(m, true), 0);
	shared_device_end(&s, 0);
	assert_int_equal(monitor_reserve(m, 40 * GB, 5 * GB), -ECANCELED);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	shared_device_close(&s);
	close(fd);
}

/* What is kept after a case remains reserved until it is freed; more is reserved only if it fits at once. */
TEST(kept_after_a_case)
{
	int fd = ledger_create();
	const struct monitor inner = {.progress = progress, .cancelled = after_a_while};
	struct shared_device s;
	const struct monitor *m;
	pid_t other;

	waits = 0;
	assert_int_equal(shared_device_open(&s, fd, "cpu:2", 100 * GB, NULL), 0);
	m = shared_device_begin(&s, &inner, true);
	assert_int_equal(monitor_reserve(m, 20 * GB, 5 * GB), 0);
	assert_int_equal(monitor_reserve(m, 20 * GB, 81 * GB), -EAGAIN); /* nobody else holds any, but there is not so much */
	assert_int_equal(monitor_reserve(m, 20 * GB, 65 * GB), 0);	 /* 60 of them to be kept */
	shared_device_end(&s, 60 * GB);
	other = other_worker(fd, "cuda:0"); /* holds 1 GB of the host */
	m = shared_device_begin(&s, &inner, true);
	assert_int_equal(monitor_reserve(m, 0, 100 * GB), -EAGAIN);
	assert_int_equal(waits, 0);
	assert_int_equal(monitor_reserve(m, 0, 99 * GB), 0);
	shared_device_end(&s, 60 * GB);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);

	if (fork() == 0) { /* another worker waits while 60 are kept, and no longer when they are freed */
		struct shared_device mine;
		const struct monitor *w;

		if (shared_device_open(&mine, fd, "cpu:1", 100 * GB, NULL) < 0)
			_exit(1);
		w = shared_device_begin(&mine, &inner, true);
		_exit(monitor_reserve(w, 0, 41 * GB) == -ECANCELED && monitor_reserve(w, 0, 39 * GB) == 0 ? 0 : 2);
	}
	int status;

	assert_true(wait(&status) > 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	m = shared_device_begin(&s, &inner, true);
	assert_int_equal(monitor_reserve(m, 0, 0), 0); /* freed: from here it waits again */
	assert_int_equal(monitor_reserve(m, 0, 10 * GB), 0);
	shared_device_end(&s, 0);
	shared_device_close(&s);
	close(fd);
}

/* Without a ledger a case has the monitor that it was given. */
TEST(nothing_to_share)
{
	const struct monitor inner = {.progress = progress};
	struct shared_device s;

	assert_int_equal(shared_device_open(&s, 0, "cuda:0", 0, NULL), 0);
	assert_ptr_equal(shared_device_begin(&s, &inner, true), &inner);
	shared_device_end(&s, 0);
	shared_device_close(&s);
}
