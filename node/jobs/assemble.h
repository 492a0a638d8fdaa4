/* Is a case complete? By content first; without it, after quiet time, held. A pure function: no clock, no files, no journal.
 *
 * - Order, association and parallelism do not matter: only which distinct instances there are and what their headers expect.
 * - A case whose headers say no number is never taken for complete by silence: it is held, and a person may take it as it is.
 */
#ifndef TOMONODE_NODE_ASSEMBLE_H
#define TOMONODE_NODE_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

/* What is known of a case's members. All zero: none yet. */
struct assemble {
	long instances;	    /* distinct ones */
	long frames;	    /* in all of them together */
	long expected;	    /* instances that make it complete, as the headers say; 0: none says */
	long other;	    /* another number that another header says; 0: they agree */
	double first, last; /* arrival of the first and of the last one, s since the epoch */
	bool as_is;	    /* a person said: take what there is */
};

enum assemble_verdict {
	ASSEMBLE_WAIT, /* look again at `again`, or when something comes */
	ASSEMBLE_COMPLETE,
	ASSEMBLE_HOLD, /* quiet, and not complete */
};

struct assemble_answer {
	enum assemble_verdict verdict;
	double again;	  /* s since the epoch; with ASSEMBLE_WAIT */
	char reason[200]; /* why: "25 of 25 instances", "12 of 25 instances after 60 s of quiet" */
};

/* Another distinct instance. expected 0: its header does not say. Takes back what a person said about fewer. */
void assemble_add(struct assemble *a, long expected, long frames, double received);

/* A last arrival in the future was written before the clock was set back: it counts as now, so that quiet time begins. */
void assemble_clamp_time(struct assemble *a, double now);

void assemble_decide(const struct assemble *a, double now, double quiet_time, struct assemble_answer *ret_answer);

#endif
