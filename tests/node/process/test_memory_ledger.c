/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker gets memory, in what order, and what is left of one that is killed: with processes of the test's own. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "kernels/clock.h"
#include "node/process/memory_ledger.h"
#include "tests/test.h"

#define GB (1ull << 30)

/* ---- the decision ---- */

#define HOLDS(name, d, h)                                                                                                        \
	{                                                                                                                        \
		.device = name, .state = LEDGER_HOLDING, .device_bytes = (d)*GB, .host_bytes = (h)*GB                            \
	}
#define ASKS(name, d, h, t)                                                                                                      \
	{                                                                                                                        \
		.device = name, .state = LEDGER_WAITING, .device_bytes = (d)*GB, .host_bytes = (h)*GB, .ticket = t               \
	}
#define KEEPS(name, h)                                                                                                           \
	{                                                                                                                        \
		.device = name, .state = LEDGER_IDLE, .host_bytes = (h)*GB                                                       \
	}

TEST(decisions)
{
	static const struct {
		const char *what;
		struct ledger_entry list[4]; /* the first one asks */
		bool fits;
	} cases[] = {
		{"nobody else", {ASKS("cuda:0", 10, 1, 5)}, true},
		{"alone, more than there is", {ASKS("cuda:0", 1000, 1000, 5)}, true},
		{"beside another", {ASKS("cuda:0", 40, 1, 5), HOLDS("cuda:0", 40, 1)}, true},
		{"too much beside another", {ASKS("cuda:0", 41, 1, 5), HOLDS("cuda:0", 40, 1)}, false},
		{"another device", {ASKS("cuda:0", 80, 1, 5), HOLDS("cuda:1", 80, 1)}, true},
		{"host of all devices", {ASKS("cuda:0", 1, 60, 5), HOLDS("cuda:1", 1, 60)}, false},
		{"host beside another", {ASKS("cpu", 0, 40, 5), HOLDS("cuda:1", 1, 60)}, true},
		{"who asked first is first", {ASKS("cuda:0", 1, 1, 5), ASKS("cuda:0", 60, 1, 4), HOLDS("cuda:0", 60, 1)}, false},
		{"who asked later is not", {ASKS("cuda:0", 1, 1, 5), ASKS("cuda:0", 60, 1, 6), HOLDS("cuda:0", 60, 1)}, true},
		{"the order is of a device", {ASKS("cuda:0", 1, 1, 5), ASKS("cuda:1", 60, 1, 4), HOLDS("cuda:1", 60, 1)}, true},
		{"kept host memory counts", {ASKS("cuda:0", 1, 40, 5), HOLDS("cuda:0", 1, 40), KEEPS("cuda:0", 30)}, false},
		{"but only beside a case", {ASKS("cuda:0", 1, 80, 5), KEEPS("cuda:0", 30)}, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (ledger_fits(cases[i].list, 4, 0, 80 * GB, 100 * GB) != cases[i].fits)
			fail_msg("%s", cases[i].what);
}

/* ---- processes ---- */

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct ledger *open_at(int fd, const char *device)
{
	struct ledger *l = NULL;
	struct err err = {0};
	int ret;

	while ((ret = ledger_open(fd, device, 100 * GB, &l, &err)) == -EAGAIN)
		rest();
	if (ret < 0)
		fail_msg("%s", err.msg);
	return l;
}

/* Start a process that reserves bytes of a device, writes a byte to the pipe and holds them until it is killed. */
static pid_t holder(int fd, const char *device, uint64_t bytes, bool turn)
{
	int pipes[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct ledger *l = open_at(fd, device);

		while (!ledger_reserve(l, bytes, GB) || (turn && !ledger_take_turn(l)))
			rest();
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What a killed worker held is free again, after the time that its driver may need; its turn at once. */
TEST(killed_worker)
{
	int fd = ledger_create();
	struct ledger *l = open_at(fd, "cuda:0");
	double killed;
	pid_t pid;

	assert_true(fd > 0);
	assert_true(ledger_capacity(l, 80 * GB) == 80 * GB);
	pid = holder(fd, "cuda:0", 50 * GB, true);
	assert_false(ledger_reserve(l, 40 * GB, GB));
	assert_false(ledger_take_turn(l));
	assert_true(ledger_capacity(l, 20 * GB) == 80 * GB); /* measured while it holds 50 of them */
	killed = clock_seconds();
	end(pid);
	assert_true(ledger_take_turn(l));
	assert_false(ledger_reserve(l, 40 * GB, GB)); /* the driver may not have freed it yet */
	while (!ledger_reserve(l, 40 * GB, GB))
		rest();
	assert_true(clock_seconds() - killed >= LEDGER_GRACE);
	ledger_release(l, false);
	ledger_close(l);
	close(fd);
}

/* Two of one device and one of another: memory and turns are those of a device, and come back when they are given back. */
TEST(shared)
{
	int fd = ledger_create();
	struct ledger *l = open_at(fd, "cuda:0");
	pid_t other = holder(fd, "cuda:1", 70 * GB, true), same;

	assert_true(ledger_capacity(l, 80 * GB) == 80 * GB);
	assert_true(ledger_reserve(l, 60 * GB, GB));
	assert_true(ledger_take_turn(l));
	ledger_end_turn(l);
	ledger_release(l, true);
	same = holder(fd, "cuda:0", 60 * GB, true);
	assert_false(ledger_reserve(l, 60 * GB, GB));
	assert_false(ledger_take_turn(l));
	ledger_release(l, true); /* given up: others do not wait for it */
	end(same);
	end(other);
	ledger_close(l);
	close(fd);
}

/* A worker that is stopped while it changes the table: others start all the same. */
TEST(stopped_worker)
{
	int fd = ledger_create(), pipes[2];
	struct ledger *l = open_at(fd, "cuda:0");
	double begun;
	pid_t pid;
	char c;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct flock table = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

		if (fcntl(fd, F_SETLK, &table) < 0 || write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	begun = clock_seconds();
	assert_true(ledger_capacity(l, 80 * GB) == 80 * GB);
	assert_true(clock_seconds() - begun >= LEDGER_LOCK_SECONDS);
	assert_false(ledger_reserve(l, 40 * GB, GB));
	end(pid);
	assert_true(ledger_reserve(l, 40 * GB, GB));
	assert_true(ledger_capacity(l, 80 * GB) == 80 * GB);
	ledger_close(l);
	close(fd);
}

/* As many workers, and devices, as the table has; one more finds no entry, and another can have it as soon as one ends. Locks are
 * of a process, so each worker is one. */
TEST(numbers_of_entries)
{
	struct ledger *more = NULL;
	struct err err = {0};
	int fd = ledger_create(), pipes[2];
	pid_t pid[LEDGER_ENTRIES];
	char c;

	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i < LEDGER_ENTRIES; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			char name[16];

			snprintf(name, sizeof(name), "cuda:%d", i % 64);
			open_at(fd, name);
			if (write(pipes[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		assert_int_equal(read(pipes[0], &c, 1), 1);
	}
	assert_error(ledger_open(fd, "cuda:0", 0, &more, &err), &err, EAGAIN, "no free entry");
	assert_null(more);
	end(pid[7]);
	assert_error(ledger_open(fd, "cuda:64", 0, &more, &err), &err, EAGAIN, "no free entry"); /* the 65th device */
	more = open_at(fd, "cuda:63");
	ledger_close(more);
	for (int i = 0; i < LEDGER_ENTRIES; i++)
		if (i != 7)
			end(pid[i]);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

/* Workers that end in order leave their entries to others. */
TEST(entries_are_used_again)
{
	int fd = ledger_create();

	for (int i = 0; i < 2 * LEDGER_ENTRIES; i++) {
		struct ledger *l = open_at(fd, "cuda:0");

		assert_true(ledger_reserve(l, GB, GB));
		ledger_close(l);
	}
	close(fd);
}
