/* SPDX-License-Identifier: Apache-2.0 */
/* Settled jobs: those that are delivered or cleaned and have all their further results.
 *
 * - A start reads the events of the others. A settled one is read, by replay of its events, when it is asked for: by its number, its
 *   study or its series (jobs.h). So neither the start nor the memory grows with the number of cases ever.
 * - That a job is settled is recorded in the journal some time after it is, and its events are counted there then
 *   (node/jobs/metrics.h). Where it is not recorded, the job is read at the start as the open ones are.
 * - If one cannot be read, `lost` says why. Who decides or removes something because there is no other job, asks jobs_whole() before.
 */
#ifndef TOMONODE_NODE_JOBS_SETTLED_H
#define TOMONODE_NODE_JOBS_SETTLED_H

#include "node/jobs/jobs.h"

#define JOBS_SETTLED_KEPT 1024 /* settled jobs in memory from which on jobs_forget_settled() is worth its while */

/* Read the jobs that are not settled: what the first jobs_refresh() of all jobs does. now > 0 (s since the epoch), in the manager:
 * record those among them that are, in between, so that a journal without records needs no memory for all of its jobs. */
int jobs_begin(struct jobs *jobs, struct journal *j, double now, struct err *err);
/* Record the settled jobs in memory that are not recorded. */
int jobs_record_settled(struct jobs *jobs, struct journal *j, double now, struct err *err);
/* Remove recorded jobs from memory if there are more than `keep`. Pointers to them become invalid. */
void jobs_forget_settled(struct jobs *jobs, size_t keep);
/* In a process that records none: see which settled jobs in memory another one has recorded meanwhile. */
int jobs_find_recorded(struct jobs *jobs, struct err *err);
struct jobs_numbers {
	int64_t *list; /* numbers of jobs */
	size_t n, room;
};
int jobs_numbers_add(void *ctx, int64_t job); /* append to a struct jobs_numbers; ENOMEM */
/* Append the jobs in this state that were done (delivered, cleaned, cancelled) at `until` or before, the earliest first. Those that
 * are in no memory are not read. Errors of the journal; ENOMEM. */
int jobs_in_state(const struct jobs *jobs, enum job_state state, double until, struct jobs_numbers *ret, struct err *err);
/* Return true if a job that is not in memory is recorded as delivered. It is not read for that. */
bool jobs_is_recorded_delivered(const struct jobs *jobs, int64_t id);
/* Return when a job was delivered or cancelled, or first seen so if that is earlier, or cleaned: the clock may have been ahead. */
double job_view_done(const struct job_view *v);
/* 0, or the error because of which a job was not found since the last jobs_refresh() that may be of the study or the series of v;
 * v NULL: any job. */
int jobs_whole(const struct jobs *jobs, const struct job_view *v, struct err *err);
/* The hash of the study of a case without a Study Instance UID. */
#define JOBS_NO_STUDY 0xcbf29ce484222325u
/* Read the settled jobs whose patient's ID is that of v, the newest 240, so that they are in `list`. */
void jobs_read_patient(const struct jobs *jobs, const struct job_view *v);
/* Set id, state and what persons search for in a view that has nothing else, and borrows words, a copy of row->words.
 * *ret_series: the UIDs of the result's series, in lines. */
#define JOBS_WORDS_SIZE 4096 /* bytes; longer ones are cut: of series, the first 50 are there */
void jobs_settled_view(const struct settled_row *row, char words[JOBS_WORDS_SIZE], struct job_view *ret, const char **ret_series);

/* ---- for jobs.c ---- */
bool job_view_is_settled(const struct job_view *v);
/* Return the entry of a destination, a new one if there is none; NULL: no memory. */
struct jobs_reached *jobs_get_reached(struct jobs *jobs, const char *destination);
struct job_view *jobs_in_memory(const struct jobs *jobs, int64_t id); /* NULL: it is not there */
void jobs_take_from_open(struct jobs *jobs, const struct job_view *v);
/* Read a job that is not in memory. 1: it is now; 0: there is none; negative: error, in `lost`. */
int jobs_read_one(struct jobs *jobs, int64_t id);
/* Read the settled jobs with this hash that are not in memory. */
int jobs_read_related(struct jobs *jobs, enum settled_relation relation, uint64_t hash);

#endif
