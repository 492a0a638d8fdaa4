/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that several people ask for at once: each gets what was made, although one process makes them one after the other. This
 * program is that process, too: it sends back what it was asked for. */
#include <sys/socket.h>

#include "kernels/clock.h"
#include "node/status/status.h"
#include "node/status/status_report.h"
#include "tests/test.h"

#define WAIT_SECONDS 20.0

/* tomonode report-page --ipc FD JOB FILE */
static int make_page(char **words)
{
	int fd = (int)strtol(words[1], NULL, 10);
	char text[100];
	int n = snprintf(text, sizeof(text), "R%s of %s", words[3], words[2]);

	usleep(50000); /* the others ask meanwhile */
	return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n ? 0 : 1;
}

static struct config config;
static struct status status = {.config = &config};

/* Ask once; false: it is not ready. */
static bool ask(struct status_report *r, const struct job_view *v, const char *expected)
{
	const char *text = NULL;
	size_t n = 0;
	enum status_report_state state = status_report_get(r, &status, v, &text, &n);

	if (state == STATUS_REPORT_WAIT)
		return false;
	assert_int_equal(state, STATUS_REPORT_READY);
	assert_int_equal(n, strlen(expected));
	assert_memory_equal(text, expected, n);
	return true;
}

TEST(test_at_once)
{
	struct job_object object = {.file = "outbox/1/result.dcm"};
	struct job_view views[2] = {{.id = 1, .objects = &object, .n_objects = 1}, {.id = 2, .objects = &object, .n_objects = 1}};
	static const char *const expected[] = {"result.dcm of 1", "result.dcm of 2"};
	double until = clock_seconds() + WAIT_SECONDS;
	struct status_report r;
	bool ready[4] = {false};
	int left = 4;

	status_report_begin(&r);
	while (left > 0 && clock_seconds() < until) { /* four browsers, each until it has its page */
		for (int i = 0; i < 4; i++)
			if (!ready[i] && ask(&r, &views[i % 2], expected[i % 2])) {
				ready[i] = true;
				left--;
			}
		usleep(5000);
	}
	assert_int_equal(left, 0);
	for (int i = 0; i < 2; i++) /* and all are still there for whoever asks again */
		assert_true(ask(&r, &views[i], expected[i]));
	status_report_end(&r);
}

TESTS_COMMAND("report-page", 4, make_page);
