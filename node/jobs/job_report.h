/* SPDX-License-Identifier: Apache-2.0 */
/* Write jobs from the journal as tables and as JSON, for the commands `list` and `show`. */
#ifndef TOMONODE_NODE_JOB_REPORT_H
#define TOMONODE_NODE_JOB_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "node/jobs/jobs.h"

/* Return what every list of jobs says of a job, and of its delivery to one destination, as JSON: new references. j: for the sweeps of its
 * images; NULL: they are of one. */
json_t *job_report_common(const struct job_view *v, struct journal *j);
json_t *job_report_send(const struct job_send *s);
/* Return one job as JSON, with each object of its result. After delivery_queue_update(), a destination has "blocked_by" if another job is tried there first.
 * The progress of a running worker is read from `spool`. New reference; NULL: no memory. */
json_t *job_report_view(const struct job_view *v, struct journal *j, const char *spool);

/* Read the progress file of a running worker: {"stage", "fraction", "time", and, if it is known, "left": seconds of
 * the stage}; NULL: it cannot be read. The worker can write to the
 * folder, which is not trusted: never block and never follow a link. New reference. */
json_t *job_report_progress(const char *spool, int64_t job);

/* Return every event of a job: [{"seq", "time", "event", "detail"}]; a detail that does not parse is null. */
json_t *job_report_events(struct journal *j, int64_t job, struct err *err);
/* An exam has dozens of `instance` and `companion` events: return true for these, and the number of equal ones in a row that the
 * event at this index ends; 0: the next one is of the same row, 1: any other event. */
bool job_report_repeats(const json_t *event);
size_t job_report_run(const json_t *events, size_t at);
/* Return the further results of a case's first job: [{"id", "state", "protocol_text"}]. */
json_t *job_report_further(const struct jobs *jobs, const struct job_view *v);
/* Return where each fact of the newest result is from, an object of texts, borrowed; NULL: not known of this kind. */
const json_t *job_report_facts(const json_t *events);
json_t *job_report_instances(struct journal *j, int64_t job, struct err *err);
/* Return the unassigned instances, newest first: [{"instance", "classification", "sop", "calling", "association", "received",
 * "file", "reason"}]; at most `max` of each classification. */
json_t *job_report_unassigned(struct journal *j, int max, struct err *err);
/* Group the result of job_report_unassigned() by classification, sender, association and reason (node/jobs/job_print.c):
 * [{"count"; of the newest instance "instance", "classification", "calling", "association", "received", "reason"; of the oldest
 * "first_received"}]. */
json_t *job_report_unassigned_groups(const json_t *unassigned);
/* Return a sentence about what a person can do with the instances of a group. */
const char *job_report_unassigned_hint(const json_t *group);

/* Compute the duration of each finished stage: [{"stage", "seconds"}], in order, from job_report_view() and job_report_events().
 * "receive" ends with the last C-STORE response; the other stages follow without gaps, so that their sum is the time from that
 * response to the last delivery. Pure. */
json_t *job_report_stages(const json_t *view, const json_t *events);
/* The time from the last C-STORE response: the sum of all stages but "receive". */
double job_report_total(const json_t *stages);

void job_report_print_list(FILE *to, const json_t *jobs, const json_t *unassigned, const json_t *associations);
void job_report_print_show(FILE *to, const json_t *show);

#endif
