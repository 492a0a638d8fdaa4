/* What is told, in the log and the audit trail, of those who are turned away, so that nobody can fill a disk with it. Pure: time
 * is an argument (s, on any clock that does not go back).
 *
 * - Of each sender REFUSAL_LOG_PER_SENDER attempts a minute are told one by one, of all senders together, and of
 *   what follows from them, REFUSAL_LOG_PER_MINUTE. What goes beyond is counted
 *   and told as one number when the minute is over: nothing is left out.
 * - The table is finite. Senders beyond it are counted together.
 * - So at most REFUSAL_LOG_PER_MINUTE + REFUSAL_LOG_SENDERS + 1 messages a minute are written, whoever calls.
 */
#ifndef TOMONODE_NODE_REFUSAL_LOG_H
#define TOMONODE_NODE_REFUSAL_LOG_H

#include <netinet/in.h>
#include <stdbool.h>

#include "kernels/err.h"

#define REFUSAL_LOG_SECONDS 60.0
#define REFUSAL_LOG_PER_SENDER 30 /* more than the refusals after which a sender is shut out by default */
#define REFUSAL_LOG_PER_MINUTE 120
#define REFUSAL_LOG_SENDERS 64

enum refusal_kind {
	REFUSAL_REJECTED, /* turned away */
	REFUSAL_SILENT,	  /* it came and went without a word */
};
#define REFUSAL_KINDS 2

struct refusal_log;

int refusal_log_create(struct refusal_log **ret_log, struct err *err);
struct refusal_log *refusal_log_free(struct refusal_log *a); /* takes NULL, returns NULL */

/* One more attempt: tell it? false: it is counted. */
bool refusal_log_may_write(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* Something else that strangers bring about, at most so often: tell it? */
bool refusal_log_take_quota(struct refusal_log *a, double now);
/* One more that is not to be told by itself. */
void refusal_log_count(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now);
/* What was counted in minutes that are over, or in all (`last`); sender NULL: of several that the table did not hold. */
void refusal_log_tick(struct refusal_log *a, double now, bool last,
		      void (*write)(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS],
				    double seconds),
		      void *ctx);

#endif
