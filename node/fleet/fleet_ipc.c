/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fleet/fleet_ipc.h"

#include <errno.h>
#include <sys/socket.h>

bool fleet_ipc_send(int fd, const void *message, size_t size)
{
	ssize_t n;

	do
		n = send(fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

int fleet_ipc_receive(int fd, void *ret_message, size_t size)
{
	ssize_t n = recv(fd, ret_message, size, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return n == (ssize_t)size ? 1 : -1;
}
