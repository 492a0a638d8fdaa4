/* SPDX-License-Identifier: Apache-2.0 */
/* Test the progress bar: no output without a terminal; one line, redrawn, on a terminal; Ctrl-C sets the monitor's flag. */
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "node/base/progress.h"
#include "tests/test.h"

static char caught[8192];

/* Draw with stderr redirected to `fd`, then read the output from `from`; wait at most `patience` ms for each part. */
static void draw(int fd, int from, bool wanted, int patience)
{
	struct pollfd ready = {.fd = from, .events = POLLIN};
	size_t used = 0;
	struct progress p;
	int saved = dup(STDERR_FILENO);
	ssize_t n;

	dup2(fd, STDERR_FILENO);
	progress_start(&p, wanted);
	monitor_progress(&p.monitor, "read", 0);
	monitor_progress(&p.monitor, "read", 0.001); /* too early to draw again */
	monitor_progress(&p.monitor, "read", 1);
	monitor_progress(&p.monitor, "reconstruct", 0.5);
	monitor_progress(&p.monitor, "reconstruct", 7); /* out of range: 100 % */
	progress_stop(&p);
	dup2(saved, STDERR_FILENO);
	close(saved);
	/* A terminal delays its output: read until the line is cleared, or no more output arrives. */
	caught[0] = '\0';
	while (used + 1 < sizeof(caught) && !(used >= 4 && !strcmp(caught + used - 4, "\r\033[K")) &&
	       poll(&ready, 1, patience) > 0) {
		n = read(from, caught + used, sizeof(caught) - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
		caught[used] = '\0';
	}
}

/* What is left of a stage, after three seconds and a hundredth of it. */
TEST(test_left)
{
	assert_near(progress_left(3, 0.01), 297, 1e-9);
	assert_near(progress_left(10, 0.8), 2.5, 1e-9);
	assert_true(progress_left(10, 1) == 0);
	assert_true(progress_left(2.9, 0.5) < 0 && progress_left(100, 0.009) < 0 && progress_left(100, NAN) < 0);
}

TEST(test_silent)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	draw(pipes[1], pipes[0], true, 100);
	assert_string_equal(caught, "");
	close(pipes[0]);
	close(pipes[1]);
}

TEST(test_terminal)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	size_t lines = 0;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		skip_because("no pseudoterminal");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave < 0)
		skip_because("no pseudoterminal");
	ioctl(slave, TIOCSWINSZ, &size);
	draw(slave, master, false, 100);
	assert_string_equal(caught, "");
	draw(slave, master, true, 5000);
	assert_null(strchr(caught, '\n')); /* always the same line */
	assert_non_null(strstr(caught, "read           [                                        ]   0 %"));
	assert_non_null(strstr(caught, "read           [########################################] 100 %"));
	assert_non_null(strstr(caught, "reconstruct    [####################                    ]  50 %"));
	assert_non_null(strstr(caught, "reconstruct    [########################################] 100 %"));
	for (const char *at = caught; (at = strchr(at, '\r')); at++)
		lines++;
	assert_int_equal(lines, 5); /* four drawings and the clearing */
	assert_string_equal(caught + strlen(caught) - 4, "\r\033[K");
	close(slave);
	close(master);
}

TEST(test_cancel)
{
	struct progress p;

	progress_start(&p, false);
	assert_false(monitor_cancelled(&p.monitor));
	raise(SIGINT);
	assert_true(monitor_cancelled(&p.monitor));
	progress_stop(&p);
	progress_start(&p, false);
	assert_false(monitor_cancelled(&p.monitor)); /* progress_start() resets the flag */
	raise(SIGTERM);
	assert_true(monitor_cancelled(&p.monitor));
	progress_stop(&p);
}
