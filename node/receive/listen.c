/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

/* What a person can do about an address that cannot be used. */
static const char *find_advice(int code)
{
	switch (code) {
	case EADDRINUSE:
		return ": another program listens there, which `ss -ltnp` names; stop it, or choose another port";
	case EADDRNOTAVAIL:
		return ": no interface of this machine has this address; `ip address` lists those that it has";
	case EACCES:
		return ": a port below 1024 needs the rights of root, or CAP_NET_BIND_SERVICE";
	default:
		return "";
	}
}

int listen_on(const char *bind_to, int port, int *ret_port, struct err *err)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list = NULL, *a;
	struct sockaddr_storage bound;
	socklen_t n = sizeof(bound);
	char service[16], found[16];
	int fd = -1, rc, code = EADDRNOTAVAIL, on = 1, off = 0;

	if (port < 0 || port > 65535)
		return err_set(err, EINVAL, "port %d, allowed 0..65535", port);
	snprintf(service, sizeof(service), "%d", port);
	rc = getaddrinfo(bind_to[0] ? bind_to : NULL, service, &hints, &list);
	if (rc != 0)
		return err_set(err, rc == EAI_AGAIN ? EADDRNOTAVAIL : EINVAL, "cannot listen on '%s': %s", bind_to,
			       gai_strerror(rc));
	for (a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			code = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (a->ai_family == AF_INET6) /* "::" then also accepts IPv4 */
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
			code = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		return err_set(err, code, "cannot listen on %s port %d: %s%s", bind_to, port, strerror(code), find_advice(code));
	if (getsockname(fd, (struct sockaddr *)&bound, &n) < 0 ||
	    getnameinfo((struct sockaddr *)&bound, n, NULL, 0, found, sizeof(found), NI_NUMERICSERV) != 0) {
		close(fd);
		return err_set(err, EIO, "cannot read the port number of the socket on %s", bind_to);
	}
	if (ret_port)
		*ret_port = atoi(found);
	return fd;
}

static bool same_address(const struct listener_conf *a, const struct listener_conf *b)
{
	return a->port == b->port && !strcmp(a->bind, b->bind);
}

int listen_open(const struct config *config, const struct listen_sockets *old, struct listen_sockets *ret_sockets,
		struct err *err)
{
	struct listener_conf wanted[LISTENERS_MAX];
	struct listen_sockets s = {.n = config_listeners(config, wanted)};
	bool kept[LISTENERS_MAX] = {false}, ours[LISTENERS_MAX] = {false}; /* ours: opened by this call */

	for (size_t i = 0; i < s.n; i++) {
		struct listen_socket *to = &s.list[i];

		to->conf = wanted[i];
		to->fd = -1;
		for (size_t k = 0; old && k < old->n && to->fd < 0; k++)
			if (!kept[k] && same_address(&old->list[k].conf, &to->conf)) {
				kept[k] = true;
				to->fd = old->list[k].fd;
				to->port = old->list[k].port;
			}
		if (to->fd >= 0)
			continue;
		to->fd = listen_on(to->conf.bind, to->conf.port, &to->port, err);
		ours[i] = to->fd >= 0;
		if (to->fd >= 0)
			continue;
		for (size_t k = 0; k < i; k++)
			if (ours[k])
				close(s.list[k].fd);
		return to->fd;
	}
	for (size_t k = 0; old && k < old->n; k++)
		if (!kept[k])
			close(old->list[k].fd);
	*ret_sockets = s;
	return 0;
}

void listen_close(struct listen_sockets *s)
{
	for (size_t i = 0; i < s->n; i++)
		close(s->list[i].fd);
	s->n = 0;
}
