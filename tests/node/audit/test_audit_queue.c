/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of audit messages: order, cuts, damage, its bound, several writers. */
#include "tests/node/audit/audit_fixture.h"
#include "tests/test.h"

#define HEAD 20

struct taken {
	char text[4096];
	int refuse_at, code, calls;
};

static int take(void *ctx, const char *line, size_t n)
{
	struct taken *t = ctx;

	if (++t->calls == t->refuse_at)
		return t->code;
	strncat(t->text, line, n);
	strcat(t->text, "|");
	return 0;
}

static void append(struct place *p, const char *line)
{
	struct err err = {0};

	assert_done(audit_queue_append(p->dir, line, strlen(line), AUDIT_QUEUE_MAX, &err), &err);
}

static int drain(struct place *p, struct taken *t, size_t *ret_sent, size_t *ret_dropped)
{
	struct err err = {0};

	t->calls = 0;
	t->text[0] = '\0';
	return audit_queue_drain(p->dir, take, t, ret_sent, ret_dropped, &err);
}

TEST(order_is_kept, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct taken t = {.refuse_at = 2, .code = -ECONNREFUSED};
	size_t sent, dropped;

	assert_false(audit_queue_has_lines(p->dir));
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	append(p, "<1>a");
	append(p, "<2>b");
	append(p, "<3>c");
	assert_true(audit_queue_has_lines(p->dir));
	assert_int_equal(drain(p, &t, &sent, &dropped), -ECONNREFUSED);
	assert_string_equal(t.text, "<1>a|");
	assert_int_equal(sent, 1);
	append(p, "<4>d");
	t.refuse_at = 0;
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<2>b|<3>c|<4>d|");
	assert_int_equal(sent, 3);
	assert_false(audit_queue_has_lines(p->dir));
	/* One that syslog will never take does not hold up the others. */
	append(p, "<1>a");
	append(p, "<2>b");
	t = (struct taken){.refuse_at = 1, .code = -EMSGSIZE};
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<2>b|");
	assert_true(sent == 1 && dropped == 1);
}

/* Write `text` at `at` of the queue's file, or at its end (-1). */
static void scribble(struct place *p, off_t at, const char *text)
{
	int fd = open(p->queue, O_WRONLY);

	assert_true(fd >= 0);
	assert_true(lseek(fd, at < 0 ? 0 : at, at < 0 ? SEEK_END : SEEK_SET) >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(damage_is_passed_over, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct taken t = {0};
	size_t sent, dropped;

	/* A line that was cut short, then whole ones. */
	append(p, "<1>a");
	scribble(p, -1, "<2>cut sh");
	append(p, "<3>c");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_non_null(strstr(t.text, "<1>a|"));
	assert_non_null(strstr(t.text, "<3>c|"));
	/* One at the end. */
	append(p, "<1>a");
	scribble(p, -1, "garbage");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
	assert_int_equal(dropped, 1);
	assert_false(audit_queue_has_lines(p->dir));
	/* A head that is none: all again, never nothing. */
	append(p, "<1>a");
	append(p, "<2>b");
	scribble(p, 0, "9999999999999999999\n");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|<2>b|");
	append(p, "<1>a");
	scribble(p, 0, "zzz");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
	/* No line at all: it ends. */
	assert_int_equal(truncate(p->queue, 300000), 0);
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_int_equal(sent, 0);
	assert_false(audit_queue_has_lines(p->dir));
}

TEST(the_queue_is_bounded, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct taken t = {0};
	struct err err = {0};
	struct stat st;
	static char line[70000];
	size_t sent, dropped;

	append(p, "<1>a");
	memset(line, 'x', sizeof(line) - 1);
	assert_int_equal(audit_queue_append(p->dir, line, strlen(line), AUDIT_QUEUE_MAX, &err), -EFBIG);
	assert_int_equal(truncate(p->queue, (off_t)AUDIT_QUEUE_MAX), 0);
	assert_int_equal(audit_queue_append(p->dir, "<2>b", 4, AUDIT_QUEUE_MAX, &err), -EFBIG);
	/* Strangers fill half of it, the rest is for what peers do. */
	assert_int_equal(truncate(p->queue, (off_t)AUDIT_QUEUE_UNKNOWN_PEERS), 0);
	audit_start(&p->config->node, AUDIT_QUEUED, "test");
	audit_refused(&(struct audit_peer){"WHO", "10.0.0.1"}, false, "who is that?"); /* to the file instead */
	assert_int_equal(stat(p->queue, &st), 0);
	assert_int_equal(st.st_size, AUDIT_QUEUE_UNKNOWN_PEERS);
	audit_application_activity(false);
	assert_int_equal(stat(p->queue, &st), 0);
	assert_true(st.st_size > (off_t)AUDIT_QUEUE_UNKNOWN_PEERS);
	assert_int_equal(truncate(p->queue, HEAD + 5), 0);
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
}

TEST(many_writers, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct taken t = {0};
	size_t sent, dropped, total = 0;
	int status;

	for (int w = 0; w < 4; w++)
		if (fork() == 0) {
			for (int i = 0; i < 100; i++)
				if (audit_queue_append(p->dir, "<1>line", 7, AUDIT_QUEUE_MAX, NULL) < 0)
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < 20; i++) { /* while they write */
		assert_int_equal(drain(p, &t, &sent, &dropped), 0);
		assert_int_equal(dropped, 0);
		total += sent;
	}
	for (int w = 0; w < 4; w++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	while (audit_queue_has_lines(p->dir)) {
		assert_int_equal(drain(p, &t, &sent, &dropped), 0);
		total += sent;
	}
	assert_int_equal(total, 400);
}
