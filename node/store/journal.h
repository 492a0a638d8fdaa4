/* The journal: the only durable truth about instances and jobs. SQLite in WAL mode, synchronous=FULL.
 *
 * - Append only, but for cases that are forgotten as a whole (node/jobs/journal_retention.h). A function that appends returns
 * after the rows are on disk.
 * - Five tables: `instance` (what was received and acknowledged), `classification` (what the indexer made of each instance),
 * `event` (what happened to each job), `removal` (instance files that retention took away) and `damage` (instance files whose
 * bytes are not those that came). A job's number is the seq of its `opened` event. An instance may belong to several jobs: a
 *   revision takes all of its predecessor's.
 * - An event that does not fit the job's state is refused (ESTALE) inside the transaction, so that two processes that act on
 *   one job at the same moment cannot spoil it: the second one looks again.
 * - Each process opens its own; never carry one across fork.
 * - Times are seconds since the epoch, given by the caller. Details are one-line JSON objects.
 */
#ifndef TOMONODE_NODE_JOURNAL_H
#define TOMONODE_NODE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/store/job.h"

struct journal;

struct instance_row {
	int64_t id; /* given by the journal */
	double received;
	char sop_class[65], sop_instance[65], transfer_syntax[65];
	char calling[17], host[64];
	char association[40]; /* the same for all objects of one association */
	char file[128];	      /* relative to the spool */
	uint64_t bytes;	      /* of the file */
	char digest[33];      /* XXH3-128 of the data set as it came */
};

enum classification {
	CLASSIFIED_MEMBER = 1, /* belongs to job `job` */
	CLASSIFIED_IGNORED,    /* no kind of case we reconstruct: kept, reason in the detail */
	CLASSIFIED_REFUSED,    /* unreadable or of an unsupported encoding: kept apart, reason in the detail */
	CLASSIFIED_CONFLICT,   /* another content under a UID that we already have: kept apart */
};

struct event_row {
	int64_t seq;
	double time;
	int64_t job;
	enum job_event event;
	bool known;	  /* false: a name this version does not know (the job is quarantined) */
	int64_t instance; /* of an `instance` event; else 0 */
	char *detail;	  /* JSON; valid until the callback returns */
};

int journal_open(const char *path, struct journal **ret_journal, struct err *err); /* creates it when it is not there; 0600 */
/* For reading alone: whatever would write fails. ENOENT: there is none (or none that is ready) yet. */
int journal_open_reader(const char *path, struct journal **ret_journal, struct err *err);
struct journal *journal_close(struct journal *j);

/* The receiver's row: durable when this returns. row->id is set. */
int journal_add_instance(struct journal *j, struct instance_row *row, struct err *err);
/* 1: an acknowledged instance with this UID and this digest is on record (ret_row may be NULL); 0: not. */
int journal_has_instance(struct journal *j, const char *sop_instance, const char *digest, struct instance_row *ret_row,
			 struct err *err);
/* Instances that have no classification yet, oldest first, at most `max`; answers how many. */
int journal_unindexed(struct journal *j, struct instance_row *ret_rows, int max, struct err *err);
/* One classification an instance; with CLASSIFIED_MEMBER an `instance` event of the job is appended in the same transaction. */
int journal_classify(struct journal *j, int64_t instance, enum classification kind, int64_t job, const char *detail, double now,
		     struct err *err);
/* Open a job for a case key and give its number. */
int journal_open_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err);
/* A late instance of a case whose job `of` has begun: a new job with all instances of `of` and this one (a member, with its
 * classification), in one transaction. ESTALE: `of` was cleaned meanwhile. */
int journal_open_revision(struct journal *j, int64_t of, int64_t instance, const char *classification, const char *detail,
			  double now, int64_t *ret_job, struct err *err);
/* ENOENT: no such job; ESTALE: the event does not fit its state. */
int journal_append(struct journal *j, int64_t job, enum job_event event, const char *detail, double now, struct err *err);

/* Replay: each event of job (0: all jobs) with seq > after, in order. The callback ends the walk by returning non-zero. */
int journal_replay(struct journal *j, int64_t job, int64_t after, int (*each)(void *ctx, const struct event_row *row), void *ctx,
		   struct err *err);
/* Each member instance of a job in the order of arrival, with its classification's detail. */
int journal_members(struct journal *j, int64_t job, int (*each)(void *ctx, const struct instance_row *row, const char *detail),
		    void *ctx, struct err *err);
/* The state replayed from the journal alone; JOB_NONE: no such job. */
int journal_job_state(struct journal *j, int64_t job, enum job_state *ret_state, struct err *err);

/* The job and destination whose storage commitment was asked for under this transaction UID: 1 found, 0 not. */
int journal_find_transaction(struct journal *j, const char *transaction, int64_t *ret_job, char *ret_destination, size_t size,
			     struct err *err);

/* The member of a job that has this UID and came before `before`: 1 found, 0 not. (Other content under its UID is a conflict.) */
int journal_find_member(struct journal *j, const char *sop_instance, int64_t before, struct instance_row *ret_row,
			struct err *err);
/* Instances whose classification is of this kind and that are not removed, newest first, at most `max`. */
int journal_classified(struct journal *j, enum classification kind, int max,
		       int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err);
/* Instances of no case that are here and whose classification was written at `until` or before, oldest first, at most `max`. */
int journal_unassigned(struct journal *j, double until, int max,
		       int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err);
/* Instances behind `after` that have a classification, in the order of arrival, at most `max`. */
int journal_indexed(struct journal *j, int64_t after, int max,
		    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err);
/* The last instance that has a classification, and the last event; 0: none. */
int journal_last(struct journal *j, int64_t *ret_instance, int64_t *ret_event, struct err *err);
/* Retention: from now on the instance counts as not here (its file may be removed, and a re-send is stored again). */
int journal_remove_instance(struct journal *j, int64_t instance, double now, struct err *err);
/* `cleaned` of a job whose members all count as not here from now on, in one transaction. `seen`: the last event that the caller
 * knew when it decided. ESTALE: it does not fit, or since then something happened to this job, or one that has members of it,
 * too, was opened or wanted again: look again. */
int journal_clean(struct journal *j, int64_t job, int64_t seen, const char *detail, double now, struct err *err);
/* A reader found other bytes in the instance's file than were received; and: they are those again. Answers of 1 and 0, or how
 * many of a job's instances are marked; negative on error. */
int journal_mark_damaged(struct journal *j, int64_t instance, double now, struct err *err);
int journal_mark_intact(struct journal *j, int64_t instance, struct err *err);
int journal_is_damaged(struct journal *j, int64_t instance, struct err *err);
int64_t journal_count_damaged(struct journal *j, int64_t job, struct err *err);
/* Remove all that is on record of instances that belonged to no job and were removed before `before`, at most
 * JOURNAL_UNASSIGNED_MAX at a time; answers how many. */
#define JOURNAL_UNASSIGNED_MAX 500
int journal_forget_unassigned(struct journal *j, double before, struct err *err);
/* Remove all that is on record of these jobs, which must all be cleaned (else ESTALE): they are the whole of a case. */
int journal_forget(struct journal *j, const int64_t *jobs, size_t n, struct err *err);
/* 1: an instance that was not removed names this file; 0: none does. */
int journal_names_file(struct journal *j, const char *file, struct err *err);
/* 1: retention has removed an instance that named this file. */
int journal_removed_file(struct journal *j, const char *file, struct err *err);
/* SQLite's own check of the file; each problem goes to `report`. Answers how many there are. */
int journal_check(struct journal *j, void (*report)(void *ctx, const char *problem), void *ctx, struct err *err);

/* Allocate the next `bytes` of the disk that commits will take, so that they succeed on a full disk, too. May be called again at
 * any time. EOPNOTSUPP: not on this file system. */
int journal_reserve(struct journal *j, uint64_t bytes, struct err *err);

/* What was received and what became of it, over the whole journal. Begins as {0}; each call adds what came since. */
struct journal_totals {
	int64_t last_instance, last_classified;
	uint64_t instances, bytes;
	uint64_t classified[CLASSIFIED_CONFLICT + 1];
};
int journal_add_totals(struct journal *j, struct journal_totals *totals, struct err *err);
/* Instances without a classification: they wait for the indexer. */
int journal_count_unindexed(struct journal *j, uint64_t *ret_n, struct err *err);

/* Changes when another process wrote: poll it to notice new rows. */
int64_t journal_data_version(struct journal *j);

#endif
