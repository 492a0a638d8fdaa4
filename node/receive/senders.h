/* What the listener knows of those who call: their limits (node/receive/limits.h), and what of it is told in the log and the
 * audit trail (node/receive/alerts.h). Senders are those of limits_sender(); now: s, clock_seconds(). */
#ifndef TOMONODE_NODE_SENDERS_H
#define TOMONODE_NODE_SENDERS_H

#include "node/receive/alerts.h"
#include "node/receive/limits.h"

struct senders;

int senders_create(const struct config *config, struct senders **ret_senders, struct err *err); /* config is borrowed */
struct senders *senders_free(struct senders *s);						/* takes NULL, returns NULL */
struct limits *senders_limits(struct senders *s);						/* borrowed */

/* Close its connection at once? Then it is counted. */
bool senders_shut_out(struct senders *s, const struct in6_addr *sender, double now);
/* An attempt was refused, or said nothing: it may shut the sender out. */
void senders_refused(struct senders *s, const struct in6_addr *sender, enum alerts_kind kind, double now);
/* The listener closed its connection for want of room. */
void senders_turned_away(struct senders *s, const struct in6_addr *sender, const char *reason, double now);
/* May a process tell of the end of a connection? If not, it is counted. */
bool senders_may_tell(struct senders *s, const struct in6_addr *sender, enum alerts_kind kind, double now);
/* Whose time is over, and what was counted. last: all of it. */
void senders_tick(struct senders *s, double now, bool last);

#endif
