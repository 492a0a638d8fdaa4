/* SPDX-License-Identifier: Apache-2.0 */
/* Limits per sender: bytes in a period, and refused attempts. Pure: time is an argument (s, on any clock that never goes back);
 * nothing is logged.
 *
 * - Bytes: a sender may send `limit` bytes at once and limit/window per second on average. Beyond that, limits_count_bytes()
 * returns how long to wait. So a sender is slowed down but never refused: a modality that sends a large exam loses no object.
 * - Refusals: more than `peer_refusals` within `peer_window` block an address for `peer_block_time`. Attempts while it is blocked
 * are counted and do not prolong the block.
 *
 * Configured peers are identified by their index, other senders by network_client_prefix() of their address: for IPv6 the /64
 * prefix, within which a host may change its address at any time. An address that is itself configured for a peer
 * (limits_sender_address()) is always counted separately, so that other hosts of its network cannot get it blocked.
 *
 * The table has a fixed size. A sender with many addresses can neither remove its own entry nor get others blocked:
 * - The entry of a blocked sender stays until the block ends. If there is no free entry, a new sender replaces the unblocked one
 * that was seen least recently, whose counts are lost; they were below the limit.
 * - While all entries belong to blocked senders, refusals of further senders are not counted; each attempt is still checked.
 * Bytes of all senders without an entry are counted in one shared entry: they are slowed down together.
 */
#ifndef TOMONODE_NODE_LIMITS_H
#define TOMONODE_NODE_LIMITS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/config/config.h"

#define LIMITS_ADDRESSES 4096

struct limits_key {
	int peer;		/* index of config->peers, or ADMISSION_UNKNOWN_PEER */
	struct in6_addr sender; /* limits_sender_address() */
};

struct limits;

/* Create the table of senders, empty: no bytes, no refusals, nobody blocked. The limits are read from `config` (node.peer_* and
 * the limits of each peer), which must outlive the table. */
int limits_create(const struct config *config, struct limits **ret_limits, struct err *err);
struct limits *limits_free(struct limits *l); /* accepts NULL, returns NULL */

/* Return the address under which a sender is counted: `address` itself if peers_own (a peer is configured with exactly this
 * address), else its network_client_prefix(). */
struct in6_addr limits_sender_address(const struct in6_addr *address, bool peers_own);
/* Return true if both are counted as the same sender. */
bool limits_is_same_sender(const struct limits_key *a, const struct limits_key *b);
int limits_max_associations(const struct limits *l,
			    const struct limits_key *who); /* limit of simultaneous associations; 0: none */
bool limits_has_byte_limit(const struct limits *l, const struct limits_key *who); /* true: its bytes are limited */
/* Record n more received bytes; return the time to wait before reading more, in s; 0: none. */
double limits_count_bytes(struct limits *l, const struct limits_key *who, uint64_t n, double now);

/* Return true if the sender is blocked: close its connection at once. */
bool limits_is_blocked(struct limits *l, const struct in6_addr *sender, double now);
/* Weight of a connection that the peer closed without a message; a refused attempt has weight 1. It is so small that monitoring
 * software that connects once a second is not blocked, but a sender that connects continuously is. */
#define LIMITS_SILENT 0.05

/* Record an attempt that was refused (weight 1) or closed without a message. true: the sender is blocked from now on. */
bool limits_count_refusal(struct limits *l, const struct in6_addr *sender, double weight, double now);
/* Call block_ended() once for each sender whose block has ended, with the number of connections that were closed during the
 * block. */
void limits_tick(struct limits *l, double now,
		 void (*block_ended)(void *ctx, const struct in6_addr *sender, unsigned long closed), void *ctx);

#endif
