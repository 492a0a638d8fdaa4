/* SPDX-License-Identifier: Apache-2.0 */
/* What the receiver shows to the manager: a page of memory that both share, created before the fork. Only the receiver writes. */
#ifndef TOMONODE_NODE_RECEIVER_STATE_H
#define TOMONODE_NODE_RECEIVER_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "kernels/err.h"

struct receiver_state; /* one page */

/* Create the page; NULL: no memory. It is never freed: the node has one. */
struct receiver_state *receiver_state_create(struct err *err);
/* Forget what the last receiver wrote, before another one is forked. */
void receiver_state_begin(struct receiver_state *s, double clock);

/* For the receiver (s NULL: ignored). A sign of life; the reason why it cannot listen or hear ("": it can, or can again). */
void receiver_state_beat(struct receiver_state *s, double clock);
enum receiver_fault { RECEIVER_FAULT_TLS, RECEIVER_FAULT_DESCRIPTORS, RECEIVER_FAULT_WAIT, RECEIVER_FAULTS };
void receiver_state_fault(struct receiver_state *s, enum receiver_fault fault, const char *reason);

/* For the manager: time of the last sign of life, on clock_seconds(); a fault ("": none). */
double receiver_state_alive(const struct receiver_state *s);
void receiver_state_read_fault(const struct receiver_state *s, enum receiver_fault fault, char *ret_reason, size_t size);

#endif
