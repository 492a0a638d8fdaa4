/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/process/spawn.h"
#include "node/status/status.h"

#define PROCESS_SECONDS 20.0

void status_names_begin(struct status_names *names)
{
	names->n = names->n_pending = 0;
	names->fd = -1;
	names->pid = 0;
}

const struct status_name *status_names_find(const struct status_names *names, int64_t job)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->list[i].job == job)
			return &names->list[i];
	return NULL;
}

static void store_name(struct status_names *names, const struct status_name *one)
{
	if (names->n == STATUS_NAMES_MAX) {
		memmove(&names->list[0], &names->list[1], (STATUS_NAMES_MAX - 1) * sizeof(names->list[0]));
		names->n--;
	}
	names->list[names->n++] = *one;
}

/* Kill the process if it runs. The name of the case that it was reading stays unknown; those of the following cases are requested
 * again. */
static void stop(struct status_names *names)
{
	if (names->fd < 0)
		return;
	close(names->fd);
	names->fd = -1;
	kill(names->pid, SIGKILL);
	while (waitpid(names->pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < names->n_pending; i++)
		if (names->pending[i]) {
			struct status_name none = {.job = names->pending[i]};

			log_event(LOG_WARNING, "name-not-read", "job=%lld", (long long)none.job);
			store_name(names, &none);
			break;
		}
	names->n_pending = 0;
}

void status_names_end(struct status_names *names)
{
	names->n_pending = 0;
	stop(names);
}

void status_names_receive(struct status_names *names)
{
	struct status_name one;
	ssize_t n;

	if (names->fd < 0)
		return;
	while ((n = recv(names->fd, &one, sizeof(one), MSG_DONTWAIT)) == (ssize_t)sizeof(one)) {
		one.name[sizeof(one.name) - 1] = one.id[sizeof(one.id) - 1] = '\0';
		for (size_t i = 0; i < names->n_pending; i++)
			if (names->pending[i] == one.job && one.job) {
				names->pending[i] = 0;
				store_name(names, &one);
			}
	}
	if (n >= 0 || (errno != EAGAIN && errno != EINTR) || clock_seconds() > names->until)
		stop(names);
}

struct first {
	struct status_name_request *q;
	bool found;
};

static int copy_first(void *ctx, const struct instance_row *row, const char *detail)
{
	struct first *f = ctx;

	(void)detail;
	snprintf(f->q->file, sizeof(f->q->file), "%s", row->file);
	f->found = true;
	return 1;
}

static void collect(struct status_names *names, const struct status *s, const struct status_list *l,
		    struct status_name_request *questions)
{
	for (size_t i = 0; i < l->n && names->n_pending < STATUS_NAMES_PENDING_MAX; i++) {
		const struct job_view *v = l->list[i];
		struct status_name_request q = {.job = v->id};
		struct first first = {.q = &q};

		if (v->state == JOB_CLEANED || v->members.instances == 0 || status_names_find(names, v->id))
			continue;
		journal_each_member(s->journal, v->id, copy_first, &first, NULL);
		if (!first.found)
			continue;
		questions[names->n_pending] = q;
		names->pending[names->n_pending++] = v->id;
	}
}

void status_names_request(struct status_names *names, const struct status *s)
{
	struct status_name_request questions[STATUS_NAMES_PENDING_MAX];
	const char *path = s->config->path;
	char number[16];
	char *argv[8] = {"tomonode", "names", "--ipc", number, NULL};
	struct err err = {0};
	int pair[2];

	if (names->fd >= 0 || !s->journal)
		return;
	names->n_pending = 0;
	collect(names, s, &s->attention, questions);
	collect(names, s, &s->work, questions);
	collect(names, s, &s->done, questions);
	if (names->n_pending == 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	snprintf(number, sizeof(number), "%d", pair[1]);
	if (path[0]) {
		argv[4] = "-c";
		argv[5] = (char *)path;
	}
	if (spawn_start(argv, &pair[1], 1, &names->pid, &err) < 0) {
		log_event(LOG_WARNING, "names-not-read", "reason=%s", log_quote(err.msg));
		close(pair[0]);
		close(pair[1]);
		return;
	}
	close(pair[1]);
	names->fd = pair[0];
	names->until = clock_seconds() + PROCESS_SECONDS;
	for (size_t i = 0; i < names->n_pending; i++)
		if (send(names->fd, &questions[i], sizeof(questions[i]), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	shutdown(names->fd, SHUT_WR);
}
