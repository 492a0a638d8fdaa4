/* SPDX-License-Identifier: Apache-2.0 */
/* Decide whether a case is complete: from the number of instances that the headers announce; without one the case is held after a
 * quiet time. Pure: no clock, no files, no journal.
 *
 * - Only the distinct instances and the numbers in their headers count, not their order or their association.
 * - A case whose headers give no number is never complete by quiet time: it is held, and a person may reconstruct it as it is.
 */
#ifndef TOMONODE_NODE_ASSEMBLE_H
#define TOMONODE_NODE_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

/* Facts about the members of a case. All zero: no members. */
struct assemble {
	long instances;	    /* distinct ones */
	long frames;	    /* of all instances together */
	long expected;	    /* number of instances of the complete case, from the headers; 0: not given */
	long other;	    /* a different number in another header; 0: none */
	double first, last; /* arrival of the first and of the last one, s since the epoch */
	bool as_is;	    /* a person requested reconstruction of the present instances */
};

enum assemble_verdict {
	ASSEMBLE_WAIT, /* decide again at `again`, or when an instance arrives */
	ASSEMBLE_COMPLETE,
	ASSEMBLE_HOLD, /* quiet time is over and the case is not complete */
};

struct assemble_answer {
	enum assemble_verdict verdict;
	double again;	  /* s since the epoch; with ASSEMBLE_WAIT */
	char reason[200]; /* reason: "25 of 25 instances", "12 of 25 instances after 60 s of quiet" */
};

/* Add a distinct instance. expected 0: not given in its header. Clears as_is, which was set for fewer instances. */
void assemble_add(struct assemble *a, long expected, long frames, double received);

/* Set a last arrival in the future to now: it was written before the clock was set back. */
void assemble_clamp_time(struct assemble *a, double now);

void assemble_decide(const struct assemble *a, double now, double quiet_time, struct assemble_answer *ret_answer);

#endif
