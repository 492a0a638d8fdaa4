/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that the node listens on. The manager owns them and leaves them open when a receiver ends, so that no connection to
 * an address is lost in a reload that does not change it. */
#ifndef TOMONODE_NODE_LISTEN_H
#define TOMONODE_NODE_LISTEN_H

#include "node/config/config.h"

struct listen_socket {
	struct listener_conf conf;
	int fd;
	int port; /* the port in use; differs from conf.port if that is 0 */
};

struct listen_sockets {
	size_t n;
	struct listen_socket list[LISTENERS_MAX];
};

/* Bind and listen. Returns the descriptor, or an error such as EADDRINUSE whose text names address and port. port 0: any free
 * port. *ret_port: the port in use. */
int listen_on(const char *bind, int port, int *ret_port, struct err *err);

/* Open all sockets of the configuration. Take over those of `old` (may be NULL) with the same address. On success the other
 * sockets of `old` are closed; on failure `old` is unchanged. */
int listen_open(const struct config *config, const struct listen_sockets *old, struct listen_sockets *ret_sockets,
		struct err *err);
void listen_close(struct listen_sockets *s);

#endif
