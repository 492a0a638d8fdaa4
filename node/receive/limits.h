/* What one sender may take of the node: bytes within a time, and attempts that are refused. Pure: time is an argument (s, on any
 * clock that does not go back), and nothing is logged here.
 *
 * - Bytes: a sender may be `limit` ahead of limit/window each second; beyond that it is told how long to wait. It is slowed down,
 *   never refused: a modality that sends a large exam loses nothing.
 * - Refusals: more than `peer_refusals` within `peer_window` shut an address out for `peer_block_time`. Attempts while it is shut
 *   out are counted, and do not prolong it.
 *
 * Configured peers are known by their index, others by what network_client_prefix() makes of their address: of IPv6 the /64,
 * within which anybody can change his address at will. Only an address that a peer is configured with (limits_sender()) is always
 * one of its own: what others in its network do does not shut it out.
 *
 * The table is finite, and who has many addresses must neither get rid of a record nor shut out others with it:
 * - A sender that is shut out keeps its place until its time is over. Of the others the one makes room that was seen longest ago:
 *   it loses a count that stood below the limit.
 * - While all places are taken by senders that are shut out, whoever else is refused is not counted: he is refused each time as
 *   before, and let in if he may. Bytes of those without a place count against one place that they share: they are slowed down.
 */
#ifndef TOMONODE_NODE_LIMITS_H
#define TOMONODE_NODE_LIMITS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/config/config.h"

#define LIMITS_ADDRESSES 4096

struct limits_who {
	int peer;		/* index of config->peers, or ADMISSION_UNKNOWN_PEER */
	struct in6_addr sender; /* limits_sender() */
};

struct limits;

int limits_create(const struct config *config, struct limits **ret_limits, struct err *err); /* config is borrowed */
struct limits *limits_free(struct limits *l);						     /* takes NULL, returns NULL */

/* Under what an address is counted. peers_own: a peer is configured with this very address. */
struct in6_addr limits_sender(const struct in6_addr *address, bool peers_own);
bool limits_same(const struct limits_who *a, const struct limits_who *b);
int limits_associations(const struct limits *l, const struct limits_who *who); /* at a time; 0: no limit */
bool limits_has_bytes(const struct limits *l, const struct limits_who *who);   /* is there a limit? */
/* n more bytes came: s to wait before more is read; 0: none. */
double limits_bytes(struct limits *l, const struct limits_who *who, uint64_t n, double now);

/* A connection of that sender: close it at once? */
bool limits_is_blocked(struct limits *l, const struct in6_addr *sender, double now);
/* Who only looks whether the port is open, as monitoring does once a second, is not to be shut out, who does it all the time is.
 */
#define LIMITS_SILENT 0.05 /* of a refused attempt */

/* An attempt of that sender was refused (weight 1), or said nothing; true: it is shut out from now on. */
bool limits_refused(struct limits *l, const struct in6_addr *sender, double weight, double now);
/* Each sender whose time is over, once, with the connections that were closed meanwhile. */
void limits_tick(struct limits *l, double now, void (*let_in)(void *ctx, const struct in6_addr *sender, unsigned long closed),
		 void *ctx);

#endif
