/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of an association's process to its listener, the only process that knows all associations. Messages go over a socket
 * pair of each association (SOCK_SEQPACKET). The listener never waits for a process. A process waits for a reply for a limited
 * time and continues without it. Each request has a number, which its reply repeats, so that a late reply is dropped and never
 * taken for the reply to the next request.
 */
#ifndef TOMONODE_NODE_ASSOCIATION_IPC_H
#define TOMONODE_NODE_ASSOCIATION_IPC_H

#include <stdbool.h>
#include <stdint.h>

enum association_request_kind {
	ASSOCIATION_ADMIT = 1, /* with `peer`: may this association begin? has a reply */
	ASSOCIATION_BYTES,     /* with `bytes`, received since the last request: how long to wait? has a reply */
	ASSOCIATION_MAY_LOG,   /* with `refusal`: may the end of this association be logged and audited? has a reply */
	ASSOCIATION_REFUSED,   /* with `refusal`: this process refused an attempt; has no reply */
};

#define ASSOCIATION_REPLY_MS 5000 /* a listener answers within milliseconds */

struct association_request {
	enum association_request_kind kind;
	uint64_t number; /* association_ipc_request() and association_ipc_notify() set it */
	int peer;
	int refusal; /* enum refusal_kind */
	uint64_t bytes;
};

struct association_reply {
	uint64_t number; /* of the request; association_ipc_reply() sets it */
	bool yes;	 /* ASSOCIATION_ADMIT, ASSOCIATION_MAY_LOG */
	int limit;	 /* ASSOCIATION_ADMIT, yes false: the limit of simultaneous associations that is reached */
	bool counted;	 /* ASSOCIATION_ADMIT, yes true: its bytes are limited; send ASSOCIATION_BYTES */
	double wait;	 /* ASSOCIATION_BYTES: time to wait, s */
};

/* Create the socket pair. ret_fd[0] is the listener's end. Both are close-on-exec. -1: see errno. */
int association_ipc_pair(int ret_fd[2]);

/* The process's end. Only one request at a time. */
struct association_ipc {
	int fd; /* -1: no listener, hence no limits */
	uint64_t number;
};

/* Send a request and wait for its reply. false: no reply within `ms` milliseconds. */
bool association_ipc_request(struct association_ipc *g, const struct association_request *q, int ms,
			     struct association_reply *ret_reply);
void association_ipc_notify(struct association_ipc *g, const struct association_request *q);

/* The listener's end. 1: a request was received; 0: none is available; -1: the process has ended. */
int association_ipc_receive(int fd, struct association_request *ret_request);
void association_ipc_reply(int fd, const struct association_request *q, const struct association_reply *a);

#endif
