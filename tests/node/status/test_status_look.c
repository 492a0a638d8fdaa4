/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that persons look at: what is asked for is made by one process, one after the other, or by several at once; a process that
 * crashes or answers too much harms only its slice; what is kept has a limit. This program is that process, too. */
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/status/status.h"
#include "node/status/status_look.h"
#include "tests/test.h"

#define WAIT_SECONDS 20.0
#define CRASHES 1000 /* slices that the process answers in another way */
#define TOO_LARGE 1001
#define MISSING 1002
#define HANGS 1003
#define LARGE 2000 /* from here on each has LARGE_BYTES */
#define LARGE_BYTES (1u << 20)

/* tomonode look --ipc FD */
static int make_slices(char **words)
{
	static char large[LARGE_BYTES];
	int fd = (int)strtol(words[1], NULL, 10);
	struct look_question q;

	while (recv(fd, &q, sizeof(q), MSG_WAITALL) == (ssize_t)sizeof(q)) {
		struct look_answer a = {.code = q.slice == MISSING ? 404 : 200};
		char text[200];

		a.n = (size_t)snprintf(text, sizeof(text), "slice %ld of %s of %lld at %.0f", q.slice, q.file, (long long)q.job,
				       q.version);
		if (q.slice == CRASHES)
			return 1;
		if (q.slice == HANGS)
			pause();
		if (q.slice == TOO_LARGE)
			a.n = LOOK_ONE_MAX + 1;
		if (q.slice >= LARGE)
			a.n = LARGE_BYTES;
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) < 0)
			return 1;
		for (size_t at = 0; q.slice != TOO_LARGE && at < a.n;) {
			ssize_t n = send(fd, q.slice >= LARGE ? large + at : text + at, a.n - at, MSG_NOSIGNAL);

			if (n <= 0)
				return 1;
			at += (size_t)n;
		}
	}
	return 0;
}

static struct config config;
static struct status status = {.config = &config};
static struct job_object object = {.file = "outbox/1/result.dcm"};

/* Ask until it is made. */
static const struct look_made *wait_made(struct status_look *l, const struct job_view *v, long slice)
{
	double until = clock_seconds() + WAIT_SECONDS;
	const struct look_made *made;

	while (!(made = status_look_get(l, &status, v, slice)) && clock_seconds() < until)
		usleep(1000);
	assert_non_null(made);
	return made;
}

static void expect_text(struct status_look *l, const struct job_view *v, long slice, const char *text)
{
	const struct look_made *made = wait_made(l, v, slice);

	assert_int_equal(made->head.code, 200);
	assert_string_equal(made->bytes, text);
}

TEST(test_slices_are_made)
{
	struct job_view v = {.id = 1, .objects = &object, .n_objects = 1, .reconstructed = 10}, other = v;
	double until = clock_seconds() + WAIT_SECONDS;
	struct status_look l;

	other.id = 2;
	status_look_begin(&l, 1);
	assert_null(status_look_get(&l, &status, &v, 1));
	assert_null(status_look_get(&l, &status, &v, 2));     /* waits, */
	assert_null(status_look_get(&l, &status, &other, 3)); /* and is replaced by the one that was asked for last */
	while ((l.maker[0].now || l.next.job) && clock_seconds() < until)
		status_look_receive(&l, &status);
	expect_text(&l, &v, 1, "slice 1 of result.dcm of 1 at 10");
	assert_non_null(status_look_get(&l, &status, &other, 3));
	assert_null(status_look_get(&l, &status, &v, 2));
	expect_text(&l, &other, 3, "slice 3 of result.dcm of 2 at 10");
	v.reconstructed = 11; /* the result was made again */
	expect_text(&l, &v, 1, "slice 1 of result.dcm of 1 at 11");
	assert_int_equal(wait_made(&l, &v, MISSING)->head.code, 404);
	status_look_end(&l);
}

/* The process dies, or says that it sends more than is taken: a sentence, and the next slice is made. */
TEST(test_slices_that_fail)
{
	struct job_view v = {.id = 1, .objects = &object, .n_objects = 1};
	static const long bad[] = {CRASHES, TOO_LARGE};
	const struct look_made *made;
	struct status_look l;

	status_look_begin(&l, 1);
	for (int i = 0; i < 2; i++) {
		made = wait_made(&l, &v, bad[i]);
		assert_int_equal(made->head.code, 503);
		assert_non_null(strstr(made->bytes, i ? "too large" : "ended without a result"));
		expect_text(&l, &v, 4 + i, i ? "slice 5 of result.dcm of 1 at 0" : "slice 4 of result.dcm of 1 at 0");
		assert_ptr_equal(status_look_get(&l, &status, &v, bad[i]), made); /* not tried again at once */
	}
	status_look_end(&l);
}

/* Two that hang keep two processes; the third makes what is asked for meanwhile. A fourth does not start. */
TEST(test_slices_at_once)
{
	struct job_view v = {.id = 1, .objects = &object, .n_objects = 1}, other = v;
	struct status_look l;

	other.id = 2;
	status_look_begin(&l, 3);
	assert_null(status_look_get(&l, &status, &v, HANGS));
	assert_null(status_look_get(&l, &status, &other, HANGS));
	assert_null(status_look_get(&l, &status, &v, HANGS)); /* it is being made already */
	assert_true(l.maker[1].fd >= 0 && l.maker[2].fd < 0);
	expect_text(&l, &v, 1, "slice 1 of result.dcm of 1 at 0");
	expect_text(&l, &other, 2, "slice 2 of result.dcm of 2 at 0");
	assert_true(l.maker[0].now && l.maker[1].now && l.maker[2].fd >= 0 && l.maker[3].fd < 0);
	for (long k = 0; k < LOOK_MADE; k++) /* what is being made is not forgotten */
		assert_int_equal(wait_made(&l, &v, LARGE + k)->head.n, LARGE_BYTES);
	assert_int_equal(l.maker[0].now->of.slice, HANGS);
	assert_int_equal(l.maker[1].now->of.job, 2);
	status_look_end(&l);
	for (int i = 0; i < LOOK_MAKERS; i++)
		assert_int_equal(l.maker[i].fd, -1);
	assert_true(status_look_makers() >= 1 && status_look_makers() <= LOOK_MAKERS);
}

TEST(test_limit_of_what_is_kept)
{
	struct job_view v = {.id = 1, .objects = &object, .n_objects = 1};
	struct status_look l;
	size_t bytes = 0;

	status_look_begin(&l, 1);
	for (long k = 0; k < 100; k++)
		assert_int_equal(wait_made(&l, &v, LARGE + k)->head.n, LARGE_BYTES);
	for (int i = 0; i < LOOK_MADE; i++)
		bytes += l.made[i].head.n;
	assert_true(bytes > LOOK_BYTES / 2 && bytes <= LOOK_BYTES);
	assert_non_null(status_look_get(&l, &status, &v, LARGE + 99));
	assert_null(status_look_get(&l, &status, &v, LARGE));
	status_look_end(&l);
}

TESTS_COMMAND("look", 2, make_slices);
