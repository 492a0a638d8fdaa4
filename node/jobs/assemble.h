/* SPDX-License-Identifier: Apache-2.0 */
/* Decide whether a case is complete. It is when it has as many instances as their headers announce. Pure: no clock, no files, no
 * journal.
 *
 * - Only the distinct instances and the numbers in their headers count, not their order or their association.
 * - Headers may give a wrong number, or none: a case with the number that the configuration gives for its system is complete
 *   after the quiet time.
 * - Another incomplete case to which no instance was added for the quiet time is held, also one whose headers give no number. A
 *   person may then request that it is reconstructed as it is.
 */
#ifndef TOMONODE_NODE_ASSEMBLE_H
#define TOMONODE_NODE_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

/* Facts about the member instances of a case. All zero: no members. */
struct assemble {
	long instances;	    /* number of distinct members */
	long frames;	    /* sum of their frames */
	long expected;	    /* number of instances of the complete case, from the headers; 0: not given */
	long other;	    /* a number in another header that differs from `expected`; 0: none */
	long usual;	    /* number of instances of a complete case according to the configuration; 0: unknown */
	double first, last; /* arrival of the first and of the last one, s since the epoch */
	double recorded;    /* `last` without assemble_clamp_time(): the same in each process */
	bool as_is;	    /* a person requested reconstruction of the present instances */
	char lacks[40];	    /* what the case lacks, as the header of its only instance says; "": not known */
};

enum assemble_verdict {
	ASSEMBLE_WAIT, /* decide again at `again`, or when an instance arrives */
	ASSEMBLE_COMPLETE,
	ASSEMBLE_HOLD, /* quiet time is over and the case is not complete */
};

struct assemble_decision {
	enum assemble_verdict verdict;
	double again;	  /* s since the epoch; with ASSEMBLE_WAIT */
	bool after_quiet; /* the verdict depends on the quiet time: wait while an instance is still arriving */
	char reason[200]; /* "25 of 25 instances", "12 of 25 instances after 60 s of quiet" */
};

/* Add an instance that is not yet a member. expected: number of instances of the case in its header; 0: not given. frames: of
 * this instance. Clears as_is, because the person's request was about fewer instances. */
void assemble_add(struct assemble *a, long expected, long frames, double received);

/* After assemble_add(): what a case with only this instance lacks; "": its header does not say it. */
void assemble_lacks(struct assemble *a, const char *text);

/* If the last arrival is later than now, set it to now: it was recorded before the clock was set back. */
void assemble_clamp_time(struct assemble *a, double now);

void assemble_decide(const struct assemble *a, double now, double quiet_time, struct assemble_decision *ret_answer);

#endif
