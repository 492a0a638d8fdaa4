/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a job: one case (a view of an exam) from its first instance to the last destination.
 *
 * Pure functions: no time, no files, no journal. The state is never stored but computed from the events. An event that is not
 * allowed in the present state gives JOB_IMPOSSIBLE: the node no longer processes that job (it is quarantined) and continues with
 * the others.
 */
#ifndef TOMONODE_NODE_JOB_H
#define TOMONODE_NODE_JOB_H

enum job_state {
	JOB_NONE,	/* before its first event */
	JOB_COLLECTING, /* instances arrive */
	JOB_HELD,	/* incomplete, without a geometry profile, or refused: waits for a person or for new instances */
	JOB_READY,	/* complete: waits for a worker */
	JOB_RUNNING,
	JOB_RECONSTRUCTED, /* the result is in the outbox: deliveries are due */
	JOB_STORED,	   /* every destination has the result; a storage commitment is still missing */
	JOB_DELIVERED,	   /* every destination has the result, with storage commitment where required */
	JOB_DEAD_LETTER,   /* a destination refused the result permanently; all other deliveries have ended */
	JOB_FAILED,	   /* reconstruction failed permanently */
	JOB_CANCELLED,
	JOB_CLEANED,	/* retention removed its files */
	JOB_IMPOSSIBLE, /* the events contradict each other: quarantined */
};

enum job_event {
	EVENT_OPENED,		/* case key, kind */
	EVENT_INSTANCE,		/* an instance became a member of the job */
	EVENT_HELD,		/* reason */
	EVENT_COMPLETE,		/* number of instances that made it complete; protocol, destinations */
	EVENT_WAITS,		/* complete but for images of another series: reason, until when */
	EVENT_COMPANION,	/* an image of another series that the case needs was joined, in the transaction of `complete` */
	EVENT_STARTED,		/* device, attempt */
	EVENT_INTERRUPTED,	/* the node was stopped during the run: start again, not counted as a failure */
	EVENT_CRASHED,		/* the worker died or failed temporarily: reason */
	EVENT_RECONSTRUCTED,	/* outbox file, SOP instance UID, seconds per stage */
	EVENT_RESULT_LOST,	/* a file of the result in the outbox is damaged or missing, so the case is reconstructed again;
				   detail: reason */
	EVENT_FAILED,		/* reason */
	EVENT_SEND_FAILED,	/* destination, status or reason, when next: transient */
	EVENT_SENT,		/* destination, status */
	EVENT_SEND_REFUSED,	/* destination, status: permanent */
	EVENT_FALLBACK,		/* destination, the one that gets the result instead, reason */
	EVENT_STORED,		/* every destination has the result; commitments are missing */
	EVENT_COMMIT_REQUESTED, /* destination, transaction; written before the request is sent */
	EVENT_COMMIT_ACCEPTED,	/* the peer accepted the request: deadline of its report */
	EVENT_COMMIT_REQUEST_FAILED, /* the request failed: status or reason, when next */
	EVENT_COMMITTED,	     /* destination, transaction, objects that the peer committed to keep */
	EVENT_COMMIT_FAILED,	     /* destination, transaction, objects that the peer does not commit to keep: they are sent and
					requested again */
	EVENT_COMMIT_REFUSED,	     /* no more attempts: dead letter */
	EVENT_DELIVERED,	     /* every destination has the result, with storage commitment where required */
	EVENT_DEAD_LETTER,	     /* every destination has the result or refused it; at least one refused */
	EVENT_PRIORITY,		     /* a person set the priority */
	EVENT_RETRY,		     /* a person requested another attempt */
	EVENT_CANCEL,		     /* a person cancelled the job */
	EVENT_CLEANED,		     /* files removed by retention */
};

/* Return the state after `event` in `state`; JOB_IMPOSSIBLE: the event is not allowed there. */
enum job_state job_next(enum job_state state, enum job_event event);

const char *job_state_name(enum job_state state); /* "collecting", ... */
const char *job_event_name(enum job_event event);
int job_event_parse(const char *name, enum job_event *ret_event); /* 0, or -1: no such event */

/* "low", "normal", "high" as -1, 0, 1. */
const char *job_priority_name(int priority);
int job_priority_parse(const char *name, int *ret_priority); /* 0, or -1: no such priority */

#endif
