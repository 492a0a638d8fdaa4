/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: read the jobs from the journal, append events, start and stop work processes.
 *
 * - Journal first, act second: `started` is on disk before the worker runs. Outcomes of processes are read from the journal.
 * - Every decision follows from the journal, the configuration, the clock and the running processes. So it can be repeated at any
 * time: after a restart, and after an append that failed because the disk was full.
 * - Each slot (node/serve/slots.h) runs one job at a time: that of the highest priority, among equals the one whose case was
 * complete first. The results of one case (node/jobs/case_results.h) run one after the other on one worker of this machine. To
 * each destination one delivery runs at a time, or several: see schedule_deliver.c.
 * - The worker of a cancelled job is stopped; a running job without a worker is started again.
 */
#ifndef TOMONODE_NODE_SCHEDULE_H
#define TOMONODE_NODE_SCHEDULE_H

#include "node/config/config.h"
#include "node/jobs/companion.h"
#include "node/jobs/jobs.h"
#include "node/process/process_table.h"
#include "node/serve/slots.h"
#include "node/store/journal.h"

#define SCHEDULE_QUEUES_MAX 64

/* The queue of a destination; computed in each step. */
struct schedule_queue {
	enum process_role role; /* DELIVER, COMMIT */
	char destination[CONFIG_NAME_SIZE];
	double reached;	      /* s since the epoch, last time when the destination stored an object; 0: unknown */
	bool down;	      /* a delivery waits because it got no association */
	bool full;	      /* no further process may serve it now */
	double blocked_until; /* s since the epoch, earliest next attempt; 0: the destination is reachable */
	double blocked_since; /* s since the epoch, start of the failures; 0: reachable */
	int64_t job;	      /* the next job, with the values that order the queue; 0: none */
	int64_t seq;
	int priority;
	bool immediate;
};

/* A case whose pilot is not connected. */
struct schedule_lost {
	int64_t attempt; /* seq of its `started` event; 0: unused */
	double until;	 /* the pilot may return until then; 0: it is connected again */
	int times;	 /* number of lost connections */
};

/* The last pilot that was refused. */
struct schedule_refused {
	char pilot[64], text[300]; /* its ID; its address and why; "": none, or it has connected since */
	double until;		   /* on `clock`, it is shown */
};

struct schedule {
	const struct config *config;
	const char *config_path; /* file that work processes read; NULL: the embedded defaults */
	struct journal *journal; /* NULL: it cannot be opened now; then schedule_step() does nothing */
	struct jobs jobs;
	struct companions companions; /* read when a case needs one of them */
	struct process_table processes;
	struct slots slots; /* slots_configure() before the first step */
	int cluster_fd;	    /* socket that seats accept pilots from; 0: none */
	struct schedule_lost lost[SLOTS_SEATS_MAX];
	char unanswered[SLOTS_SEATS_MAX][64]; /* IDs of pilots that did not answer a cancellation, until n_unanswered is reset */
	size_t n_unanswered;
	struct schedule_refused refused;
	struct schedule_queue queues[SCHEDULE_QUEUES_MAX];
	size_t n_queues;
	bool stopping;	  /* start no more processes */
	double clock;	  /* clock_seconds(), set by the caller before each call; deadlines use it, not the wall clock */
	double next;	  /* latest time of the next step, on the wall clock */
	char unread[300]; /* see schedule_unread_case(); since `unread_at` */
	double unread_at;
	double retry_at; /* like all times below on `clock`. Writing the journal failed: do not try before; 0: no failure */
	double index_not_before;	     /* earliest start of the indexer */
	int64_t index_stuck;		     /* the instance at which the indexer crashed */
	int index_tries;		     /* number of these crashes */
	double clean_at;		     /* next retention by age */
	double record_at;		     /* next time to record settled jobs in the journal */
	double space_at;		     /* next retention by space */
	bool space_short;		     /* true: it was logged that retention by space has no more files to remove */
	uint64_t journal_reserved;	     /* bytes, see journal_reserve(); 0: not yet since it was opened */
	uint64_t incoming;		     /* fingerprint of the arriving objects at the last check */
	double incoming_since;		     /* time since when it is unchanged */
	size_t quarantined;		     /* number of quarantined jobs already logged */
	int64_t newer_instance, newer_event; /* for which newer objects were looked for: all instances up to this one, the last
						event; newer_instance 0: look again at all cases */
	int64_t newer_since;		     /* in this step: jobs with events after this one; 0: all */
	bool look_newer;		     /* in this step */
};

/* Read new events of the journal, then write the events and start or stop the processes that follow from them and from the time.
 * Errors are logged. Sets `next`: call it again at that time at the latest. */
void schedule_step(struct schedule *s, double now);
/* Read the messages of the workers. schedule_step() calls it first. */
void schedule_read_workers(struct schedule *s, double now);
/* Return the number of jobs that wait for nothing but a slot. */
int schedule_count_waiting(struct schedule *s, double now);
/* Handle the end of a work process. Reads the remaining messages of a worker but does not close its ipc_fd. */
void schedule_process_ended(struct schedule *s, const struct process *p, int status, double now);
/* Return which settled case could not be read a short time ago, so that cases of its exam wait, and why; "": none. */
const char *schedule_unread_case(const struct schedule *s);
/* Return which pilot was refused a short time ago, and why; "": none. */
const char *schedule_refused_pilot(const struct schedule *s);
/* Ask an idle pilot of this ID to end; false: none is idle. */
bool schedule_end_pilot(struct schedule *s, const char *id);
/* The node ends: append `interrupted` to all running jobs. */
void schedule_interrupt(struct schedule *s, double now);

#endif
