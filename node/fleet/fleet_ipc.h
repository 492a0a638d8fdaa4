/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the manager and the process that runs Slurm's commands (`tomonode cluster`), over a socket pair
 * (SOCK_SEQPACKET). Both ends are the same program, so a message is a C structure. The manager sends demands, whenever something
 * has changed, and the ids of pilots that did not answer a cancellation; the process sends reports and the ids of pilots that
 * should end. */
#ifndef TOMONODE_NODE_FLEET_IPC_H
#define TOMONODE_NODE_FLEET_IPC_H

#include "node/fleet/fleet.h"

struct fleet_demand {
	char unanswered[FLEET_ID_SIZE]; /* this pilot did not answer a cancellation; "": none, and the members below are set */
	int waiting;			/* cases that no device is free for */
	uint32_t n;
	struct fleet_seat seats[FLEET_MAX]; /* the connected pilots */
};

struct fleet_report {
	char end[FLEET_ID_SIZE]; /* ask this pilot to end; "": none, and the members below are set */
	enum fleet_controller state;
	char text[FLEET_TEXT_SIZE];
	struct fleet_counts counts;
	uint64_t submitted, requeued, started; /* as in struct fleet */
	double queued_seconds;
};

/* Send a message of `size` bytes. false: the other end is closed, or its buffer is full. */
bool fleet_ipc_send(int fd, const void *message, size_t size);
/* 1: a message of `size` bytes was received; 0: none is available; -1: the other end is closed. */
int fleet_ipc_receive(int fd, void *ret_message, size_t size);

#endif
