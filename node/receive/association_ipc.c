/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/association_ipc.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "kernels/clock.h"

int association_ipc_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd);
}

static bool send_question(struct association_ipc *g, const struct association_request *q)
{
	struct association_request numbered = *q;

	numbered.number = ++g->number;
	return send(g->fd, &numbered, sizeof(numbered), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(numbered);
}

bool association_ipc_request(struct association_ipc *g, const struct association_request *q, int ms,
			     struct association_reply *ret_reply)
{
	double deadline = clock_seconds() + 1e-3 * ms;

	if (g->fd < 0) {
		*ret_reply = (struct association_reply){.yes = true};
		return true;
	}
	if (!send_question(g, q))
		return false;
	for (;;) {
		struct pollfd pfd = {.fd = g->fd, .events = POLLIN};
		double left = deadline - clock_seconds();
		struct association_reply a;
		int n = poll(&pfd, 1, left > 0 ? (int)(1e3 * left) + 1 : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || recv(g->fd, &a, sizeof(a), MSG_DONTWAIT) != (ssize_t)sizeof(a))
			return false;
		if (a.number != g->number)
			continue; /* a late reply to an earlier request, which is no longer waited for */
		*ret_reply = a;
		return true;
	}
}

void association_ipc_notify(struct association_ipc *g, const struct association_request *q)
{
	if (g->fd >= 0)
		(void)send_question(g, q);
}

int association_ipc_receive(int fd, struct association_request *ret_request)
{
	struct association_request q;
	ssize_t n = recv(fd, &q, sizeof(q), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n != (ssize_t)sizeof(q))
		return -1;
	*ret_request = q;
	return 1;
}

void association_ipc_reply(int fd, const struct association_request *q, const struct association_reply *a)
{
	struct association_reply numbered = *a;

	numbered.number = q->number;
	(void)!send(fd, &numbered, sizeof(numbered), MSG_NOSIGNAL | MSG_DONTWAIT);
}
