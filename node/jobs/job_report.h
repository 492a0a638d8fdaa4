/* Jobs for people and for programs: tables and JSON out of the journal, for `list` and `show`. */
#ifndef TOMONODE_NODE_JOB_REPORT_H
#define TOMONODE_NODE_JOB_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "node/jobs/jobs.h"

/* One job; a destination that it waits for behind others has "blocked_by" after delivery_queue_update(). `spool` is where a
 * running worker leaves its progress. New reference, NULL: no memory. */
json_t *job_report_view(const struct job_view *v, const char *spool);

/* What a running worker says of itself: {"stage", "fraction", ...}; NULL: nothing that can be read. Its folder is the worker's,
 * so this waits for nothing and follows no link, whatever lies there. New reference. */
json_t *job_report_progress(const char *spool, int64_t job);

/* Every event of a job: [{"seq", "time", "event", "detail"}]; a detail that does not parse is null. */
json_t *job_report_events(struct journal *j, int64_t job, struct err *err);
/* The Study Instance UID of a job, out of job_report_events(), which it belongs to; "": not known. */
const char *job_report_study(const json_t *events);
json_t *job_report_instances(struct journal *j, int64_t job, struct err *err);
/* What the indexer set apart, newest first: [{"instance", "classification", "sop", "calling", "association", "received", "file",
 * "reason"}]; `max` of each classification. */
json_t *job_report_unassigned(struct journal *j, int max, struct err *err);
/* The same by groups (node/jobs/job_unassigned.c): [{"count", and of the newest "instance", "classification", "calling",
 * "association", "received", "reason"; of the oldest "first_received"}]. And what to do about a group, in a sentence. */
json_t *job_report_unassigned_groups(const json_t *unassigned);
const char *job_report_unassigned_hint(const json_t *group);

/* Where the time went: [{"stage", "seconds"}], in order, out of job_report_view() and job_report_events(). "receive" comes before
 * the last C-STORE response; all others follow it one upon the other, so that they add up to the time from there to the last
 * destination. Only stages that are over. A pure function of its arguments. */
json_t *job_report_stages(const json_t *view, const json_t *events);

void job_report_print_list(FILE *to, const json_t *jobs, const json_t *unassigned);
void job_report_print_show(FILE *to, const json_t *show);

#endif
