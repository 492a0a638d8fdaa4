/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between manager and worker over a socket pair (SOCK_SEQPACKET). Both ends are the same program, so a message is a C
 * structure.
 *
 *	worker: COUNTED (for "auto" and "cuda"; then it ends), or READY, or REFUSED (then it ends)
 *	(a seat sends READY when a pilot is connected to it, see node/worker/cmd_seat.c)
 *	manager: JOB; worker: ALIVE from time to time, finally DONE, or BROKEN (then it ends)
 *
 * No decision about a job depends on a message: the outcome of a job is in the journal before DONE is sent.
 */
#ifndef TOMONODE_NODE_WORKER_IPC_H
#define TOMONODE_NODE_WORKER_IPC_H

#include <stdbool.h>
#include <stdint.h>

enum worker_message_kind {
	WORKER_COUNTED = 1, /* number: how many CUDA devices there are; text: bytes of the smallest one's memory, or the reason if
			      there is none */
	WORKER_READY,	    /* text: the device's name; of a worker also number: MiB of its memory, 0: unknown; of a seat also:
			       pilot, and job and attempt that the pilot still has */
	WORKER_REFUSED,	    /* the device cannot be opened or fails its self-test; text: the reason */
	WORKER_JOB,	    /* job, attempt; number: 1: another result of the same images follows */
	WORKER_ALIVE,	    /* job; of a pilot's worker also text: stage, number: progress in 1/1000 */
	WORKER_DONE,	    /* job; number: 1: the device computed the case, 0: the case was refused; of a pilot's worker: 0: the
			       outcome is in its file, else an errno, and text: why there is no outcome */
	WORKER_BROKEN,	    /* the device failed; job; text: its error */
	WORKER_FORGET, /* to a seat: the case is not needed: the pilot stops it; then DONE, or READY if it had reported the case
			*/
	WORKER_END,    /* to an idle seat: the pilot ends */
	WORKER_UNANSWERED, /* of a seat: its pilot did not stop a case that is not needed; pilot. Then the seat ends */
	WORKER_LEFT, /* of a seat: its pilot ended by itself or was removed: it no longer computes the case; job; text: why. Then
			the seat ends */
	WORKER_TURNED_AWAY, /* of a seat that waits: it refused a pilot; pilot; text: its address and why */
};

struct worker_message {
	enum worker_message_kind kind;
	int number;
	int64_t job, attempt; /* attempt: seq of the job's `started` event */
	char pilot[64];	      /* ID of the pilot */
	char text[300];
};

/* Create the socket pair, both ends close-on-exec; the caller clears that flag for the worker's end, [1]. -1: see errno. */
int worker_ipc_pair(int ret_fd[2]);
/* Send a message. false: the other end is closed, or, with wait false, its buffer is full. */
bool worker_ipc_send(int fd, enum worker_message_kind kind, int64_t job, int number, const char *text, bool wait);
bool worker_ipc_send_message(int fd, const struct worker_message *m, bool wait);
/* 1: a message was received; 0: none is available, or, with wait true, a signal interrupted; -1: the other end is closed. */
int worker_ipc_receive(int fd, struct worker_message *ret_message, bool wait);

#endif
