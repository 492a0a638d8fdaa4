/* What manager and worker say to each other: whole messages over a socket pair (SOCK_SEQPACKET). Both ends are this program, so a
 * message is a structure.
 *
 *	worker: COUNTED (of "auto" and "cuda": then it ends), or READY, or REFUSED (then it ends)
 *	manager: JOB; worker: ALIVE now and then, at last DONE, or BROKEN (then it ends)
 *
 * Nothing here is the truth: what became of a job is in the journal before DONE is said.
 */
#ifndef TOMONODE_NODE_WORKER_IPC_H
#define TOMONODE_NODE_WORKER_IPC_H

#include <stdbool.h>
#include <stdint.h>

enum worker_message_kind {
	WORKER_COUNTED = 1, /* number: CUDA devices; text: why there is none */
	WORKER_READY,	    /* text: the device's name */
	WORKER_REFUSED,	    /* the device cannot be opened or fails its self-test; text: why */
	WORKER_JOB,	    /* job */
	WORKER_ALIVE,	    /* job */
	WORKER_DONE,	    /* job; number: 1 where the device did the case, 0 where the case was refused */
	WORKER_BROKEN,	    /* job; text: what the device said */
};

struct worker_message {
	enum worker_message_kind kind;
	int number;
	int64_t job;
	char text[300];
};

/* Closed over exec, the worker's end ([1]) too: whoever starts it lifts that. -1: errno says why. */
int worker_ipc_pair(int ret_fd[2]);
/* false: the other end is gone, or (where it must not wait) does not read. */
bool worker_ipc_send(int fd, enum worker_message_kind kind, int64_t job, int number, const char *text, bool wait);
/* 1: a message; 0: none is there (or, waiting, a signal came); -1: the other end is gone. */
int worker_ipc_receive(int fd, struct worker_message *ret_message, bool wait);

#endif
