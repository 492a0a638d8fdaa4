/* SPDX-License-Identifier: Apache-2.0 */
/* What receivers write is what the manager reads: faults, and associations without an object, grouped, the newest first, also
 * after a receiver was killed while it wrote. */
#include <signal.h>
#include <sys/wait.h>

#include "node/receive/receiver_state.h"
#include "tests/test.h"

static void add(struct receiver_state *s, const char *calling, const char *host, const char *reason, double now)
{
	struct node_association a = {.last = -1, .count = 99};

	snprintf(a.calling, sizeof(a.calling), "%s", calling);
	snprintf(a.host, sizeof(a.host), "%s", host);
	snprintf(a.reason, sizeof(a.reason), "%s", reason);
	receiver_state_add_association(s, &a, now);
}

TEST(grouped)
{
	struct receiver_state *s = receiver_state_create(NULL);
	struct node_association all[NODE_ASSOCIATIONS_MAX];
	size_t n = 7;
	char host[16];

	assert_true(receiver_state_read_associations(s, all, &n) && n == 0);
	add(s, "A", "h", "r", 1);
	add(s, "B", "h", "r", 2);
	add(s, "A", "i", "r", 3);
	add(s, "A", "h", "q", 4);
	add(s, "A", "h", "r", 5);
	assert_true(receiver_state_read_associations(s, all, &n) && n == 4);
	assert_true(all[0].count == 2 && all[0].last == 5 && !strcmp(all[0].calling, "A") && !strcmp(all[0].reason, "r"));
	assert_true(all[1].last == 4 && all[2].last == 3 && all[3].last == 2 && all[3].count == 1);
	/* the oldest is replaced, and a new receiver forgets none */
	receiver_state_begin(s, 10);
	for (int i = 0; i < 3 * NODE_ASSOCIATIONS_MAX; i++) {
		snprintf(host, sizeof(host), "%d", i);
		add(s, "A", host, "r", 100 + i);
	}
	assert_true(receiver_state_read_associations(s, all, &n) && n == NODE_ASSOCIATIONS_MAX);
	for (int i = 0; i < NODE_ASSOCIATIONS_MAX; i++)
		assert_true(all[i].last == 100 + 3 * NODE_ASSOCIATIONS_MAX - 1 - i && all[i].count == 1);
	assert_false(receiver_state_read_associations(NULL, all, &n));
}

static void write_until_killed(struct receiver_state *s)
{
	for (unsigned i = 0; i < UINT32_MAX; i++)
		add(s, i % 2 ? "ODD" : "EVEN", i % 2 ? "odd" : "even", i % 2 ? "odd" : "even", (double)i);
	_exit(1);
}

/* Texts that are not terminated end within their member. */
TEST(not_terminated)
{
	struct receiver_state *s = receiver_state_create(NULL);
	struct node_association all[NODE_ASSOCIATIONS_MAX], a;
	size_t n = 0;

	memset(&a, 'x', sizeof(a));
	receiver_state_add_association(s, &a, 3);
	receiver_state_add_association(s, &a, 4);
	assert_true(receiver_state_read_associations(s, all, &n) && n == 1);
	assert_true(all[0].count == 2 && all[0].last == 4);
	assert_true(strlen(all[0].calling) == sizeof(a.calling) - 1 && strlen(all[0].host) == sizeof(a.host) - 1 &&
		    strlen(all[0].reason) == sizeof(a.reason) - 1);
}

/* Kill writers at random moments: later writers and the reader continue, and every entry is complete. */
TEST(killed_writers)
{
	struct receiver_state *s = receiver_state_create(NULL);
	struct node_association all[NODE_ASSOCIATIONS_MAX];
	size_t n = 0;

	for (int round = 0; round < 100; round++) {
		pid_t writer = fork();

		if (writer == 0)
			write_until_killed(s);
		usleep(200 + 37 * (round % 20));
		kill(writer, SIGKILL);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		assert_true(receiver_state_read_associations(s, all, &n) && n <= 2);
		for (size_t i = 0; i < n; i++)
			assert_true(!strcmp(all[i].host, all[i].reason) && strcmp(all[i].calling, all[i].host) < 0);
		add(s, "ODD", "odd", "odd", 1);
		assert_true(receiver_state_read_associations(s, all, &n) && n >= 1 && !strcmp(all[0].calling, "ODD"));
	}
}

TEST(faults)
{
	struct receiver_state *s = receiver_state_create(NULL);
	char reason[300];

	receiver_state_fault(s, RECEIVER_FAULT_TLS, "one");
	receiver_state_fault(s, RECEIVER_FAULT_TLS, "two"); /* the first remains */
	receiver_state_read_fault(s, RECEIVER_FAULT_TLS, reason, sizeof(reason));
	assert_string_equal(reason, "one");
	receiver_state_read_fault(s, RECEIVER_FAULT_WAIT, reason, sizeof(reason));
	assert_string_equal(reason, "");
	receiver_state_begin(s, 5);
	receiver_state_read_fault(s, RECEIVER_FAULT_TLS, reason, sizeof(reason));
	assert_string_equal(reason, "");
	assert_true(receiver_state_alive(s) == 5 && receiver_state_alive(NULL) == 0);
}

/* What hostile data do to the process of an association does not reach the state. */
TEST(children_lack_it)
{
	struct receiver_state *s = receiver_state_create(NULL);

	for (int kept = 0; kept < 2; kept++) {
		pid_t child;
		int status;

		if (kept)
			receiver_state_keep(s);
		child = fork();
		if (child == 0) {
			signal(SIGSEGV, SIG_DFL);
			_exit(receiver_state_alive(s) != 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, kept ? SIGSEGV : 0);
	}
}

TEST(no_place)
{
	struct receiver_places p = {0};

	/* all places are taken: a fault for the connections that come 3 s later, which ends when a place is free and none was
	 * refused for more than 10 s */
	assert_true(receiver_places_look(&p, false, 100));
	assert_false(receiver_places_look(&p, true, 101));
	assert_false(receiver_places_look(&p, true, 102));
	assert_false(receiver_places_refuse(&p, 103.9));
	assert_true(receiver_places_refuse(&p, 104));
	assert_false(receiver_places_look(&p, true, 120)); /* nobody asks, but none is free */
	assert_true(receiver_places_look(&p, false, 121));
	/* again and again one becomes free, but others find none, for 3 s */
	assert_false(receiver_places_look(&p, true, 199));
	assert_false(receiver_places_refuse(&p, 200));
	assert_false(receiver_places_look(&p, false, 201));
	assert_false(receiver_places_look(&p, true, 202));
	assert_false(receiver_places_refuse(&p, 202.9));
	assert_true(receiver_places_refuse(&p, 203));
	assert_false(receiver_places_look(&p, false, 213));
	assert_true(receiver_places_look(&p, false, 213.1));
	/* after more than 10 s without a refusal these 3 s begin anew */
	assert_false(receiver_places_refuse(&p, 213.5));
	assert_true(receiver_places_refuse(&p, 216.5));
}
