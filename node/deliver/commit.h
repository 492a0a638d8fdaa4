/* Storage commitment: what a report means for its job, whoever brought it; and what becomes of a request that failed.
 *
 * A transaction is on record (`commit-requested`) before its request goes out, so that a report finds its job at any time: on the
 * association of the request, on one of the peer's, after a restart, twice. A commitment is believed whenever it comes. That
 * something is not committed counts only for the transaction that is open: then it is sent again, and asked for again.
 */
#ifndef TOMONODE_NODE_COMMIT_H
#define TOMONODE_NODE_COMMIT_H

#include <jansson.h>

#include "dicom/network/commit.h"
#include "node/deliver/deliver.h"
#include "node/jobs/jobs.h"

/* The status to answer the report with; on the way everything is written to the journal and logged. calling: who brought it. */
uint16_t commit_apply_report(struct journal *j, const struct config *config, const struct commit_report *report,
			     const char *calling, double now);

/* A request that its peer did not keep: `commit-failed`, or, after as many as the destination gets, `commit-refused`; with the
 * detail for it. uids: the objects that are sent again (taken over); NULL: all of the transaction. */
enum job_event commit_expired_event(const struct destination_conf *d, const struct job_send *send, const char *reason,
				    json_t *uids, double now, json_t **ret_detail);

/* A status of an N-ACTION response; DELIVER_STORED: the peer has the request. */
enum deliver_outcome commit_classify(uint16_t status, const char **ret_meaning);

#endif
