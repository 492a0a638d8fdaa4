/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of a job has to do, read from the journal, and what came of it. Neither needs the journal afterwards, so that the
 * case can be computed on another machine. */
#ifndef TOMONODE_NODE_CASE_ORDER_H
#define TOMONODE_NODE_CASE_ORDER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "dicom/object/result_place.h"
#include "node/jobs/case_results.h"
#include "node/jobs/jobs.h"
#include "node/store/journal.h"

struct case_order {
	int64_t job, attempt; /* attempt: seq of its `started` event */
	char protocol[CONFIG_NAME_SIZE];
	bool as_is, same_patient;	    /* what a person decided, see struct case_decision */
	char header[128];		    /* the file whose header counts then; "": none */
	char settings[OTHER_SETTINGS_SIZE]; /* JSON array of "KEY=VALUE", which replace values of the protocol; "": none */
	struct result_place place;	    /* among the results of the case */
	bool keep; /* another result of the same images follows on this worker: keep what it can use. Set by the worker */
	struct instance_row *files; /* in order of arrival; `file` is relative to a folder that is given separately */
	size_t n_files;
};

/* Member of the detail of an outcome: pictures of corrections (node/format/correction_pictures.h), which become a file beside the
 * objects and are not in the journal. Optional. */
#define CASE_PICTURES "pictures"

#define CASE_LOST ECONNRESET /* code of an outcome: unknown, the connection to the pilot is lost */

struct case_outcome {
	struct err why; /* code 0: reconstructed */
	size_t damaged; /* number of files that differ from those received */
	json_t *detail; /* of the event `reconstructed`, but for the member CASE_PICTURES; NULL after an error */
};

/* Read the order for a running job, all but `keep`. EAGAIN: no memory. Negative: *ret_order is empty. */
int case_order_read(struct journal *j, const struct job_view *v, struct case_order *ret_order, struct err *err);
/* Read only `job` and the files. */
int case_order_read_files(struct journal *j, int64_t job, struct case_order *ret_order, struct err *err);
void case_order_clear(struct case_order *order);
void case_outcome_clear(struct case_outcome *outcome);

#endif
