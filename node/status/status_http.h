/* The status page's HTTP: libmicrohttpd in one thread, behind limits of its own. It parses what strangers send and therefore may
 * do nothing: pages come over the channel (node/status/status_ipc.h) from the process that may.
 *
 * What it needs once status_http_run() is called, for whoever puts it into a sandbox: the two descriptors it is given, an epoll
 * descriptor, stderr or syslog's socket for its log, accept4, recv, send, shutdown, getsockname and the like on those, memory,
 * clocks, getrandom, signals. No file is opened, no connection made, no process or thread started.
 *
 * - One request a connection; it has HTTP_LIFE seconds from the connection to its end, fewer while many are open. 64 connections,
 *   8 KiB for request line and headers, 512 bytes of form.
 * - GET and HEAD read; POST acts, with the token of the page, from the page's own origin.
 * - Who asks for a name that is not ours is turned away (DNS rebinding).
 */
#ifndef TOMONODE_NODE_STATUS_HTTP_H
#define TOMONODE_NODE_STATUS_HTTP_H

#include <signal.h>

#include "kernels/err.h"

struct status_http_conf {
	int listen_fd;	  /* not blocking */
	int ipc_fd;	  /* of node/status/status_ipc.h */
	const char *host; /* status.host; "" none */
};

/* Until *stop is set (0) or the other end of the channel is gone (EPIPE). */
int status_http_run(const struct status_http_conf *conf, const volatile sig_atomic_t *stop, struct err *err);

#endif
