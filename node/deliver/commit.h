/* SPDX-License-Identifier: Apache-2.0 */
/* Storage commitment: apply a report to its job, by whatever association it arrives, and decide what follows a failed request.
 *
 * A transaction is recorded (`commit-requested`) before its request is sent, so that a report always finds its job: on the
 * request's association or on one that the peer opens, after a restart, or twice. A report of success is accepted at any time. A
 * report of failure counts only for the open transaction: its objects are then sent, and their commitment requested, again.
 */
#ifndef TOMONODE_NODE_COMMIT_H
#define TOMONODE_NODE_COMMIT_H

#include <jansson.h>

#include "dicom/network/commit.h"
#include "node/deliver/deliver.h"
#include "node/jobs/jobs.h"

/* Write the report's outcome to the journal and the log. Returns the status for the response. calling: AE title of the sender. */
uint16_t commit_apply_report(struct journal *j, const struct config *config, const struct commit_report *report,
			     const char *calling, double now);

/* Return the event for a request that the peer did not fulfil, and its detail: `commit-failed`, or `commit-refused` once the
 * destination's number of attempts is used up. uids: the objects to send again (the reference is taken over); NULL: all objects
 * of the transaction. */
enum job_event commit_failure_event(const struct destination_conf *d, const struct job_send *send, const char *reason,
				    json_t *uids, double now, json_t **ret_detail);

/* Classify the status of an N-ACTION response. DELIVER_STORED: the peer accepted the request. */
enum deliver_outcome commit_classify(uint16_t status, const char **ret_meaning);

#endif
