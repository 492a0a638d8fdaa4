#include "node/gate.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_MS 5000

int gate_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd);
}

bool gate_ask(int fd, const struct gate_question *q, struct gate_answer *ret_answer)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	struct gate_answer a;
	int n;

	if (fd < 0) {
		*ret_answer = (struct gate_answer){.yes = true};
		return true;
	}
	if (send(fd, q, sizeof(*q), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*q))
		return false;
	do
		n = poll(&pfd, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || recv(fd, &a, sizeof(a), MSG_DONTWAIT) != (ssize_t)sizeof(a))
		return false;
	*ret_answer = a;
	return true;
}

void gate_tell(int fd, const struct gate_question *q)
{
	if (fd >= 0)
		(void)!send(fd, q, sizeof(*q), MSG_NOSIGNAL | MSG_DONTWAIT);
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

void gate_reply(int fd, const struct gate_answer *a)
{
	(void)!send(fd, a, sizeof(*a), MSG_NOSIGNAL | MSG_DONTWAIT);
}
