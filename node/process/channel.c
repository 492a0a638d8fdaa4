#include "node/process/channel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int channel_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd);
}

bool channel_send(int fd, enum channel_kind kind, int64_t job, int number, const char *text, bool wait)
{
	struct channel_message m = {.kind = kind, .number = number, .job = job};
	ssize_t n;

	snprintf(m.text, sizeof(m.text), "%s", text ? text : "");
	do
		n = send(fd, &m, sizeof(m), MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(m);
}

int channel_receive(int fd, struct channel_message *ret_message, bool wait)
{
	struct channel_message m;
	ssize_t n = recv(fd, &m, sizeof(m), wait ? 0 : MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n != (ssize_t)sizeof(m))
		return -1;
	m.text[sizeof(m.text) - 1] = '\0';
	*ret_message = m;
	return 1;
}
