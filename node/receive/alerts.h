/* What is told, in the log and the audit trail, of those who are turned away, so that nobody can fill a disk with it. Pure: time
 * is an argument (s, on any clock that does not go back).
 *
 * - Of each sender ALERTS_EACH attempts a minute are told one by one, of all senders together, and of
 *   what follows from them, ALERTS_ALL. What goes beyond is counted
 *   and told as one number when the minute is over: nothing is left out.
 * - The table is finite. Senders beyond it are counted together.
 * - So at most ALERTS_ALL + ALERTS_SENDERS + 1 messages a minute are written, whoever calls.
 */
#ifndef TOMONODE_NODE_ALERTS_H
#define TOMONODE_NODE_ALERTS_H

#include <netinet/in.h>
#include <stdbool.h>

#include "kernels/err.h"

#define ALERTS_SECONDS 60.0
#define ALERTS_EACH 30 /* more than the refusals after which a sender is shut out by default */
#define ALERTS_ALL 120
#define ALERTS_SENDERS 64

enum alerts_kind {
	ALERTS_REFUSED, /* turned away */
	ALERTS_SILENT,	/* it came and went without a word */
};
#define ALERTS_KINDS 2

struct alerts;

int alerts_create(struct alerts **ret_alerts, struct err *err);
struct alerts *alerts_free(struct alerts *a); /* takes NULL, returns NULL */

/* One more attempt: tell it? false: it is counted. */
bool alerts_note(struct alerts *a, const struct in6_addr *sender, enum alerts_kind kind, double now);
/* Something else that strangers bring about, at most so often: tell it? */
bool alerts_room(struct alerts *a, double now);
/* One more that is not to be told by itself. */
void alerts_count(struct alerts *a, const struct in6_addr *sender, enum alerts_kind kind, double now);
/* What was counted in minutes that are over, or in all (`last`); sender NULL: of several that the table did not hold. */
void alerts_tick(struct alerts *a, double now, bool last,
		 void (*tell)(void *ctx, const struct in6_addr *sender, const unsigned long count[ALERTS_KINDS], double seconds),
		 void *ctx);

#endif
