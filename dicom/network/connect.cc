/* SPDX-License-Identifier: Apache-2.0 */
/* connect.cc - open TCP connections. The deadline is for the connection; name resolution has its own timeouts (resolv.conf). */
#include "dicom/network/connect.hh"

#include "dicom/network/deadline.hh"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tomonode
{

/* Connect to one address. Return 0 or an errno value. */
static int connect_address(const struct addrinfo *to, int64_t deadline, int *ret_fd)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int code = 0, ready;
	socklen_t n = sizeof(code);

	if (fd < 0)
		return errno;
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		code = errno;
	if (code == EINPROGRESS || code == EINTR) {
		ready = deadline_wait(fd, POLLOUT, deadline);
		if (ready == 0)
			code = ETIMEDOUT;
		else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
			code = errno;
	}
	if (code != 0)
		close(fd);
	else
		*ret_fd = fd;
	return code;
}

int connect_open(const char *host, int port, int timeout, const char *who, int *ret_fd, struct err *err)
{
	struct addrinfo hints, *list = nullptr;
	int64_t deadline = deadline_now() + (int64_t)timeout * 1000;
	int64_t n_left = 0;
	char service[16];
	int code, fd = -1;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV;
	snprintf(service, sizeof(service), "%d", port);
	code = getaddrinfo(host, service, &hints, &list);
	if (code != 0)
		return err_set(err, EHOSTUNREACH, "%s: the name '%s' cannot be resolved (%s)", who, host, gai_strerror(code));
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		n_left++;
	code = EHOSTUNREACH;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next, n_left--) {
		int64_t now = deadline_now();

		/* Divide the remaining time by the number of remaining addresses, so that an address without a response leaves
		 * time for the others. */
		code = connect_address(a, now < deadline ? now + (deadline - now) / n_left : now, &fd);
	}
	freeaddrinfo(list);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (code == ETIMEDOUT)
		return err_set(err, code, "%s: no connection within %d s", who, timeout);
	return err_set(err, code, "%s: cannot connect: %s", who, strerror(code));
}

int connect_placeholder(int *ret_fd, int *ret_port, struct err *err)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), code;

	memset(&a, 0, sizeof(a));
	a.sin_family = AF_INET;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, reinterpret_cast<struct sockaddr *>(&a), n) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, reinterpret_cast<struct sockaddr *>(&a), &n) < 0) {
		code = errno;
		if (fd >= 0)
			close(fd);
		return err_set(err, code, "a port on 127.0.0.1: %s", strerror(code));
	}
	*ret_fd = fd;
	*ret_port = ntohs(a.sin_port);
	return 0;
}

} // namespace tomonode
