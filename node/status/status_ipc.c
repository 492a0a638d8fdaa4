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

bool status_ipc_request(int fd, const struct status_request *q, double seconds, struct status_reply *ret_answer)
{
	double deadline = clock_seconds() + seconds;
	struct status_request copy = *q;
	struct header h;
	char *bytes;

	if (!transfer_bytes(fd, &copy, sizeof(copy), true, deadline) || !transfer_bytes(fd, &h, sizeof(h), false, deadline) ||
	    h.n > STATUS_REPLY_MAX || (unsigned)h.type >= STATUS_TYPES)
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
