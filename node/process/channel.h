/* What manager and worker say to each other: whole messages over a socket pair (SOCK_SEQPACKET). Both ends are this program, so a
 * message is a structure.
 *
 *	worker: COUNTED (of "auto" and "cuda": then it ends), or READY, or REFUSED (then it ends)
 *	manager: JOB; worker: ALIVE now and then, at last DONE, or BROKEN (then it ends)
 *
 * Nothing here is the truth: what became of a job is in the journal before DONE is said.
 */
#ifndef TOMONODE_NODE_CHANNEL_H
#define TOMONODE_NODE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

enum channel_kind {
	CHANNEL_COUNTED = 1, /* number: CUDA devices; text: why there is none */
	CHANNEL_READY,	     /* text: the device's name */
	CHANNEL_REFUSED,     /* the device cannot be opened or fails its self-test; text: why */
	CHANNEL_JOB,	     /* job */
	CHANNEL_ALIVE,	     /* job */
	CHANNEL_DONE,	     /* job; number: 1 where the device did the case, 0 where the case was refused */
	CHANNEL_BROKEN,	     /* job; text: what the device said */
};

struct channel_message {
	enum channel_kind kind;
	int number;
	int64_t job;
	char text[300];
};

/* Closed over exec, the worker's end ([1]) too: whoever starts it lifts that. -1: errno says why. */
int channel_pair(int ret_fd[2]);
/* false: the other end is gone, or (where it must not wait) does not read. */
bool channel_send(int fd, enum channel_kind kind, int64_t job, int number, const char *text, bool wait);
/* 1: a message; 0: none is there (or, waiting, a signal came); -1: the other end is gone. */
int channel_receive(int fd, struct channel_message *ret_message, bool wait);

#endif
