/* SPDX-License-Identifier: Apache-2.0 */
/* What the receiver shows to the manager: memory that both share, created before the fork. Only receivers write. */
#ifndef TOMONODE_NODE_RECEIVER_STATE_H
#define TOMONODE_NODE_RECEIVER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "node/jobs/node_problems.h"

struct receiver_state;

/* Create it; NULL: no memory. It is never freed: the node has one. */
struct receiver_state *receiver_state_create(struct err *err);
/* Forget what the last receiver wrote, but for the associations, before another one is forked. */
void receiver_state_begin(struct receiver_state *s, double clock);

/* For the receiver, before its first fork: the processes of associations do not get the memory. */
void receiver_state_keep(struct receiver_state *s);
/* For the receiver (s NULL: ignored). A sign of life; the reason why it cannot listen or hear ("": it can, or can again). */
void receiver_state_beat(struct receiver_state *s, double clock);
enum receiver_fault { RECEIVER_FAULT_TLS, RECEIVER_FAULT_DESCRIPTORS, RECEIVER_FAULT_FULL, RECEIVER_FAULT_WAIT, RECEIVER_FAULTS };
void receiver_state_fault(struct receiver_state *s, enum receiver_fault fault, const char *reason);
/* When connections find no place, with time (s) as an argument. Begin with zeros. */
struct receiver_places {
	double full_since;		  /* when the last place was taken; 0: there is a free one */
	double refused_since, refused_at; /* when connections began to find no place, and when one did last */
};
/* A look at the places. true: RECEIVER_FAULT_FULL has ended: one is free, and for 10 s no connection found none. */
bool receiver_places_look(struct receiver_places *p, bool full, double now);
/* A connection finds no place. true: this is a fault: none has become free for 3 s, or others did not for so long, one after the
 * other. */
bool receiver_places_refuse(struct receiver_places *p, double now);
/* Record an association that ended without an object at `now`, s since the epoch. Several receivers may do this. It replaces the
 * oldest entry if the table is full. ended: `last` and `count` are not used, and the texts need not be terminated, because they
 * come from a process that has parsed a peer's bytes. */
void receiver_state_add_association(struct receiver_state *s, const struct node_association *ended, double now);

/* For the manager: time of the last sign of life, on clock_seconds(); a fault ("": none). */
double receiver_state_alive(const struct receiver_state *s);
void receiver_state_read_fault(const struct receiver_state *s, enum receiver_fault fault, char *ret_reason, size_t size);
/* Copy the associations, the newest first. false: a receiver is changing them, or was stopped while it did: nothing is copied. */
bool receiver_state_read_associations(struct receiver_state *s, struct node_association ret[NODE_ASSOCIATIONS_MAX],
				      size_t *ret_n);

#endif
