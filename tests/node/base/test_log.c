/* SPDX-License-Identifier: Apache-2.0 */
/* Test log lines: values cannot break a line in two; quoting; levels. stderr is read through a pipe. */
#include "kernels/clock.h"
#include "node/base/log.h"
#include "tests/test.h"

static char caught[16384], last[sizeof(caught)];

/* Call `what` with stderr redirected to a pipe, and store its output in `caught`. */
static void catch_stderr(void (*what)(void))
{
	int pipes[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	what();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipes[1]);
	n = read(pipes[0], caught, sizeof(caught) - 1);
	close(pipes[0]);
	caught[n > 0 ? n : 0] = '\0';
}

static void log_one(void)
{
	log_event(LOG_INFO, "stored", "sop=%s bytes=%d", "1.2.3", 42);
}

TEST(test_line)
{
	int year, month, day, hour, minute, second, ms, pid, end = 0;

	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "receiver");
	catch_stderr(log_one);
	assert_int_equal(sscanf(caught, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ info receiver[%d] stored sop=1.2.3 bytes=42\n%n", &year,
				&month, &day, &hour, &minute, &second, &ms, &pid, &end),
			 8);
	assert_int_equal(end, strlen(caught));
	assert_int_equal(pid, getpid());
	assert_int_equal(caught[10], 'T');
	assert_int_equal(caught[23], 'Z');
}

static void set_stream(int more)
{
	char stream[64];
	struct stat is;

	assert_int_equal(fstat(STDERR_FILENO, &is), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)is.st_dev, (unsigned long long)is.st_ino + more);
	setenv("JOURNAL_STREAM", stream, 1);
}

static void log_to_journal(void)
{
	set_stream(0);
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "serve");
	log_event(LOG_CRIT, "device-disabled", "a=1");
	set_stream(1);
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "serve");
	log_event(LOG_CRIT, "device-disabled", "a=2");
}

/* Lines have a priority prefix if stderr is systemd's journal, and none if stderr was redirected after the start. */
TEST(test_journal)
{
	const char *second;

	catch_stderr(log_to_journal);
	unsetenv("JOURNAL_STREAM");
	second = strchr(caught, '\n') + 1;
	assert_memory_equal(caught, "<2>2", 4);
	assert_non_null(strstr(caught, "Z crit serve["));
	assert_in_range(*second, '1', '9');
	assert_non_null(strstr(second, "device-disabled a=2\n"));
}

static void log_evil(void)
{
	log_event(LOG_ERR, "bad\nevent", "reason=%s why=%s", "a\nb\r\033[31m\x7f\xff", log_quote("x\ny\"z\\"));
}

TEST(test_one_line)
{
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "serve");
	catch_stderr(log_evil);
	assert_ptr_equal(strchr(caught, '\n'), caught + strlen(caught) - 1); /* one newline, the last byte */
	for (const char *at = caught; at[1]; at++)
		assert_true(*at >= ' ' && *at <= '~');
	assert_non_null(strstr(caught, "error serve["));
	assert_non_null(strstr(caught, "bad\\nevent reason=a\\nb\\x0d\\x1b[31m\\x7f\\xff why=\"x\\ny\\\"z\\\\\"\n"));
}

static void log_levels(void)
{
	log_event(LOG_DEBUG, "hidden", "a=1");
	log_event(LOG_INFO, "hidden", "a=1");
	log_event(LOG_WARNING, "shown", "%s", "");
}

TEST(test_levels)
{
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_NOTICE, "serve");
	catch_stderr(log_levels);
	assert_null(strstr(caught, "hidden"));
	assert_string_equal(strstr(caught, "shown"), "shown\n"); /* no blank at the end */
	log_start(LOG_TO_NOWHERE, LOG_DAEMON, LOG_DEBUG, "serve");
	catch_stderr(log_levels);
	assert_string_equal(caught, "");
}

static void log_long(void)
{
	static char text[6000];

	memset(text, '\n', sizeof(text) - 1);
	log_event(LOG_INFO, "long", "text=%s", text);
}

TEST(test_long)
{
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "serve");
	catch_stderr(log_long);
	assert_in_range(strlen(caught), 1000, 4096);
	assert_ptr_equal(strchr(caught, '\n'), caught + strlen(caught) - 1);
}

TEST(test_quote)
{
	static const struct {
		const char *value, *quoted;
	} cases[] = {
		{"plain", "plain"},    {"1.2.840", "1.2.840"},	       {"", "\"\""},	       {"a b", "\"a b\""},
		{"a=b", "\"a=b\""},    {"a\"b", "\"a\\\"b\""},	       {"a\\b", "\"a\\\\b\""}, {"a\nb", "\"a\\nb\""},
		{"a\tb", "\"a\\tb\""}, {"\x01\xc3", "\"\\x01\\xc3\""},
	};
	char text[3000];
	const char *quoted, *first = log_quote("first");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(log_quote(cases[i].value), cases[i].quoted);
	assert_string_equal(first, "first"); /* still valid after ten further calls */
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	quoted = log_quote(text);
	assert_in_range(strlen(quoted), 600, 640);
	assert_int_equal(quoted[strlen(quoted) - 1], '"');
	for (size_t i = 1; i + 1 < strlen(quoted); i += 2) /* no escape is cut in half */
		assert_memory_equal(quoted + i, "\\\"", 2);
}

/* If nobody reads the pipe, one line waits, later lines are dropped at once, and their number is logged when the pipe is read
 * again.
 */
TEST(test_nobody_reads)
{
	int pipes[2], saved = dup(STDERR_FILENO), n_lines = 3000;
	double from, took;
	size_t whole = 0;
	ssize_t n;

	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "serve");
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	from = clock_seconds();
	for (int i = 0; i < n_lines; i++)
		log_event(LOG_INFO, "stored", "sop=1.2.3 number=%d", i);
	took = clock_seconds() - from;
	n = read(pipes[0], caught, sizeof(caught) - 1);
	log_event(LOG_INFO, "again", "%s", "");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipes[1]);
	for (; n > 0; n = read(pipes[0], caught, sizeof(caught) - 1)) {
		for (ssize_t i = 0; i < n; i++)
			whole += caught[i] == '\n';
		caught[n] = '\0';
		strcpy(last, caught);
	}
	close(pipes[0]);
	assert_true(took > 0.5 && took < 60); /* it waited once; 3000 times would be 50 minutes */
	assert_in_range(whole, 100, n_lines - 1);
	snprintf(caught, sizeof(caught), "log-lost lines=%zu\n", n_lines + 2 - whole);
	assert_non_null(strstr(last, caught));
	assert_non_null(strstr(last, "again\n"));
}
