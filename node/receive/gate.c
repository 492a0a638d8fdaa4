#include "node/receive/gate.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "kernels/clock.h"

int gate_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd);
}

static bool send_question(struct gate *g, const struct gate_question *q)
{
	struct gate_question numbered = *q;

	numbered.number = ++g->number;
	return send(g->fd, &numbered, sizeof(numbered), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(numbered);
}

bool gate_ask(struct gate *g, const struct gate_question *q, int ms, struct gate_answer *ret_answer)
{
	double deadline = clock_seconds() + 1e-3 * ms;

	if (g->fd < 0) {
		*ret_answer = (struct gate_answer){.yes = true};
		return true;
	}
	if (!send_question(g, q))
		return false;
	for (;;) {
		struct pollfd pfd = {.fd = g->fd, .events = POLLIN};
		double left = deadline - clock_seconds();
		struct gate_answer a;
		int n = poll(&pfd, 1, left > 0 ? (int)(1e3 * left) + 1 : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || recv(g->fd, &a, sizeof(a), MSG_DONTWAIT) != (ssize_t)sizeof(a))
			return false;
		if (a.number != g->number)
			continue; /* to a question that we gave up */
		*ret_answer = a;
		return true;
	}
}

void gate_tell(struct gate *g, const struct gate_question *q)
{
	if (g->fd >= 0)
		(void)send_question(g, q);
}

int gate_receive(int fd, struct gate_question *ret_question)
{
	struct gate_question q;
	ssize_t n = recv(fd, &q, sizeof(q), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n != (ssize_t)sizeof(q))
		return -1;
	*ret_question = q;
	return 1;
}

void gate_reply(int fd, const struct gate_question *q, const struct gate_answer *a)
{
	struct gate_answer numbered = *a;

	numbered.number = q->number;
	(void)!send(fd, &numbered, sizeof(numbered), MSG_NOSIGNAL | MSG_DONTWAIT);
}
