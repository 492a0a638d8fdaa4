/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/list_grow.h"
#include "node/base/log.h"
#include "node/jobs/jobs_settled.h"
#include "node/process/spawn.h"
#include "node/status/status.h"

#define PROCESS_SECONDS 20.0

void status_names_begin(struct status_names *names)
{
	*names = (struct status_names){.fd = -1};
}

/* Return the index of the job in the list, or that at which it would be inserted. */
static size_t find_position(const struct status_names *names, int64_t job)
{
	size_t lo = 0, hi = names->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (names->list[mid].job < job)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct status_name *status_names_find(const struct status_names *names, int64_t job)
{
	size_t at = find_position(names, job);

	return at < names->n && names->list[at].job == job ? &names->list[at] : NULL;
}

/* Was it read from the image whose header the result has? */
static bool is_of_result(const struct status_name *one, const struct job_view *v)
{
	return !v->header || !strcmp(one->file, v->header);
}

/* The patient of the image whose header the result has; of the first image if no person chose one. */
static const struct status_name *find_read(const struct status_names *names, const struct job_view *v)
{
	const struct status_name *one = status_names_find(names, v->id);

	return one && is_of_result(one, v) ? one : NULL;
}

const struct status_name *status_names_of(const struct status_names *names, const struct job_view *v)
{
	return patients_are_mixed(v) ? NULL : find_read(names, v);
}

static int64_t header_number(int64_t job, size_t which)
{
	return -PATIENTS_NAMED_MAX * job - (int64_t)which;
}

const struct status_name *status_names_read(const struct status_names *names, int64_t job, size_t k)
{
	return status_names_find(names, k == 0 ? job : header_number(job, k - 1));
}

const struct status_name *status_names_each(const struct status_names *names, const struct job_view *v, size_t k)
{
	return k == 0 ? find_read(names, v) : patients_are_mixed(v) ? status_names_read(names, v->id, k) : NULL;
}

/* Return what was read from this file; NULL: nothing yet. */
static const struct status_name *find_header(const struct status_names *names, const struct job_view *v,
					     const struct patients_named *named, size_t which)
{
	const struct status_name *one = status_names_find(names, header_number(v->id, which));

	return one && !strcmp(one->file, named->list[which].file) ? one : NULL;
}

bool status_names_headers(const struct status_names *names, const struct job_view *v, const struct patients_named *named,
			  const struct status_name *ret[PATIENTS_NAMED_MAX])
{
	for (size_t i = 0; i < named->n; i++)
		if (!(ret[i] = find_header(names, v, named, i)))
			return false;
	return named->n > 0;
}

/* Without memory the name stays unknown. */
static void store_name(struct status_names *names, const struct status_name *one)
{
	size_t at = find_position(names, one->job);

	if (at < names->n && names->list[at].job == one->job) { /* of another file */
		names->list[at] = *one;
		return;
	}
	if (names->n == STATUS_NAMES_MAX) { /* the oldest case */
		names->n--;
		memmove(&names->list[0], &names->list[1], names->n * sizeof(names->list[0]));
	}
	if (!list_grow(&names->list, names->n, &names->capacity, sizeof(*names->list)))
		return;
	at = find_position(names, one->job);
	memmove(&names->list[at + 1], &names->list[at], (names->n - at) * sizeof(names->list[0]));
	names->list[at] = *one;
	names->n++;
}

/* Kill the process if it runs. The name of the case that it was reading stays unknown; those of the following cases are requested
 * again. */
static void stop_process(struct status_names *names)
{
	if (names->fd < 0)
		return;
	close(names->fd);
	names->fd = -1;
	kill(names->pid, SIGKILL);
	while (waitpid(names->pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < names->n_pending; i++)
		if (names->pending[i].job) {
			struct status_name none = {.job = names->pending[i].job};

			memcpy(none.file, names->pending[i].file, sizeof(none.file));
			log_event(LOG_WARNING, "name-not-read", "job=%lld", (long long)none.job);
			store_name(names, &none);
			break;
		}
	names->n_pending = 0;
}

void status_names_seen(const struct patients_named *named, const struct status_name *const *of, char ret[STATUS_SEEN_SIZE])
{
	static const char key[] = "what was seen";
	uint8_t mac[32] = {named->more};

	for (size_t i = 0; i < named->n; i++) { /* a file is of one image for ever */
		dicom_hmac_sha256(mac, sizeof(mac), named->list[i].file, strlen(named->list[i].file), mac);
		if (of)
			dicom_hmac_sha256(mac, sizeof(mac), of[i]->name, sizeof(*of[i]) - offsetof(struct status_name, name),
					  mac);
	}
	dicom_hmac_sha256(key, sizeof(key), mac, sizeof(mac), mac);
	for (int i = 0; i < (STATUS_SEEN_SIZE - 1) / 2; i++)
		snprintf(ret + 2 * i, 3, "%02x", mac[i]);
}

void status_names_end(struct status_names *names)
{
	names->n_pending = 0;
	stop_process(names);
	free(names->list);
	names->list = NULL;
	names->n = names->capacity = 0;
}

/* Receive a reply. A process that died without having read all requests is reported before its last replies. */
static ssize_t receive_one(int fd, struct status_name *ret)
{
	ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);

	return n < 0 && errno == ECONNRESET ? recv(fd, ret, sizeof(*ret), MSG_DONTWAIT) : n;
}

void status_names_receive(struct status_names *names)
{
	struct status_name one;
	ssize_t n;

	if (names->fd < 0)
		return;
	while ((n = receive_one(names->fd, &one)) == (ssize_t)sizeof(one)) {
		one.name[sizeof(one.name) - 1] = one.id[sizeof(one.id) - 1] = '\0';
		one.issuer[sizeof(one.issuer) - 1] = one.birth[sizeof(one.birth) - 1] = '\0';
		for (size_t i = 0; i < names->n_pending; i++)
			if (names->pending[i].job == one.job && one.job) {
				names->pending[i].job = 0;
				memcpy(one.file, names->pending[i].file, sizeof(one.file));
				store_name(names, &one);
			}
	}
	if (n >= 0 || (errno != EAGAIN && errno != EINTR) || clock_seconds() > names->until)
		stop_process(names);
}

static int copy_first(void *ctx, const struct instance_row *row, const char *detail)
{
	struct status_name_request *q = ctx;

	(void)detail;
	snprintf(q->file, sizeof(q->file), "%s", row->file);
	return 1;
}

static bool is_unread(const struct status_names *names, const struct job_view *v)
{
	return v->state != JOB_CLEANED && v->members.instances > 0 && !find_read(names, v);
}

/* The newest cases whose name is kept, among them those that are settled and have their images. */
struct newest {
	const struct status_names *names;
	const struct status *s;
	size_t at;		  /* of the jobs in memory those before it are still to be looked at */
	size_t left;		  /* number of cases that are still to be looked at */
	size_t unread;		  /* cases whose name can be read */
	size_t max;		  /* of the list */
	struct jobs_numbers jobs; /* those of them with the highest numbers */
	struct job_view settled;  /* what is known about the settled case that is looked at */
};

/* Look at those in memory with a number > after that are not recorded as settled. */
static void look_at_open(struct newest *x, int64_t after)
{
	for (; x->at > 0 && x->left > 0 && x->s->jobs.list[x->at - 1]->id > after; x->at--) {
		const struct job_view *v = x->s->jobs.list[x->at - 1];

		if (v->recorded)
			continue;
		x->left--;
		x->unread += is_unread(x->names, v);
		if (x->jobs.n < x->max)
			(void)jobs_numbers_add(&x->jobs, v->id);
	}
}

static int look_at_settled(void *ctx, const struct settled_row *row)
{
	struct newest *x = ctx;
	const struct job_view *v = jobs_in_memory(&x->s->jobs, row->job);
	char words[JOBS_WORDS_SIZE];
	const char *series;
	bool unread;

	look_at_open(x, row->job - 1);
	if (x->left == 0)
		return 1;
	if (v && !v->recorded)
		return 0; /* it was looked at */
	x->left--;
	jobs_settled_view(row, words, &x->settled, &series);
	unread = v ? is_unread(x->names, v) : row->state != JOB_CLEANED && !find_read(x->names, &x->settled);
	x->unread += unread;
	return unread && x->jobs.n < x->max ? jobs_numbers_add(&x->jobs, row->job) : 0;
}

/* Look at the newest cases, in the order in which names are kept. */
static void look_at_newest(struct newest *x)
{
	x->at = x->s->jobs.n;
	if (x->s->journal)
		(void)journal_each_settled(x->s->journal, SETTLED_BY_JOB, look_at_settled, x, NULL);
	look_at_open(x, 0);
}

size_t status_names_unread(const struct status_names *names, const struct status *s)
{
	struct newest x = {.names = names, .s = s, .left = STATUS_NAMES_MAX};

	look_at_newest(&x);
	return x.unread;
}

/* Add a request, if it has a place and is not there yet. */
static void add_question(struct status_names *names, const struct status_name_request *q)
{
	for (size_t i = 0; i < names->n_pending; i++)
		if (names->pending[i].job == q->job)
			return;
	if (names->n_pending == STATUS_NAMES_PENDING_MAX)
		return;
	names->pending[names->n_pending++] = *q;
}

/* The headers of the patients that a case is held for, if they are not known. */
static void collect_headers(struct status_names *names, const struct status *s, const struct job_view *v)
{
	struct patients_named named;

	if (!v->patients_differ || !patients_named(s->journal, &s->jobs, v, &named))
		return;
	for (size_t i = 0; i < named.n; i++) {
		struct status_name_request q = {.job = header_number(v->id, i)};

		memcpy(q.file, named.list[i].file, sizeof(q.file));
		if (!find_header(names, v, &named, i))
			add_question(names, &q);
	}
}

static void collect_question(struct status_names *names, const struct status *s, const struct job_view *v)
{
	struct status_name_request q = {.job = v->id};

	if (names->n_pending == STATUS_NAMES_PENDING_MAX)
		return;
	collect_headers(names, s, v);
	if (!is_unread(names, v))
		return;
	if (v->header)
		snprintf(q.file, sizeof(q.file), "%s", v->header);
	else
		journal_each_member(s->journal, v->id, copy_first, &q, NULL);
	if (q.file[0])
		add_question(names, &q);
}

static void collect_list(struct status_names *names, const struct status *s, const struct status_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->list[i].n && k < STATUS_EXAM_MAX; k++)
			collect_question(names, s, l->list[i].cases[k]);
}

static void collect_newest(struct status_names *names, const struct status *s)
{
	struct newest x = {.names = names, .s = s, .left = STATUS_NAMES_MAX, .max = s->jobs.n_open + STATUS_NAMES_PENDING_MAX};

	if (names->n_pending == STATUS_NAMES_PENDING_MAX)
		return;
	look_at_newest(&x);
	for (size_t i = 0; i < x.jobs.n && names->n_pending < STATUS_NAMES_PENDING_MAX; i++) {
		const struct job_view *v = jobs_find(&s->jobs, x.jobs.list[i]);

		if (v)
			collect_question(names, s, v);
	}
	free(x.jobs.list);
}

void status_names_request(struct status_names *names, const struct status *s)
{
	const char *path = s->config->path;
	char number[16];
	char *argv[8] = {"tomonode", "names", "--ipc", number, NULL};
	struct err err = {0};
	int pair[2];

	if (names->fd >= 0 || !s->journal)
		return;
	names->n_pending = 0;
	collect_list(names, s, &s->attention);
	collect_list(names, s, &s->work);
	collect_list(names, s, &s->done);
	collect_newest(names, s);
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
		if (send(names->fd, &names->pending[i], sizeof(names->pending[i]), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	shutdown(names->fd, SHUT_WR);
}
