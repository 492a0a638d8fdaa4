/* SPDX-License-Identifier: Apache-2.0 */
/* status_ipc.c - a request is one structure, a reply a header and its bytes. Every wait has a time limit. */
#include "node/status/status_ipc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kernels/clock.h"

struct header {
	int code;
	int64_t job;
	enum status_type type;
	size_t n;
};

int status_ipc_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fd);
}

/* Send (out) or receive all n bytes until `deadline`, on clock_seconds(). */
static bool transfer_bytes(int fd, void *bytes, size_t n, bool out, double deadline)
{
	char *at = bytes;

	while (n > 0) {
		struct pollfd p = {.fd = fd, .events = out ? POLLOUT : POLLIN};
		ssize_t done = out ? send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, n, MSG_DONTWAIT);
		double left = deadline - clock_seconds();

		if (done > 0) {
			at += done;
			n -= (size_t)done;
			continue;
		}
		if (done == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) || left <= 0)
			return false;
		poll(&p, 1, (int)(1000 * left) + 1);
	}
	return true;
}

/* Wait until `deadline` for the first byte of a reply. */
static bool reply_begins(int fd, double deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int found;

	do {
		double left = deadline - clock_seconds();

		found = poll(&p, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
	} while (found < 0 && errno == EINTR && clock_seconds() < deadline);
	return found > 0;
}

/* Receive a reply that has begun: the other end writes all of it without a pause. */
static bool receive_reply(int fd, double seconds, struct status_reply *ret_answer)
{
	double deadline = clock_seconds() + seconds;
	struct header h;
	char *bytes;

	if (!transfer_bytes(fd, &h, sizeof(h), false, deadline) || h.n > STATUS_REPLY_MAX || (unsigned)h.type >= STATUS_TYPES)
		return false;
	bytes = malloc(h.n + 1);
	if (!bytes)
		return false;
	if (!transfer_bytes(fd, bytes, h.n, false, deadline)) {
		free(bytes);
		return false;
	}
	bytes[h.n] = '\0';
	*ret_answer = (struct status_reply){.code = h.code, .job = h.job, .type = h.type, .n = h.n, .bytes = bytes};
	return true;
}

bool status_ipc_drop(int fd, double seconds, bool *late)
{
	struct status_reply a = {0};

	if (!*late || !reply_begins(fd, 0))
		return true;
	*late = false;
	if (!receive_reply(fd, seconds, &a))
		return false;
	free(a.bytes);
	return true;
}

int status_ipc_request(int fd, const struct status_request *q, double seconds, bool *late, struct status_reply *ret_answer)
{
	double deadline = clock_seconds() + seconds;
	struct status_request copy = *q;

	if (!status_ipc_drop(fd, seconds, late))
		return -1;
	if (*late)
		return 0;
	if (!transfer_bytes(fd, &copy, sizeof(copy), true, deadline))
		return -1;
	*late = !reply_begins(fd, deadline);
	return *late ? 0 : receive_reply(fd, seconds, ret_answer) ? 1 : -1;
}

static bool person_valid(const struct status_person *p)
{
	return (!p->name[0] || status_person_valid(p->name)) && p->role <= STATUS_ROLE_ADMINISTER;
}

int status_ipc_receive(int fd, struct status_request *ret_question)
{
	struct status_request q;
	ssize_t n = recv(fd, &q, sizeof(q), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	/* The HTTP process sends one structure with one call and waits: a partial one means that an attacker controls that
	 * process. */
	if (n != (ssize_t)sizeof(q) || q.page <= STATUS_NONE || q.page > STATUS_REFUSED || q.job < 0 || q.number < 0 ||
	    (unsigned)q.language >= LANGUAGES || !status_filter_valid(&q.filter) || !memchr(q.choice, '\0', sizeof(q.choice)) ||
	    !person_valid(&q.person))
		return -1;
	q.token[sizeof(q.token) - 1] = '\0';
	q.refused[sizeof(q.refused) - 1] = '\0';
	if (strspn(q.token, "0123456789abcdef") != sizeof(q.token) - 1)
		return -1;
	*ret_question = q;
	return 1;
}

bool status_ipc_reply(int fd, const struct status_reply *answer, double seconds)
{
	struct header h = {.code = answer->code, .job = answer->job, .type = answer->type, .n = answer->n};
	double deadline = clock_seconds() + seconds;

	return transfer_bytes(fd, &h, sizeof(h), true, deadline) && transfer_bytes(fd, answer->bytes, answer->n, true, deadline);
}
