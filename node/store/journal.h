/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: a database on disk, the only authoritative record of instances and jobs. SQLite in WAL mode, synchronous=FULL.
 *
 * - Append-only, except that whole cases are deleted after a time (node/jobs/journal_retention.h), and that the classification of
 *   an instance names the newest case that was selected with it (journal_open_selection()). A function that appends returns after
 *   the rows are on disk.
 * - Thirteen tables: `instance` (each instance that was received and acknowledged), `classification` (the indexer's decision for each
 *   instance), `event` (the events of each job), `removal` (instances whose files retention removed), `damage` (instances
 *   whose files differ from the received bytes), `result` (the objects that `reconstructed` events name, each with its job),
 *   `job_key` (the key that the `opened` event of the first job of a case names), and six that follow from the others and save their
 *   replay: `open_job`, `settled_job`, `reached`, `counter`, `counted` and `sender`.
 * - Jobs are numbered 1, 2, 3; no number is used again. An instance may belong to several jobs: a revision includes all
 *   instances of the job that it revises, a further result of a case all those of its first job.
 * - A companion is an image that cases need beside their own (a CT image for the attenuation correction). It is joined to a job
 *   by a `companion` event in the transaction of its `complete` event, and to several jobs if they need it. A job has those
 *   after its last `complete` event. Its file is removed with the last of these jobs.
 * - An event that the job's state does not allow (job_next()) is refused with ESTALE inside the transaction. So two processes
 *   that change one job at the same time cannot corrupt it: the second one must read the job again.
 * - Each process opens its own connection; a child process must not use the connection of its parent.
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
	int64_t id;	 /* number of the row, set by journal_add_instance() */
	double received; /* s since the epoch */
	char sop_class[65], sop_instance[65], transfer_syntax[65];
	char calling[17], host[64]; /* sender: AE title and address */
	char association[40];	    /* the same for all objects of one association */
	char file[128];		    /* relative to the spool */
	uint64_t bytes;		    /* of the file */
	char digest[33];	    /* XXH3-128 of the data set as received */
	bool companion;		    /* of a member of a job (journal_each_member()): a companion; else false */
};

enum classification {
	CLASSIFIED_MEMBER = 1, /* belongs to a job */
	CLASSIFIED_IGNORED,    /* of no kind that the node reconstructs: its file is kept, reason in the detail */
	CLASSIFIED_REFUSED,    /* unreadable, or in an unsupported encoding: its file is kept, reason in the detail */
	CLASSIFIED_CONFLICT,   /* same SOP Instance UID as an earlier instance but other content: its file is kept */
	CLASSIFIED_COMPANION,  /* an image that cases may need beside their own; facts in the detail */
};

struct event_row {
	int64_t seq;
	double time;
	int64_t job;
	enum job_event event;
	bool known;	  /* false: this version does not know the event's name; the job is quarantined */
	int64_t instance; /* of an `instance` event; else 0 */
	char *detail;	  /* JSON; valid until the callback returns */
};

/* Open the journal for reading and writing; create it with mode 0600 if it is missing. */
int journal_open(const char *path, struct journal **ret_journal, struct err *err);
/* Open for reading; functions that write fail. ENOENT: there is no journal, or it is not ready yet. */
int journal_open_reader(const char *path, struct journal **ret_journal, struct err *err);
struct journal *journal_close(struct journal *j);

/* Add a received instance. The row is on disk when this returns. Sets row->id. */
int journal_add_instance(struct journal *j, struct instance_row *row, struct err *err);
/* 1: an acknowledged instance with this UID and this digest is recorded; 0: none. Of several, one that is not ignored is
 * returned. ret_row may be NULL. */
int journal_has_instance(struct journal *j, const char *sop_instance, const char *digest, struct instance_row *ret_row,
			 struct err *err);
/* 1: one such instance is recorded, and it is ignored; 0: not. */
int journal_is_ignored(struct journal *j, const char *sop_instance, const char *digest, struct err *err);
/* Read the instances with an id > after and without a classification, oldest first, at most `max`. Returns their number. */
int journal_list_unindexed(struct journal *j, int64_t after, struct instance_row *ret_rows, int max, struct err *err);
/* Add the classification of an instance that has none yet. With CLASSIFIED_MEMBER, append an `instance` event to the job in the
 * same transaction. */
int journal_classify(struct journal *j, int64_t instance, enum classification kind, int64_t job, const char *detail, double now,
		     struct err *err);
/* Open a job for a case key and return its number. */
int journal_open_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err);
/* Open a revision because an instance of the case arrived after its job `of` had begun: create a job with all instances of `of`
 * and add `instance` to it as a member with `classification` (its detail, JSON), all in one transaction. ESTALE: retention has
 * removed the files of `of`. */
int journal_open_revision(struct journal *j, int64_t of, int64_t instance, const char *classification, const char *detail,
			  double now, int64_t *ret_job, struct err *err);
/* Open a job for a further result of the same instances: create a job with all instances of `of`, in one transaction. ESTALE:
 * retention has removed the files of `of`, or it got another number of instances than `instances` meanwhile. */
int journal_open_result(struct journal *j, int64_t of, long instances, const char *detail, double now, int64_t *ret_job,
			struct err *err);
/* Open a job with n chosen instances in place of `of`: members of it, and conflicts, which become members. The job `of` is
 * cancelled, with the detail `cancel`; all in one transaction. seen: seq of the last event that the caller has read. ESTALE: the
 * job has changed since, cannot be cancelled, or retention has removed one of the instances. */
int journal_open_selection(struct journal *j, int64_t of, int64_t seen, const int64_t *instances, size_t n, const char *detail,
			   const char *cancel, double now, int64_t *ret_job, struct err *err);
/* Append an event to a job. ENOENT: no such job; ESTALE: its state does not allow the event. */
int journal_append(struct journal *j, int64_t job, enum job_event event, const char *detail, double now, struct err *err);
/* The same for an event that follows from the job as the caller has read it. seen: seq of the last event that it has read. ESTALE
 * also if the job has later events. */
int journal_append_if_unchanged(struct journal *j, int64_t job, int64_t seen, enum job_event event, const char *detail,
				double now, struct err *err);
/* Append `complete` to a job, and a `companion` event for each of n instances, in one transaction. ESTALE: as above, or retention
 * has removed one of these instances. */
int journal_append_complete(struct journal *j, int64_t job, int64_t seen, const char *detail, const int64_t *companions, size_t n,
			    double now, struct err *err);

/* Call each() for every event of a job (0: of all jobs) with seq > after, in order. The callback stops it by returning non-zero.
 */
int journal_replay(struct journal *j, int64_t job, int64_t after, int (*each)(void *ctx, const struct event_row *row), void *ctx,
		   struct err *err);
/* Call each() for every member instance of a job, in order of arrival, with its classification's detail; then for its companions.
 */
int journal_each_member(struct journal *j, int64_t job,
			int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err);
/* Compute the state of a job from its events. JOB_NONE: no such job. */
int journal_job_state(struct journal *j, int64_t job, enum job_state *ret_state, struct err *err);

/* ---- settled jobs: delivered or cleaned, with nothing left to do. A start reads the events of the others only. ---- */

#define JOURNAL_SETTLED_VERSION                                                                                                  \
	3 /* of what a row says: raise it when another job counts as settled, or a column means another thing */

enum settled_warnings { SETTLED_UNWARNED, SETTLED_STANDING, SETTLED_WARNED }; /* of a delivered job: none, standing ones only */

struct settled_row {
	int64_t job, seq; /* seq: of its last event */
	enum job_state state;
	uint64_t study, series, patient; /* jobs_index_hash() of the key of its case; digest of the patient's ID, 0: none */
	double done;   /* since when it is delivered, or cleaned, s since the epoch; never after the last journal_settle_end() */
	double opened; /* s since the epoch */
	double finished; /* when it was delivered or cancelled, else cleaned, s since the epoch */
	enum settled_warnings warnings;
	const char *words; /* what persons search for, in lines; NULL: not read; valid until the callback returns */
};

struct reached_row { /* what settled jobs say about a destination, as struct jobs_reached */
	const char *destination;
	double reached, sent;
};

/* Make each job open that is neither open nor settled, or has changed since it was settled: its row was lost or damaged. Reads one
 * row of each job. */
void journal_open_unlisted(struct journal *j);
/* Call each() for at most `max` jobs with a number > after that are not settled, in order. */
int journal_each_open(struct journal *j, int64_t after, int max, int (*each)(void *ctx, int64_t job), void *ctx, struct err *err);
/* 1: the job is settled; 0: not. ret_row may not be NULL. */
int journal_find_settled(struct journal *j, int64_t job, struct settled_row *ret_row, struct err *err);
/* Call each() for every settled job with this hash; of a patient the newest 240: a phantom may have one for each day. */
enum settled_relation { SETTLED_STUDY, SETTLED_SERIES, SETTLED_PATIENT };
int journal_each_settled_of(struct journal *j, enum settled_relation relation, uint64_t hash, int (*each)(void *ctx, int64_t job),
			    void *ctx, struct err *err);
/* Call each() for every settled job in this state that was done at `until` or before. */
int journal_each_settled_done(struct journal *j, enum job_state state, double until,
			      int (*each)(void *ctx, const struct settled_row *row), void *ctx, struct err *err);
/* Call each() for every settled job: by study, with `job` and `study` only; by number, the highest first; by the time of the end, the
 * last first, all or those with warnings. */
enum settled_order { SETTLED_BY_STUDY, SETTLED_BY_JOB, SETTLED_BY_END, SETTLED_WITH_WARNINGS };
int journal_each_settled(struct journal *j, enum settled_order order, int (*each)(void *ctx, const struct settled_row *row),
			 void *ctx, struct err *err);
/* Call each() for the `max` settled jobs with the highest numbers, the newest first; -1: for all. */
int journal_each_settled_newest(struct journal *j, int max, int (*each)(void *ctx, int64_t job), void *ctx, struct err *err);
int journal_count_settled(struct journal *j, uint64_t *ret_n, struct err *err);
struct settled_sums {		       /* numbers of jobs */
	uint64_t delivered, cleaned;   /* in these states */
	uint64_t warned, warned_since; /* with SETTLED_WARNED; of these finished after `since` */
	uint64_t studies;	       /* different values of `study` */
};
int journal_sum_settled(struct journal *j, double since, struct settled_sums *ret, struct err *err);

/* Record settled jobs in one transaction: begin (1: begun; 0: the journal lacks the tables), the jobs, what they say about
 * destinations, counters, end. ret: positive: jobs were recorded; negative: nothing shall be. now: times after it become it, because the
 * clock was ahead. */
int journal_settle_begin(struct journal *j, struct err *err);
/* 1: recorded; its events until *ret_counted were counted before, those until row->seq count as counted now. 0: it has later events
 * than row->seq, and stays open. */
int journal_settle_job(struct journal *j, const struct settled_row *row, int64_t *ret_counted, struct err *err);
int journal_settle_reached(struct journal *j, const struct reached_row *row, struct err *err);
int journal_set_counter(struct journal *j, const char *name, double n, struct err *err);
int journal_settle_end(struct journal *j, int ret, double now, struct err *err);

/* Call each() for every counter of the events that are counted. */
int journal_each_counter(struct journal *j, int (*each)(void *ctx, const char *name, double n), void *ctx, struct err *err);
/* Find the last event of a job that is counted; 0: none. */
int journal_find_counted(struct journal *j, int64_t job, int64_t *ret_seq, struct err *err);

/* Begin and end a look at the journal during which all functions that read see the same rows. */
int journal_look_begin(struct journal *j, struct err *err);
void journal_look_end(struct journal *j);

int journal_each_reached(struct journal *j, int (*each)(void *ctx, const struct reached_row *row), void *ctx, struct err *err);

/* Find job and destination of the storage commitment request with this transaction UID. 1: found; 0: not. */
int journal_find_transaction(struct journal *j, const char *transaction, int64_t *ret_job, char *ret_destination, size_t size,
			     struct err *err);

/* Find the newest first job of the case with this key. 1: found; 0: none. */
int journal_find_latest(struct journal *j, const char *key, int64_t *ret_job, struct err *err);
/* Find a job of another study that has a result with an object of this UID. 1: found; 0: none. */
int journal_find_result(struct journal *j, const char *sop_instance, int64_t job, int64_t *ret_job, struct err *err);
/* Call each() for every job whose result has an object of this UID. */
int journal_each_result_job(struct journal *j, const char *sop_instance, int (*each)(void *ctx, int64_t job), void *ctx,
			    struct err *err);
/* Find the newest instance with this UID, other than `besides`, that is a member of any job: an instance with the same UID and
 * other content is then a conflict. 1: found; 0: not. */
int journal_find_member(struct journal *j, const char *sop_instance, int64_t besides, struct instance_row *ret_row,
			struct err *err);
/* Find the job that received the newest instance of this UID, also a removed one. 1: found; 0: not. */
int journal_find_job_of(struct journal *j, const char *sop_instance, int64_t *ret_job, struct err *err);
/* 1: that job is cancelled, so that the object begins a new case when it is sent again; 0: not. */
int journal_is_given_up(struct journal *j, const char *sop_instance, struct err *err);
/* 1: the job has an instance with this UID; 0: not. */
int journal_has_member(struct journal *j, int64_t job, const char *sop_instance, struct err *err);
/* 1: `job` has another instance under the UID of each instance of job `of`; 0: not. */
int journal_is_sent_again(struct journal *j, int64_t of, int64_t job, struct err *err);
/* Call each() for every conflict that is not removed and is newer than the member of the job with its UID, in order of arrival,
 * with the id of that member. */
int journal_each_newer(struct journal *j, int64_t job,
		       int (*each)(void *ctx, const struct instance_row *row, const char *detail, int64_t member), void *ctx,
		       struct err *err);
/* Call each() for unassigned instances with this classification that are not removed, newest first, at most `max`. */
int journal_each_classified(struct journal *j, enum classification kind, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err);
/* Call each() for unassigned instances (of no case) that are not removed and whose classification is from `until` or before,
 * oldest first, at most `max`. */
int journal_each_unassigned(struct journal *j, double until, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err);
/* Call each() for companions that are not removed, with an id > after, in order of arrival; for none that arrived after an
 * instance that still waits for its classification. */
int journal_each_companion(struct journal *j, int64_t after,
			   int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			   struct err *err);
/* Call each() for companions that are not removed, were classified at `until` or before, and belong to no job that is not
 * cleaned; oldest first, at most `max`. */
int journal_each_unused_companion(struct journal *j, double until, int max,
				  int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
				  struct err *err);
/* Call each() for instances with a classification and an id > after, in order of arrival, at most `max`, and none that arrived
 * after one that still waits for its classification. */
int journal_each_indexed(struct journal *j, int64_t after, int max,
			 int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err);
/* Return the id of the last instance before the first one that waits for its classification, and the seq of the last event; 0:
 * none. */
int journal_last_rows(struct journal *j, int64_t *ret_instance, int64_t *ret_event, struct err *err);
/* Record the removal of an instance by retention, before its file is removed. A repeated send of it is then stored again. */
int journal_remove_instance(struct journal *j, int64_t instance, double now, struct err *err);
/* Append `cleaned` to a job and record the removal of all its members, and of those companions that no other job has that is not
 * cleaned, in one transaction. seen: seq of the last event that the
 * caller has read. ESTALE: the state does not allow the event; or after `seen` the job changed, or a job that shares members was
 * opened or retried: read the jobs again. */
int journal_append_cleaned(struct journal *j, int64_t job, int64_t seen, const char *detail, double now, struct err *err);
/* Four functions about instances whose file differs from the received bytes: mark one as damaged, remove its mark, return whether
 * it is marked (1 or 0), count the marked members of a job. Negative on error. */
int journal_mark_damaged(struct journal *j, int64_t instance, double now, struct err *err);
int journal_mark_intact(struct journal *j, int64_t instance, struct err *err);
int journal_is_damaged(struct journal *j, int64_t instance, struct err *err);
int64_t journal_count_damaged(struct journal *j, int64_t job, struct err *err);
/* Delete all rows of unassigned instances that were removed before `before`, at most JOURNAL_UNASSIGNED_MAX per call. Returns
 * their number. */
#define JOURNAL_UNASSIGNED_MAX 500
int journal_delete_unassigned(struct journal *j, double before, struct err *err);
/* Delete all rows of these jobs, which must be all jobs of one case and all be cleaned (else ESTALE). */
int journal_delete_case(struct journal *j, const int64_t *jobs, size_t n, struct err *err);
/* 1: an instance that was not removed has this file; 0: none has. */
int journal_has_file(struct journal *j, const char *file, struct err *err);
/* 1: an instance that retention removed had this file; 0: none had. */
int journal_has_removed_file(struct journal *j, const char *file, struct err *err);
/* Run SQLite's integrity check and call report() for each problem. Returns their number. EIO: the file cannot be read, also not
 * at a second attempt; that is no damage. */
int journal_check(struct journal *j, void (*report)(void *ctx, const char *problem), void *ctx, struct err *err);

/* Preallocate `bytes` of disk space for later commits, so that they succeed on a full disk. May be called again at any time.
 * EOPNOTSUPP: the file system cannot preallocate. */
int journal_reserve(struct journal *j, uint64_t bytes, struct err *err);

/* Sums over all rows that ever were. Start with {0}; each call adds the rows written since the last one. */
struct journal_totals {
	int64_t last_instance, last_classified;
	uint64_t instances, bytes;
	uint64_t classified[CLASSIFIED_COMPANION + 1];
};
int journal_add_totals(struct journal *j, struct journal_totals *totals, struct err *err);
/* Call each() for every sender of instances with an id > *after, that of the newest instance last. *after becomes the last id. 0: of
 * all that ever were. A sender may be there twice, with its earlier and its later instances. */
struct journal_sender {
	const char *calling, *host; /* host: of its newest instance; valid until the callback returns */
	double last;		    /* when that was received, s since the epoch */
	uint64_t instances;
};
int journal_each_sender(struct journal *j, int64_t *after, int (*each)(void *ctx, const struct journal_sender *row), void *ctx,
			struct err *err);
/* Count the instances without a classification, which wait for the indexer. */
int journal_count_unindexed(struct journal *j, uint64_t *ret_n, struct err *err);

/* Return a number that changes when another process writes: poll it to notice new rows. */
int64_t journal_data_version(struct journal *j);

#endif
