/* SPDX-License-Identifier: Apache-2.0 */
/* Limit the messages about refused senders in the log and the audit trail, so that nobody can fill a disk with them. Pure: time
 * is an argument (s, on any clock that never goes back).
 *
 * - At most REFUSAL_LOG_PER_SENDER attempts a minute of one sender are logged individually, and at most REFUSAL_LOG_PER_MINUTE of
 * all senders together, including messages that follow from them. Further attempts are counted, and their number is logged at the
 * end of the minute: nothing is omitted.
 * - The table of senders has a fixed size. Further senders are counted together.
 * - Hence at most REFUSAL_LOG_PER_MINUTE + REFUSAL_LOG_SENDERS + 1 messages a minute are written.
 */
#ifndef TOMONODE_NODE_REFUSAL_LOG_H
#define TOMONODE_NODE_REFUSAL_LOG_H

#include <netinet/in.h>
#include <stdbool.h>

#include "kernels/err.h"

#define REFUSAL_LOG_SECONDS 60.0
#define REFUSAL_LOG_PER_SENDER 30 /* more than the default of peer_refusals, after which a sender is blocked */
#define REFUSAL_LOG_PER_MINUTE 120
#define REFUSAL_LOG_SENDERS 64

enum refusal_kind {
	REFUSAL_REJECTED, /* the node rejected the sender's association request */
	REFUSAL_SILENT,	  /* the sender connected and closed the connection without a message */
};
#define REFUSAL_KINDS 2

struct refusal_log;

int refusal_log_create(struct refusal_log **ret_log, struct err *err);
struct refusal_log *refusal_log_free(struct refusal_log *a); /* takes NULL, returns NULL */

/* Record an attempt. true: log it individually; false: it is counted. */
bool refusal_log_may_write(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Reserve one of this minute's messages for another event that an unknown sender causes. false: the quota of this minute is used
 * up. */
bool refusal_log_take_quota(struct refusal_log *a, double now);
/* Count an attempt without logging it individually. */
void refusal_log_count(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Call write() with the counts of each full minute, with `last` also of the present minute. sender NULL: sum of the senders
 * without an entry. */
void refusal_log_tick(struct refusal_log *a, double now, bool last,
		      void (*write)(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS],
				    double seconds),
		      void *ctx);

#endif
