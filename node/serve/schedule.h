/* What to do next: looks at the jobs as the journal tells them, appends events, starts and ends work processes.
 *
 * - Journal first, act second: `started` is on disk before the worker runs. What a process did is read back from the journal.
 * - Every decision follows from the journal, the configuration, the clock and the processes that run, so it can be taken again
 *   at any time: after a restart, and after an append that failed because the disk was full.
 * - One job at a time in each slot (node/serve/slots.h), by priority, then first complete first served. One delivery at a time to
 *   each destination, see schedule_deliver.c.
 * - A job that is cancelled loses its worker; a running job without a worker starts again.
 */
#ifndef TOMONODE_NODE_SCHEDULE_H
#define TOMONODE_NODE_SCHEDULE_H

#include "node/config/config.h"
#include "node/jobs/jobs.h"
#include "node/process/process_table.h"
#include "node/serve/slots.h"
#include "node/store/journal.h"

#define SCHEDULE_QUEUES_MAX PROCESS_MAX

/* The queue of a destination; made anew in each step. */
struct schedule_queue {
	enum process_role role; /* DELIVER, COMMIT */
	char destination[CONFIG_NAME_SIZE];
	double blocked_until; /* s since the epoch: no association could be had, nobody tries before; 0: it could */
	double blocked_since; /* ... since then; 0: not */
	int64_t job;	      /* who goes first, and what decides it; 0: nobody */
	int64_t seq;
	int priority;
	bool immediate;
};

struct schedule {
	const struct config *config;
	const char *config_path; /* what work processes read; NULL: the embedded defaults */
	struct journal *journal; /* NULL: it cannot be opened for now; nothing is decided then */
	struct jobs jobs;
	struct process_table processes;
	struct slots slots; /* slots_configure() before the first step */
	struct schedule_queue queues[SCHEDULE_QUEUES_MAX];
	size_t n_queues;
	bool stopping;	 /* start nothing more */
	double clock;	 /* clock_seconds(), set by the caller before each call: deadlines count on it, not on the wall clock */
	double next;	 /* on the wall clock of this step: look again then, at the latest */
	double retry_at; /* on `clock`, as all below: the journal could not be written: not before; 0: it could */
	double index_not_before;
	int64_t index_stuck;	   /* the instance at which the indexer ended badly */
	int index_tries;	   /* ... so often */
	double clean_at;	   /* next look for what retention may remove by age */
	double shrink_at;	   /* next time that jobs that are over are shrunk; 0: not yet looked */
	double space_at;	   /* ... and by space */
	bool space_short;	   /* retention by space found nothing more to remove: logged */
	uint64_t journal_reserved; /* bytes, see journal_reserve(); 0: not yet since it was opened */
	uint64_t incoming;	   /* fingerprint of the objects that were arriving when it was last looked */
	double incoming_since;	   /* ... and since when it is that */
	size_t quarantined;	   /* so many are logged */
	size_t outbox_idle;	   /* sum of the jobs that have no use for their outbox (retention_outbox_idle()) */
	bool outbox_looked;	   /* ... and those were cleaned */
};

/* Catch up with the journal and do what is due. Errors are logged; `next` says when to come again. */
void schedule_step(struct schedule *s, double now);
/* Read what workers say; each step begins with it. */
void schedule_read_workers(struct schedule *s, double now);
/* A work process has ended. A worker's channel is read here, not closed. */
void schedule_process_ended(struct schedule *s, const struct process *p, int status, double now);
/* Write down that the running jobs were interrupted: the node ends. */
void schedule_interrupt(struct schedule *s, double now);

#endif
