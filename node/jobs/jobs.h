/* All jobs as the journal tells them: a view in memory, built by replay and kept up to date by more replay.
 *
 * Nothing here is truth: throw it away, replay, and it is the same. Whoever wants to change a job appends to the journal and
 * refreshes the view. A job whose events do not fit or do not parse is JOB_IMPOSSIBLE with the reason; the others go on.
 */
#ifndef TOMONODE_NODE_JOBS_H
#define TOMONODE_NODE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/config/config.h"
#include "node/jobs/assemble.h"
#include "node/store/job.h"
#include "node/store/journal.h"

enum send_state {
	SEND_DUE,     /* not there yet; `next` says when to try */
	SEND_DONE,    /* stored, and committed where that is asked for */
	SEND_REFUSED, /* for good: the dead letter */
	SEND_STORED,  /* stored; the commitment is asked for or awaited */
};

/* An object of the result: one or a few of a tomosynthesis, one a slice of PET. */
#define JOB_OBJECTS_MAX 16384
struct job_object {
	const char *file; /* relative to the spool; all texts lie in the view's object_texts */
	const char *sop_instance, *sop_class, *series;
	const char *digest; /* of the file when it was made (digest_files()); "": made by a version that kept none */
};

#define JOB_SENDS_MAX (2 * ROUTE_DESTINATIONS_MAX) /* those of the route, and fallbacks */
struct job_send {
	char destination[CONFIG_NAME_SIZE];
	enum send_state state;	  /* due while an object is due, else stored while one is that; then refused if one was */
	enum send_state *objects; /* of each object of the result: n_objects of the view */
	int failures;		  /* transient ones, since the last time a person said retry */
	double next;		  /* s since the epoch: not before */
	double time;		  /* of the last event */
	double since;		  /* s since the epoch: it has failed from then on without progress; 0: it has not */
	bool alarm;		  /* ... for so long, or in such a way, that a person should look */
	bool down;		  /* the last attempt got no association: others need not try before `next` */
	bool unconfigured;	  /* the configuration did not have it: it waits until one has it again */
	bool immediate;		  /* a person said retry: it does not wait for others */
	bool committed;		  /* the peer answers for what it was last asked about, and nothing was sent since */
	bool replaced;		  /* `fallback` gets the result in its place: nobody waits for this one */
	bool standby;		  /* a fallback that is not needed for now */
	char fallback[CONFIG_NAME_SIZE];
	char transaction[65]; /* of the commitment that is asked for; "": none is */
	bool accepted;	      /* the peer has the request, and may take until `until` (s since the epoch) for its report */
	double until;
	int commit_tries; /* requests that failed, since the last time a person said retry */
	char status[8];	  /* "0000"; "" where the peer did not answer */
	char reason[240];
	const struct job_send
		*blocked_by; /* of delivery_queue_update() alone: another job's, that holds the queue up; NULL: nobody */
};

struct job_view {
	int64_t id;
	int64_t revision_of; /* the job that this one is a revision of; 0: none */
	int revision;	     /* 1, 2, ... within the case */
	enum job_state state;
	char kind[16], calling[17];
	int priority;							     /* of the case: the highest goes first */
	char *key;							     /* of the case; "" when its opening is damaged */
	double opened, changed, completed, started, reconstructed, finished; /* s since the epoch, 0: not yet */
	double seen;	       /* s since the epoch: when jobs_observe_clock() first saw that it had finished; 0: not yet */
	int64_t completed_seq; /* first come, first served */
	struct assemble members;
	long damaged; /* held for want of so many files that are as they were received; 0: for another reason, or not held */
	char protocol[CONFIG_NAME_SIZE];
	struct job_send *sends;
	size_t n_sends;
	bool given_up;		    /* cleaned, though never delivered: a person had cancelled it */
	char device[96];	    /* of the last attempt; "": none yet */
	int attempts, crashes;	    /* started, and died; since the last time a person said retry */
	double not_before;	    /* of the next attempt */
	char reason[320];	    /* why it is held, failed, cancelled, quarantined, waiting; "" */
	struct job_object *objects; /* of the result, in the order in which they are sent */
	size_t n_objects;
	char *object_texts;
	bool shrunk; /* see jobs_shrink() */
};

struct jobs {
	struct job_view **list; /* by id */
	size_t n, capacity;
	int64_t last_seq;
};

/* Replay what came since the last time: all jobs, or with job > 0 that one alone. `jobs` starts as {0}. */
int jobs_refresh(struct jobs *jobs, struct journal *j, int64_t job, struct err *err);
void jobs_clear(struct jobs *jobs);
/* Of jobs that were delivered or cleaned and have not changed since `before`, keep what retention and later instances of the case
 * ask for alone: destinations (there was one at least) and objects go. Only for who shows them to nobody. Answers how many. */
size_t jobs_shrink(struct jobs *jobs, double before);
/* Drop a job that the journal has forgotten. */
void jobs_forget(struct jobs *jobs, int64_t id);
/* One event; ENOMEM is the only error. */
int jobs_apply(struct jobs *jobs, const struct event_row *row);

/* What only the clock can say, for whoever lives long: once a look. */
void jobs_observe_clock(struct jobs *jobs, double now);

struct job_view *jobs_find(const struct jobs *jobs, int64_t id);		   /* NULL: none */
struct job_view *jobs_latest(const struct jobs *jobs, const char *key);		   /* the newest job of a case; NULL: none */
struct job_send *job_view_send(const struct job_view *v, const char *destination); /* NULL: not one of its destinations */
size_t job_view_sends(const struct job_view *v, enum send_state state);		   /* how many of those that count */
/* Why it cannot be reconstructed out of what is there of it, whatever a person says: a sentence; NULL: it can be tried. */
const char *job_view_no_as_is(const struct job_view *v);
bool job_view_is_due(const struct job_view *v, size_t object); /* is it due somewhere? */
const char *send_state_name(enum send_state state);	       /* "due", "stored", "sent", "refused" */
const char *job_send_name(const struct job_send *s);	       /* ... or "committed", "replaced", "standby" */
bool job_send_counts(const struct job_send *s);		       /* neither replaced nor on standby */

#endif
