/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/process/spawn.h"
#include "node/status/status.h"

#define PROCESS_SECONDS 120.0 /* longest time for a report */
#define KEPT_SECONDS 60.0

void status_report_begin(struct status_report *r)
{
	*r = (struct status_report){.fd = -1};
}

/* Kill the process if it runs. */
static void stop(struct status_report *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void status_report_end(struct status_report *r)
{
	stop(r);
	html_clear(&r->text);
	r->job = 0;
}

bool status_has_report(const struct status *s, const struct job_view *v)
{
	char path[500];

	return s->config->status.thumbnails && v->n_objects > 0 &&
	       snprintf(path, sizeof(path), "%s/%s", s->config->node.spool, v->objects[0].file) < (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

/* End with a sentence instead of a report. */
static void fail(struct status_report *r, const char *sentence)
{
	log_event(LOG_WARNING, "report-not-made", "job=%lld reason=%s", (long long)r->job, log_quote(sentence));
	html_clear(&r->text);
	html_put(&r->text, "E");
	html_put(&r->text, sentence);
}

static void start(struct status_report *r, const struct status *s, const struct job_view *v)
{
	const char *path = s->config->path;
	char ipc[16], job[24];
	char *argv[10] = {"tomonode", "report-page", "--ipc", ipc, job, (char *)file_name(v->objects[0].file), NULL};
	struct err err = {0};
	int pair[2];

	status_report_end(r);
	r->job = v->id;
	r->until = clock_seconds() + PROCESS_SECONDS;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		fail(r, strerror(errno));
		return;
	}
	snprintf(ipc, sizeof(ipc), "%d", pair[1]);
	snprintf(job, sizeof(job), "%lld", (long long)v->id);
	if (path[0]) {
		argv[4] = "-c";
		argv[5] = (char *)path;
		argv[6] = job;
		argv[7] = (char *)file_name(v->objects[0].file);
	}
	if (spawn_start(argv, &pair[1], 1, &r->pid, &err) < 0) {
		close(pair[0]);
		fail(r, err.msg);
	} else {
		r->fd = pair[0];
	}
	close(pair[1]);
}

void status_report_receive(struct status_report *r)
{
	char bytes[16384];
	ssize_t n = -1;

	if (r->fd < 0) {
		if (r->job && clock_seconds() > r->until)
			status_report_end(r);
		return;
	}
	for (int i = 0; i < 64 && (n = recv(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0; i++)
		html_bytes(&r->text, bytes, (size_t)n);
	if (n == 0) {
		stop(r);
		r->until = clock_seconds() + KEPT_SECONDS;
		if (r->text.failed || r->text.n < 2)
			fail(r, "The process that makes reports has ended without one.");
	} else if (r->text.failed || clock_seconds() > r->until) {
		stop(r);
		fail(r, r->text.failed ? "The report is too large." : "Making the report took too long.");
		r->until = clock_seconds() + KEPT_SECONDS;
	}
}

enum status_report_state status_report_get(struct status_report *r, const struct status *s, const struct job_view *v,
					   const char **ret_text)
{
	status_report_receive(r);
	if (r->fd >= 0) /* also if it makes that of another case: one at a time */
		return STATUS_REPORT_WAIT;
	if (r->job != v->id) {
		start(r, s, v);
		if (r->fd >= 0)
			return STATUS_REPORT_WAIT;
	}
	if (r->text.failed || r->text.n < 2)
		return STATUS_REPORT_NONE;
	*ret_text = r->text.text + 1;
	return r->text.text[0] == 'R' ? STATUS_REPORT_READY : STATUS_REPORT_FAILED;
}
