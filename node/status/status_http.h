/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server of the status page: libmicrohttpd in one thread, with additional limits. It parses untrusted requests and
 * therefore runs without privileges: it requests the pages over a socket pair (node/status/status_ipc.h) from the process that
 * reads the journal.
 *
 * For its sandbox: after status_http_run() is called, it needs the two descriptors of its configuration, an epoll descriptor,
 * stderr or syslog's socket for its log; accept4, recv, send, shutdown, getsockname and the like on these; memory, clocks,
 * getrandom, signals. It opens no file, makes no connection and starts no process or thread.
 *
 * - One request per connection. A connection is closed after HTTP_LIFE seconds, or earlier while many are open. Limits: 64
 * connections, 8 KiB of request line and headers, 512 bytes of form.
 * - GET and HEAD change nothing; POST changes a job and needs the token of the page and an Origin header, if any, of the page's
 * own host.
 * - A request with a Host header of another name is refused (DNS rebinding).
 */
#ifndef TOMONODE_NODE_STATUS_HTTP_H
#define TOMONODE_NODE_STATUS_HTTP_H

#include <signal.h>

#include "kernels/err.h"
#include "node/config/config.h"

struct status_http_conf {
	int listen_fd;			  /* nonblocking */
	int ipc_fd;			  /* end of status_ipc_pair() */
	const struct status_conf *status; /* of the configuration: host, persons */
};

/* Serve until *stop is set (returns 0) or the other end of the socket pair is closed (EPIPE). While that end is slow, requests that
 * need it get 503 with Retry-After. */
int status_http_run(const struct status_http_conf *conf, const volatile sig_atomic_t *stop, struct err *err);

#endif
