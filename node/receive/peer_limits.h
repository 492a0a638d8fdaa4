/* What the listener knows of those who call: their limits (node/receive/limits.h), and what of it is told in the log and the
 * audit trail (node/receive/refusal_log.h). Senders are those of limits_sender(); now: s, clock_seconds(). */
#ifndef TOMONODE_NODE_PEER_LIMITS_H
#define TOMONODE_NODE_PEER_LIMITS_H

#include "node/receive/limits.h"
#include "node/receive/refusal_log.h"

struct peer_limits;

int peer_limits_create(const struct config *config, struct peer_limits **ret_limits, struct err *err); /* config is borrowed */
struct peer_limits *peer_limits_free(struct peer_limits *s); /* takes NULL, returns NULL */
struct limits *peer_limits_table(struct peer_limits *s);     /* borrowed */

/* Close its connection at once? Then it is counted. */
bool peer_limits_is_blocked(struct peer_limits *s, const struct in6_addr *sender, double now);
/* An attempt was refused, or said nothing: it may shut the sender out. */
void peer_limits_refused(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* The listener closed its connection for want of room. */
void peer_limits_closed(struct peer_limits *s, const struct in6_addr *sender, const char *reason, double now);
/* May a process tell of the end of a connection? If not, it is counted. */
bool peer_limits_may_log(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Whose time is over, and what was counted. last: all of it. */
void peer_limits_tick(struct peer_limits *s, double now, bool last);

#endif
