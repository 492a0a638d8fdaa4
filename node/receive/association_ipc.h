/* What an association's process asks its listener, which alone knows of all of them: whole messages over a socket pair of their
 * own (SOCK_SEQPACKET). The listener never waits for a process; a process waits for the answer a finite time, and goes without
 * it. Each question has a number that comes back with its answer: one that comes too late is dropped, never taken for the answer
 * to the next question.
 */
#ifndef TOMONODE_NODE_ASSOCIATION_IPC_H
#define TOMONODE_NODE_ASSOCIATION_IPC_H

#include <stdbool.h>
#include <stdint.h>

enum association_request_kind {
	ASSOCIATION_ADMIT = 1, /* peer: may this association begin? answered */
	ASSOCIATION_BYTES,     /* bytes came: how long shall I wait? answered */
	ASSOCIATION_MAY_LOG,   /* alert: may I tell of this end, in the log and the audit trail? answered */
	ASSOCIATION_REFUSED,   /* alert: I refused this attempt; not answered */
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
	uint64_t number; /* of the question; association_ipc_reply() sets it */
	bool yes;	 /* ASSOCIATION_ADMIT, ASSOCIATION_MAY_LOG */
	int limit;	 /* ... else: of associations at a time that there are already */
	bool counted;	 /* ... then: its bytes are limited, ask ASSOCIATION_BYTES */
	double wait;	 /* ASSOCIATION_BYTES: s */
};

/* ret_fd[0]: the listener's end. Both are closed over exec. -1: errno says why. */
int association_ipc_pair(int ret_fd[2]);

/* The process's side. One question at a time. */
struct association_ipc {
	int fd; /* -1: there is no listener, and no limits */
	uint64_t number;
};

/* false: no answer within `ms`. */
bool association_ipc_request(struct association_ipc *g, const struct association_request *q, int ms,
			     struct association_reply *ret_reply);
void association_ipc_notify(struct association_ipc *g, const struct association_request *q);

/* The listener's side: 1 a question, 0 none is there, -1 the process is gone. */
int association_ipc_receive(int fd, struct association_request *ret_request);
void association_ipc_reply(int fd, const struct association_request *q, const struct association_reply *a);

#endif
