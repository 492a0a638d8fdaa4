/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of the work processes that handle one job and one of its destinations: `deliver` and `commit`. */
#ifndef TOMONODE_NODE_SEND_PROCESS_H
#define TOMONODE_NODE_SEND_PROCESS_H

#include <jansson.h>

#include "node/base/exit_code.h"
#include "node/jobs/jobs.h"
#include "node/process/work_process.h"

struct send_process {
	struct work_process process;
	struct jobs jobs;
	int64_t job;
	const struct job_view *view;		    /* the job, as of the last jobs_refresh() */
	const struct job_send *send;		    /* its state at the destination */
	const struct destination_conf *destination; /* configuration of the destination */
};

/* Run the command NAME -c FILE JOB DESTINATION: start the process, enter the sandbox, find the job and the destination, call
 * run(p), which returns an exit code. The caller sets *p to zero. Return the exit code. CODE_NOT_FOUND: the job does not
 * exist or does not have this destination; CODE_CANCELLED: the configuration does not have the destination. */
int send_process_run(struct send_process *p, const char *name, int (*run)(struct send_process *p), int argc, char **argv);

/* Append an event of the job, and wake the node. detail: taken over; now: s since the epoch. CODE_OK; CODE_CANCELLED: the event
 * no longer applies to the job's state; CODE_FAILED: logged. */
int send_process_append(struct send_process *p, enum job_event event, json_t *detail, double now);

#endif
