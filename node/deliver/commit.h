/* SPDX-License-Identifier: Apache-2.0 */
/* Storage commitment: apply a peer's report to its job, and decide what to do after a failed request.
 *
 * A transaction is recorded (`commit-requested`) before its request is sent, so that the job of a report can always be found:
 * whether the report arrives on the request's association or on one that the peer opens, after a restart, or twice. Committed
 * objects are accepted from any report. Failed objects are accepted only from a report about the open transaction: they are then
 * sent, and their commitment requested, again.
 */
#ifndef TOMONODE_NODE_COMMIT_H
#define TOMONODE_NODE_COMMIT_H

#include <jansson.h>

#include "dicom/network/commit.h"
#include "node/deliver/deliver.h"
#include "node/jobs/jobs.h"

/* Write the report's outcome to the journal and the log. calling: AE title of the report's sender. Returns the status for the
 * N-EVENT-REPORT response. */
uint16_t commit_apply_report(struct journal *j, const struct config *config, const struct commit_report *report,
			     const char *calling, double now);

/* Refused reports of one association. The first ten are logged individually, the number of the others at the end. who: beginning
 * of the line, "destination=..."; must be safe for the log. */
void commit_log_refused(unsigned long *refused, const char *who, uint16_t status, const char *why);
void commit_log_refused_end(unsigned long refused, const char *who);

/* Return the event for a request that the peer did not fulfil, and its detail: `commit-failed`, or `commit-refused` once the
 * destination's number of attempts is used up. uids: SOP Instance UIDs of the objects to send again (the function releases the
 * reference); NULL: all objects of the transaction. */
enum job_event commit_failure_event(const struct destination_conf *d, const struct job_send *send, const char *reason,
				    json_t *uids, double now, json_t **ret_detail);

/* Classify the status of an N-ACTION response. DELIVER_STORED: the peer accepted the request. */
enum deliver_outcome commit_classify(uint16_t status, const char **ret_meaning);

#endif
