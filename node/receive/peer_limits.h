/* SPDX-License-Identifier: Apache-2.0 */
/* The listener's limits on senders (node/receive/limits.h), and the logging of refusals (node/base/refusal_log.h). `sender` is
 * the result of limits_sender_address(); now: s, clock_seconds(). */
#ifndef TOMONODE_NODE_PEER_LIMITS_H
#define TOMONODE_NODE_PEER_LIMITS_H

#include "node/base/refusal_log.h"
#include "node/receive/limits.h"

struct peer_limits;

int peer_limits_create(const struct config *config, struct peer_limits **ret_limits, struct err *err); /* config is borrowed */
struct peer_limits *peer_limits_free(struct peer_limits *s); /* takes NULL, returns NULL */
struct limits *peer_limits_table(struct peer_limits *s);     /* borrowed */

/* Return true if the sender is blocked: close its connection at once. The function counts the connection. */
bool peer_limits_is_blocked(struct peer_limits *s, const struct in6_addr *sender, double now);
/* Record an attempt that was refused or closed without a message. This may block the sender. */
void peer_limits_count_refusal(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Record that the listener closed a connection because it has too many. */
void peer_limits_count_closed(struct peer_limits *s, const struct in6_addr *sender, const char *reason, double now);
/* Return true if the end of a connection may have a log message of its own; if not, it is only counted. */
bool peer_limits_may_log(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Log the blocks that have ended and the counts of each full minute; with `last` also the counts of the present minute. */
void peer_limits_tick(struct peer_limits *s, double now, bool last);

#endif
