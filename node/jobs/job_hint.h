/* SPDX-License-Identifier: Apache-2.0 */
/* What a person can do about a case: for the page, `show` and JSON. Pure functions of a job's view; all texts are English. */
#ifndef TOMONODE_NODE_JOB_HINT_H
#define TOMONODE_NODE_JOB_HINT_H

#include <jansson.h>

#include "node/jobs/jobs.h"

bool job_is_incomplete(const struct job_view *v); /* held, with fewer images than its headers expect */
/* Return true if the last attempt at a destination that the job waits for failed, or was blocked by that of another job, or
 * if a report of storage commitment did not come or was not good; *ret_alarm: an alarm was raised for it. */
bool job_waits_for_destination(const struct job_view *v, bool *ret_alarm);
/* true: no destination has refused the result, but one never confirmed that it keeps it */
bool job_is_unanswered(const struct job_view *v);

/* Return what a person should do; "": nothing. sweeps: into how many the case can be divided (case_sweeps_offered()). */
const char *job_hint(const struct job_view *v, int sweeps);
/* Return the commands that do it, ["tomonode retry --as-is 17"]; empty: none is needed, or there is one for each sweep. New reference. */
json_t *job_hint_commands(const struct job_view *v, int sweeps);

/* Return the label of the page's button "retry", "as is", "same patient" or "cancel"; NULL: the case does not have this button. */
const char *job_hint_retry(const struct job_view *v);
const char *job_hint_as_is(const struct job_view *v);
const char *job_hint_same_patient(const struct job_view *v);
const char *job_hint_cancel(const struct job_view *v);

#endif
