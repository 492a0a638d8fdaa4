/* The sockets that the node listens on. They live in the node's first process and outlast its receivers: a reload that keeps an
 * address loses no connection. */
#ifndef TOMONODE_NODE_LISTEN_H
#define TOMONODE_NODE_LISTEN_H

#include "node/config/config.h"

struct listen_socket {
	struct listener_conf conf;
	int fd;
	int port; /* where conf.port is 0: which it became */
};

struct listen_sockets {
	size_t n;
	struct listen_socket list[LISTENERS_MAX];
};

/* Bind and listen; answers the descriptor, or EADDRINUSE and the like with address and port in the sentence. port 0: any free
 * one, read back into *ret_port. */
int listen_on(const char *bind, int port, int *ret_port, struct err *err);

/* All that the configuration names; what `old` (NULL: nothing) has at the same address is taken over. On failure `old` is as it
 * was; on success what it had and nobody took over is closed. */
int listen_open(const struct config *config, const struct listen_sockets *old, struct listen_sockets *ret_sockets,
		struct err *err);
void listen_close(struct listen_sockets *s);

#endif
