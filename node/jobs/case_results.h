/* SPDX-License-Identifier: Apache-2.0 */
/* Further results of a case: those of the other protocols of its routes, and those that a person requests (`redo`).
 *
 * - Each result is a job of its own, with all instances of the case's first job of this revision (`result_of`) as members, so
 *   that it has its own state, destinations and storage commitment, and its failure does not affect the others.
 * - The other protocols are in the `complete` event of the first job ("further"). The manager opens their jobs when the first
 *   job has been started: from then on it accepts no more instances. A later instance makes a revision of the first job, and
 *   that one its own further results. A result that has not been started when a newer one of the same protocol is opened is
 *   cancelled.
 * - A result's `opened` event has all that it needs: protocol, settings, destinations, the person's decisions about the case. Its
 *   `complete` event is made of it, also when it is retried; retries of a redo find its settings again.
 */
#ifndef TOMONODE_NODE_CASE_RESULTS_H
#define TOMONODE_NODE_CASE_RESULTS_H

#include <jansson.h>

#include "node/config/config.h"
#include "node/jobs/jobs.h"

#define RESULTS_MAX 1000 /* results of the same instances, those that were made again included */

/* Return true if two jobs are results of the same first job, of all or of fewer of its instances. */
bool case_results_same_images(const struct job_view *a, const struct job_view *b);
/* Return true if two jobs are results of the same instances. */
bool case_results_same(const struct job_view *a, const struct job_view *b);
/* Return true if a job that waits for a worker, or will do so, is a result of the same instances as v. */
bool case_results_follow(const struct jobs *jobs, const struct job_view *v);

/* Return the detail of a job's `opened` event, a new reference; NULL: err has the reason. */
json_t *case_results_opening(struct journal *j, int64_t job, struct err *err);
/* Open the next job of the further results of v (a first job that was started) that has none. 1: opened, call again after
 * refreshing the view; 0: all are open; ESTALE: the journal changed meanwhile. */
int case_results_open_next(struct journal *j, const struct jobs *jobs, const struct job_view *v, double now, struct err *err);
/* Return true if v is a further result that waits, and a newer revision of it exists. */
bool case_results_is_replaced(const struct jobs *jobs, const struct job_view *v);

/* Return the detail of the `complete` event of a job with v->other.of > 0, a new reference; NULL: err has the reason (ENOKEY,
 * EBADMSG: a person must act). */
json_t *case_results_complete(struct journal *j, const struct config *config, const struct job_view *v, struct err *err);

/* What a person requests. */
struct redo_request {
	const char *protocol;	     /* NULL: that of the job */
	const char *const *settings; /* "KEY=VALUE" of the protocol */
	size_t n_settings;
	const char *where, *by; /* "on the command line", "user ann" */
};
/* Why a job cannot be reconstructed again, as a sentence; NULL: it can. */
const char *redo_obstacle(const struct job_view *v);
/* Write what a person can do instead of a request that the state of the job does not allow: "; to reconstruct its images again:
 * `tomonode redo 17`", or "" where that is not possible either. */
void redo_hint(const struct job_view *v, char *ret_text, size_t size);
/* Open a job that reconstructs the instances of v again, into a new series, for the destinations of v. It has an `opened` event
 * only; the manager completes it in its next step (schedule.c: complete_result()), and runs and delivers it like any other.
 * EINVAL: the protocol or a setting is not allowed; ESTALE: redo_obstacle(). */
int redo_open(struct journal *j, const struct jobs *jobs, const struct config *config, const struct job_view *v,
	      const struct redo_request *request, double now, int64_t *ret_job, struct err *err);

/* Write the protocol of a job with its settings: "dbt-osem, voxel=2". Returns ret_text. */
const char *case_results_protocol(const struct job_view *v, char ret_text[OTHER_RESULT_TEXT]);

#endif
