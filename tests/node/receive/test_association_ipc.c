/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of an association's process and the listener's answers: each gets its own, whatever came too late. */
#include <poll.h>

#include <pthread.h>

#include "node/receive/association_ipc.h"
#include "tests/test.h"

TEST(without_a_listener)
{
	struct association_ipc g = {.fd = -1};
	struct association_reply a;

	assert_true(association_ipc_request(&g, &(struct association_request){.kind = ASSOCIATION_ADMIT}, 0, &a));
	assert_true(a.yes && !a.counted);
	association_ipc_notify(&g, &(struct association_request){.kind = ASSOCIATION_REFUSED});
}

/* A listener that answers `late` questions only when the next one is there. */
struct listener {
	int fd, late;
};

static void *answer_all(void *ctx)
{
	struct listener *l = ctx;
	struct association_request q[8];
	int n = 0, got;

	while (n <= l->late) {
		poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, -1);
		got = association_ipc_receive(l->fd, &q[n]);
		if (got < 0)
			return NULL; /* then nothing is answered */
		n += got;
	}
	for (int i = 0; i < n; i++)
		association_ipc_reply(l->fd, &q[i], &(struct association_reply){.wait = (double)q[i].bytes});
	return NULL;
}

TEST(an_answer_that_comes_late)
{
	struct association_reply a = {.wait = -1};
	struct listener l = {.late = 3};
	struct association_ipc g = {.fd = -1};
	pthread_t thread;
	int pair[2];

	assert_int_equal(association_ipc_pair(pair), 0);
	g.fd = pair[1];
	l.fd = pair[0];
	for (int i = 0; i < l.late; i++)
		assert_false(association_ipc_request(
			&g, &(struct association_request){.kind = ASSOCIATION_BYTES, .bytes = 100 + (uint64_t)i}, 1, &a));
	assert_true(a.wait < 0); /* nothing was answered, nothing was written */
	assert_int_equal(pthread_create(&thread, NULL, answer_all, &l), 0);
	assert_true(association_ipc_request(&g, &(struct association_request){.kind = ASSOCIATION_BYTES, .bytes = 7}, 60000, &a));
	assert_true(a.wait == 7);
	pthread_join(thread, NULL);

	l.late = 0; /* and the next one is right, too */
	assert_int_equal(pthread_create(&thread, NULL, answer_all, &l), 0);
	assert_true(association_ipc_request(&g, &(struct association_request){.kind = ASSOCIATION_BYTES, .bytes = 8}, 60000, &a));
	assert_true(a.wait == 8);
	pthread_join(thread, NULL);

	close(pair[0]);
	assert_false(association_ipc_request(&g, &(struct association_request){.kind = ASSOCIATION_BYTES}, 60000,
					     &a)); /* at once: it is gone */
	close(pair[1]);
}

TEST(what_is_no_question)
{
	struct association_request q = {0};
	int pair[2];

	assert_int_equal(association_ipc_pair(pair), 0);
	assert_int_equal(association_ipc_receive(pair[0], &q), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(association_ipc_receive(pair[0], &q), -1);
	close(pair[1]);
	assert_int_equal(association_ipc_receive(pair[0], &q), -1);
	close(pair[0]);
}
