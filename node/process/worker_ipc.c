/* SPDX-License-Identifier: Apache-2.0 */
#include "node/process/worker_ipc.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int worker_ipc_pair(int ret_fd[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fd);
}

bool worker_ipc_send(int fd, enum worker_message_kind kind, int64_t job, int number, const char *text, bool wait)
{
	struct worker_message m = {.kind = kind, .number = number, .job = job};

	snprintf(m.text, sizeof(m.text), "%s", text ? text : "");
	return worker_ipc_send_message(fd, &m, wait);
}

bool worker_ipc_send_message(int fd, const struct worker_message *m, bool wait)
{
	ssize_t n;

	do
		n = send(fd, m, sizeof(*m), MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*m);
}

int worker_ipc_receive(int fd, struct worker_message *ret_message, bool wait)
{
	struct worker_message m;
	ssize_t n = recv(fd, &m, sizeof(m), wait ? 0 : MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n != (ssize_t)sizeof(m))
		return -1;
	m.text[sizeof(m.text) - 1] = m.pilot[sizeof(m.pilot) - 1] = '\0';
	*ret_message = m;
	return 1;
}
