/* What an association's process asks its listener, which alone knows of all of them: whole messages over a socket pair of their
 * own (SOCK_SEQPACKET). The listener never waits for a process; a process waits for the answer a finite time, and goes without
 * it. Each question has a number that comes back with its answer: one that comes too late is dropped, never taken for the answer
 * to the next question.
 */
#ifndef TOMONODE_NODE_GATE_H
#define TOMONODE_NODE_GATE_H

#include <stdbool.h>
#include <stdint.h>

enum gate_kind {
	GATE_ADMIT = 1, /* peer: may this association begin? answered */
	GATE_BYTES,	/* bytes came: how long shall I wait? answered */
	GATE_TELL,	/* alert: may I tell of this end, in the log and the audit trail? answered */
	GATE_REFUSED,	/* alert: I refused this attempt; not answered */
};

#define GATE_ANSWER_MS 5000 /* a listener answers within milliseconds */

struct gate_question {
	enum gate_kind kind;
	uint64_t number; /* gate_ask() and gate_tell() set it */
	int peer;
	int alert; /* enum alerts_kind */
	uint64_t bytes;
};

struct gate_answer {
	uint64_t number; /* of the question; gate_reply() sets it */
	bool yes;	 /* GATE_ADMIT, GATE_TELL */
	int limit;	 /* ... else: of associations at a time that there are already */
	bool counted;	 /* ... then: its bytes are limited, ask GATE_BYTES */
	double wait;	 /* GATE_BYTES: s */
};

/* ret_fd[0]: the listener's end. Both are closed over exec. -1: errno says why. */
int gate_pair(int ret_fd[2]);

/* The process's side. One question at a time. */
struct gate {
	int fd; /* -1: there is no listener, and no limits */
	uint64_t number;
};

/* false: no answer within `ms`. */
bool gate_ask(struct gate *g, const struct gate_question *q, int ms, struct gate_answer *ret_answer);
void gate_tell(struct gate *g, const struct gate_question *q);

/* The listener's side: 1 a question, 0 none is there, -1 the process is gone. */
int gate_receive(int fd, struct gate_question *ret_question);
void gate_reply(int fd, const struct gate_question *q, const struct gate_answer *a);

#endif
