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

#define PROCESS_SECONDS 120.0 /* longest time to make one */
#define KEPT_SECONDS 60.0

void status_report_begin(struct status_report *r)
{
	*r = (struct status_report){.fd = -1};
}

/* Kill the process if it runs. */
static void stop_process(struct status_report *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	r->now = NULL;
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void forget_made(struct status_made *m)
{
	html_clear(&m->text);
	*m = (struct status_made){0};
}

void status_report_end(struct status_report *r)
{
	stop_process(r);
	for (size_t i = 0; i < STATUS_MADE; i++)
		forget_made(&r->made[i]);
}

bool status_has_report(const struct status *s, const struct job_view *v)
{
	char path[500];

	return s->config->status.thumbnails && v->n_objects > 0 &&
	       snprintf(path, sizeof(path), "%s/%s", s->config->node.spool, v->objects[0].file) < (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

/* End with a sentence instead of what was asked for. */
static void fail_report(struct status_made *m, const char *sentence)
{
	log_event(LOG_WARNING, "report-not-made", "job=%lld reason=%s", (long long)m->job, log_quote(sentence));
	html_clear(&m->text);
	html_put(&m->text, "E");
	html_put(&m->text, sentence);
	m->until = clock_seconds() + KEPT_SECONDS;
}

/* Return the place of one that is not there yet: a free place, or that of the one that would be forgotten first. */
static struct status_made *place_for(struct status_report *r)
{
	struct status_made *m = &r->made[0];

	for (size_t i = 1; i < STATUS_MADE; i++)
		if (m->job && (!r->made[i].job || r->made[i].until < m->until))
			m = &r->made[i];
	forget_made(m);
	return m;
}

static void start_report(struct status_report *r, const struct status *s, const struct job_view *v)
{
	const char *path = s->config->path;
	struct status_made *m = place_for(r);
	char ipc[16], job[24];
	char *argv[10] = {"tomonode", "report-page", "--ipc", ipc, NULL};
	int n = 4;
	struct err err = {0};
	int pair[2];

	m->job = v->id;
	r->until = clock_seconds() + PROCESS_SECONDS;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		fail_report(m, strerror(errno));
		return;
	}
	snprintf(ipc, sizeof(ipc), "%d", pair[1]);
	snprintf(job, sizeof(job), "%lld", (long long)v->id);
	if (path[0]) {
		argv[n++] = "-c";
		argv[n++] = (char *)path;
	}
	argv[n++] = job;
	argv[n++] = (char *)file_name(v->objects[0].file);
	if (spawn_start(argv, &pair[1], 1, &r->pid, &err) < 0) {
		close(pair[0]);
		fail_report(m, err.msg);
	} else {
		r->fd = pair[0];
		r->now = m;
	}
	close(pair[1]);
}

void status_report_receive(struct status_report *r)
{
	struct status_made *m = r->now;
	char bytes[16384];
	ssize_t n = -1;

	for (size_t i = 0; i < STATUS_MADE; i++)
		if (&r->made[i] != m && r->made[i].job && clock_seconds() > r->made[i].until)
			forget_made(&r->made[i]);
	if (!m)
		return;
	for (int i = 0; i < 64 && (n = recv(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0; i++)
		html_bytes(&m->text, bytes, (size_t)n);
	if (n == 0) {
		stop_process(r);
		m->until = clock_seconds() + KEPT_SECONDS;
		if (m->text.failed || m->text.n < 2)
			fail_report(m, "The process that makes it has ended without a result.");
	} else if (m->text.failed || clock_seconds() > r->until) {
		stop_process(r);
		fail_report(m, m->text.failed ? "It is too large." : "Making it took too long.");
	}
}

enum status_report_state status_report_get(struct status_report *r, const struct status *s, const struct job_view *v,
					   const char **ret_text, size_t *ret_n)
{
	struct status_made *m = NULL;

	status_report_receive(r);
	for (int twice = 0; twice < 2 && !m; twice++) {
		for (size_t i = 0; i < STATUS_MADE; i++)
			if (r->made[i].job == v->id)
				m = &r->made[i];
		if (!m && r->now) /* the process makes another one */
			return STATUS_REPORT_WAIT;
		if (!m)
			start_report(r, s, v);
	}
	if (m && m == r->now)
		return STATUS_REPORT_WAIT;
	if (!m || m->text.failed || m->text.n < 2)
		return STATUS_REPORT_NONE;
	*ret_text = m->text.text + 1;
	*ret_n = m->text.n - 1;
	return m->text.text[0] == 'R' ? STATUS_REPORT_READY : STATUS_REPORT_FAILED;
}
