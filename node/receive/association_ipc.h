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

#include "node/jobs/node_problems.h"

enum association_request_kind {
	ASSOCIATION_ADMIT = 1, /* `peer`: may this association begin? The listener replies. */
	ASSOCIATION_BYTES, /* `bytes` received since the last request: how long to wait before reading more? The listener replies.
			    */
	ASSOCIATION_MAY_LOG, /* `refusal`: may the end of this association be logged and audited? The listener replies. */
	ASSOCIATION_REFUSED, /* `refusal`: this process refused an attempt. No reply. */
	ASSOCIATION_ENDED,   /* `ended`: without an object, or with a refused class. No reply. */
};

#define ASSOCIATION_REPLY_MS 5000 /* longest wait for a reply, ms; a working listener needs a few */

struct association_request {
	enum association_request_kind kind;
	uint64_t number; /* association_ipc_request() and association_ipc_notify() set it */
	int peer;	 /* index of the configured peer, or ADMISSION_UNKNOWN_PEER */
	int refusal;	 /* enum refusal_kind */
	uint64_t bytes;
	struct node_association ended;
};

struct association_reply {
	uint64_t number; /* of the request; association_ipc_reply() sets it */
	bool yes;	 /* ASSOCIATION_ADMIT, ASSOCIATION_MAY_LOG */
	int limit;	 /* ASSOCIATION_ADMIT, yes false: the limit of simultaneous associations that is reached */
	bool counted;	 /* ASSOCIATION_ADMIT, yes true: the sender's bytes are limited; send ASSOCIATION_BYTES while receiving */
	double wait;	 /* ASSOCIATION_BYTES: time to wait, s */
};

/* Create the socket pair. ret_fd[0] is the listener's end. Both are close-on-exec. -1: see errno. */
int association_ipc_pair(int ret_fd[2]);

/* The end of the association's process. Only one request at a time. */
struct association_ipc {
	int fd; /* -1: no listener, hence no limits */
	uint64_t number;
};

/* Send a request and wait for its reply. false: there was no reply within `ms` milliseconds. */
bool association_ipc_request(struct association_ipc *g, const struct association_request *q, int ms,
			     struct association_reply *ret_reply);
void association_ipc_notify(struct association_ipc *g, const struct association_request *q);

/* The listener's end. 1: a request was received; 0: none is available; -1: the process has ended. */
int association_ipc_receive(int fd, struct association_request *ret_request);
void association_ipc_reply(int fd, const struct association_request *q, const struct association_reply *a);

#endif
