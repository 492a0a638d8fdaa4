/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_look.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/process/spawn.h"
#include "node/report/look.h"
#include "node/status/status.h"
#include "node/status/status_report.h"

#define MAKE_SECONDS 60.0 /* longest time to make one: the first of a series reads its headers, or all of it for its window */
#define LOOK_IDLE 60.0
#define FAILED_SECONDS 60.0 /* until it is tried again */

int status_look_makers(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	return n < 1 ? 1 : n > LOOK_MAKERS ? LOOK_MAKERS : (int)n;
}

void status_look_begin(struct status_look *l, int makers)
{
	*l = (struct status_look){.makers = makers};
	for (int i = 0; i < LOOK_MAKERS; i++)
		l->maker[i].fd = -1;
}

static void stop_process(struct look_maker *p)
{
	if (p->fd < 0)
		return;
	close(p->fd);
	p->fd = -1;
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void forget_made(struct look_made *m)
{
	free(m->bytes);
	*m = (struct look_made){0};
}

void status_look_end(struct status_look *l)
{
	for (int i = 0; i < LOOK_MAKERS; i++)
		stop_process(&l->maker[i]);
	for (size_t i = 0; i < LOOK_MADE; i++)
		forget_made(&l->made[i]);
}

bool status_slices_find(const struct status *s, const struct job_view *v, const json_t *events, struct status_slices *ret)
{
	const json_t *detail = NULL, *e;
	const char *name, *kind;
	bool series;
	long voxels;
	size_t i;

	if (!status_has_report(s, v))
		return false;
	json_array_foreach(events, i, e)
	{
		name = json_string_value(json_object_get(e, "event"));
		if (name && !strcmp(name, "reconstructed"))
			detail = json_object_get(e, "detail");
	}
	kind = json_string_value(json_object_get(json_array_get(json_object_get(detail, "objects"), 0), "kind"));
	voxels = (long)json_integer_value(json_array_get(json_object_get(detail, "voxels"), 2));
	series = kind && !strcmp(kind, "slice"); /* each is an object; otherwise a frame of the first one */
	*ret = (struct status_slices){.total = series ? (long)v->n_objects : voxels};
	ret->n = ret->total < LOOK_STRIP ? (int)ret->total : LOOK_STRIP;
	if (ret->total == voxels) /* otherwise the objects are those of several images */
		ret->step = json_number_value(json_array_get(json_object_get(detail, "voxel_mm"), 2));
	return ret->n > 1;
}

/* ---- what is kept ---- */

static bool same_slice(const struct look_question *a, const struct look_question *b)
{
	return a->job == b->job && a->version == b->version && a->slice == b->slice;
}

static bool is_being_made(const struct status_look *l, const struct look_made *m)
{
	for (int i = 0; i < l->makers; i++)
		if (l->maker[i].now == m)
			return true;
	return false;
}

/* Forget what was not used for longest, until one more has a place. Those that are being made stay. */
static struct look_made *place_for(struct status_look *l)
{
	for (;;) {
		struct look_made *empty = NULL, *oldest = NULL;
		size_t bytes = LOOK_ONE_MAX;

		for (size_t i = 0; i < LOOK_MADE; i++) {
			struct look_made *m = &l->made[i];

			bytes += is_being_made(l, m) ? LOOK_ONE_MAX : m->head.n;
			if (!m->of.job)
				empty = m;
			else if (!is_being_made(l, m) && (!oldest || m->used < oldest->used))
				oldest = m;
		}
		if (empty && (bytes <= LOOK_BYTES || !oldest))
			return empty;
		forget_made(oldest);
	}
}

/* End what is being made with a sentence. */
static void fail_now(struct look_maker *p, const char *sentence)
{
	struct look_made *m = p->now;

	p->now = NULL;
	if (!m)
		return;
	log_event(LOG_WARNING, "slice-not-made", "job=%lld slice=%ld reason=%s", (long long)m->of.job, m->of.slice,
		  log_quote(sentence));
	free(m->bytes);
	m->bytes = strdup(sentence);
	m->head = (struct look_answer){.code = 503, .n = m->bytes ? strlen(sentence) : 0};
	if (!m->bytes)
		forget_made(m);
}

/* ---- the process ---- */

static bool start_process(struct look_maker *p, const struct status *s)
{
	const char *path = s->config->path;
	char ipc[16];
	char *argv[] = {"tomonode", "look", "--ipc", ipc, NULL, NULL, NULL};
	struct err err = {0};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	snprintf(ipc, sizeof(ipc), "%d", pair[1]);
	if (path[0]) {
		argv[4] = "-c";
		argv[5] = (char *)path;
	}
	if (spawn_start(argv, &pair[1], 1, &p->pid, &err) < 0) {
		log_event(LOG_WARNING, "look-not-started", "reason=%s", log_quote(err.msg));
		close(pair[0]);
	} else {
		p->fd = pair[0];
	}
	close(pair[1]);
	return p->fd >= 0;
}

/* Return a process that makes nothing; it may not run. NULL: all are at work. */
static struct look_maker *find_idle(struct status_look *l)
{
	for (int i = 0; i < l->makers; i++)
		if (!l->maker[i].now)
			return &l->maker[i];
	return NULL;
}

/* Ask a process for `now`. One that has ended since it was asked last is replaced by another one, once. */
static void ask_process(struct look_maker *p, const struct status *s)
{
	const struct look_question *q = &p->now->of;

	p->got = 0;
	p->until = clock_seconds() + MAKE_SECONDS;
	p->is_new = false;
	while (!p->is_new) {
		p->is_new = p->fd < 0;
		if (p->is_new && !start_process(p, s))
			break;
		if (send(p->fd, q, sizeof(*q), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*q))
			return;
		stop_process(p);
	}
	fail_now(p, "The process that makes it cannot be started.");
}

/* Have a slice made by a process that makes nothing. */
static void start_slice(struct status_look *l, struct look_maker *p, const struct status *s, const struct look_question *q)
{
	struct look_made *m = place_for(l);

	m->of = *q;
	m->used = clock_seconds();
	p->now = m;
	ask_process(p, s);
}

/* Take the next bytes of the answer. Returns as recv(); EMSGSIZE in errno: the answer is too large. */
static ssize_t take_bytes(struct look_maker *p)
{
	struct look_made *m = p->now;
	const size_t head = sizeof(m->head);
	ssize_t n;

	if (p->got < head) {
		n = recv(p->fd, (char *)&m->head + p->got, head - p->got, MSG_DONTWAIT);
		p->got += n > 0 ? (size_t)n : 0;
		if (n <= 0 || p->got < head)
			return n;
		m->bytes = m->head.n <= LOOK_ONE_MAX ? malloc(m->head.n + 1) : NULL;
		if (!m->bytes) {
			m->head.n = 0;
			errno = EMSGSIZE;
			return -1;
		}
		m->bytes[m->head.n] = '\0';
	}
	n = recv(p->fd, m->bytes + (p->got - head), m->head.n - (p->got - head), MSG_DONTWAIT);
	p->got += n > 0 ? (size_t)n : 0;
	return n;
}

static bool is_complete(const struct look_maker *p)
{
	return p->got >= sizeof(p->now->head) && p->got == sizeof(p->now->head) + p->now->head.n;
}

static void receive_answer(struct look_maker *p, const struct status *s)
{
	ssize_t n = 1;

	while (n > 0 && !is_complete(p))
		n = take_bytes(p);
	if (n < 0 && errno == EMSGSIZE) {
		stop_process(p);
		fail_now(p, "It is too large.");
	} else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* ECONNRESET: it had not read the question */
		stop_process(p);
		if (!p->is_new && !p->got)
			ask_process(p, s);
		else
			fail_now(p, "The process that makes it has ended without a result.");
	} else if (is_complete(p)) {
		if (p->now->head.code == 503)
			log_event(LOG_WARNING, "slice-not-made", "job=%lld slice=%ld reason=%s", (long long)p->now->of.job,
				  p->now->of.slice, log_quote(p->now->bytes));
		p->now = NULL;
		p->until = clock_seconds() + LOOK_IDLE;
	}
}

static void watch_process(struct look_maker *p, const struct status *s)
{
	char byte;

	if (p->now)
		receive_answer(p, s);
	else if (p->fd >= 0 && recv(p->fd, &byte, 1, MSG_DONTWAIT) >= 0) /* it has ended, or says what nobody asked for */
		stop_process(p);
	if (p->fd >= 0 && clock_seconds() > p->until) {
		stop_process(p);
		fail_now(p, "Making it took too long.");
	}
}

void status_look_receive(struct status_look *l, const struct status *s)
{
	struct look_question next = l->next;
	struct look_maker *idle;

	for (int i = 0; i < l->makers; i++)
		watch_process(&l->maker[i], s);
	idle = find_idle(l);
	if (!idle || !next.job)
		return;
	l->next = (struct look_question){0};
	start_slice(l, idle, s, &next);
}

const struct look_made *status_look_get(struct status_look *l, const struct status *s, const struct job_view *v, long slice)
{
	struct look_question q = {.job = v->id, .version = v->reconstructed, .slice = slice};
	double now = clock_seconds();
	struct look_maker *idle;

	snprintf(q.file, sizeof(q.file), "%s", file_name(v->objects[0].file));
	status_look_receive(l, s);
	for (size_t i = 0; i < LOOK_MADE; i++) {
		struct look_made *m = &l->made[i];

		if (!same_slice(&m->of, &q))
			continue;
		if (is_being_made(l, m))
			return NULL;
		if (m->head.code == 503 && now - m->used > FAILED_SECONDS) {
			forget_made(m);
			break;
		}
		m->used = m->head.code == 503 ? m->used : now;
		return m;
	}
	idle = find_idle(l);
	if (idle)
		start_slice(l, idle, s, &q);
	else
		l->next = q;
	return NULL;
}
