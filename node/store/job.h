/* A job's life: one case (a view of an exam) from its first instance to the last destination.
 *
 * Pure functions: no time, no files, no journal. The state is never stored, always replayed from the events; an event that does
 * not fit answers JOB_IMPOSSIBLE, and the node quarantines that job and goes on.
 */
#ifndef TOMONODE_NODE_JOB_H
#define TOMONODE_NODE_JOB_H

enum job_state {
	JOB_NONE,	/* before its first event */
	JOB_COLLECTING, /* instances arrive */
	JOB_HELD,	/* incomplete, no profile, refused data: waits for a person or for new instances */
	JOB_READY,	/* complete: waits for a worker */
	JOB_RUNNING,
	JOB_RECONSTRUCTED, /* the result lies in the outbox: deliveries are due */
	JOB_STORED,	   /* every destination has it, but one has not yet committed itself to keep it */
	JOB_DELIVERED,	   /* every destination has it, and has committed itself where it is asked to */
	JOB_DEAD_LETTER,   /* a destination refused for good; the others are done */
	JOB_FAILED,	   /* reconstruction failed for good */
	JOB_CANCELLED,
	JOB_CLEANED,	/* retention removed its files */
	JOB_IMPOSSIBLE, /* the events do not fit: quarantined */
};

enum job_event {
	EVENT_OPENED,		     /* case key, kind */
	EVENT_INSTANCE,		     /* another instance belongs to it */
	EVENT_HELD,		     /* reason */
	EVENT_COMPLETE,		     /* what made it complete; protocol, destinations */
	EVENT_STARTED,		     /* device, attempt */
	EVENT_INTERRUPTED,	     /* the worker went away with its node: start again, not counted as a failure */
	EVENT_CRASHED,		     /* the worker died or failed in a way that may pass: reason */
	EVENT_RECONSTRUCTED,	     /* outbox file, SOP instance UID, seconds per stage */
	EVENT_RESULT_LOST,	     /* what lies in the outbox is not what was made, or is gone: make it again; reason */
	EVENT_FAILED,		     /* reason */
	EVENT_SEND_FAILED,	     /* destination, status or reason, when next: transient */
	EVENT_SENT,		     /* destination, status */
	EVENT_SEND_REFUSED,	     /* destination, status: permanent */
	EVENT_FALLBACK,		     /* destination, and the one that gets the result in its place; reason */
	EVENT_STORED,		     /* every destination has it: commitments are awaited */
	EVENT_COMMIT_REQUESTED,	     /* destination, transaction: before the request goes out */
	EVENT_COMMIT_ACCEPTED,	     /* the peer has the request: until when its report is waited for */
	EVENT_COMMIT_REQUEST_FAILED, /* the request failed: status or reason, when next */
	EVENT_COMMITTED,	     /* destination, transaction, objects: the peer answers for them */
	EVENT_COMMIT_FAILED,	     /* likewise: it does not, or never said so: they are sent again, then it is asked again */
	EVENT_COMMIT_REFUSED,	     /* given up: the dead letter */
	EVENT_DELIVERED,	     /* every destination has it, committed where that is asked for */
	EVENT_DEAD_LETTER,	     /* every destination has it or refused it */
	EVENT_PRIORITY,		     /* by a person: before or after other cases */
	EVENT_RETRY,		     /* by a person */
	EVENT_CANCEL,		     /* by a person */
	EVENT_CLEANED,		     /* files removed by retention */
};

enum job_state job_next(enum job_state state, enum job_event event);

const char *job_state_name(enum job_state state); /* "collecting", ... */
const char *job_event_name(enum job_event event);
int job_event_parse(const char *name, enum job_event *ret_event); /* 0, or -1: no such event */

/* "low", "normal", "high" as -1, 0, 1. */
const char *job_priority_name(int priority);
int job_priority_parse(const char *name, int *ret_priority); /* 0, or -1: no such priority */

#endif
