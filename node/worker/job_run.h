/* SPDX-License-Identifier: Apache-2.0 */
/* One run of one job: read its order from the journal, have its case reconstructed into outbox/JOB (compute(): a worker does it
 * on its device), and record the outcome in the journal.
 *
 * - The node has appended `started` before; the run appends the one event that ends it. If its process dies before that, the node
 * appends it.
 * - Running twice does no harm: file names and UIDs of the result follow from the sources and the protocol.
 * - Outcome by error: contradictory data, an encoding that cannot be read, no geometry profile: held for a person. The plan does
 * not fit into memory, or a step failed whose `on_failure` is fail: failed. No disk space: try again, not counted as an attempt. The device failed: no event is written, the
 * node gives the job to another device. Any other error: a failed attempt.
 * - If the bytes of a file differ from those received (node/worker/case_check.h), the case is held and the instance is marked as
 * damaged.
 * - Progress is written to work/JOB/status, not to the journal, which is for permanent facts.
 * - After a run the process holds no memory of the case except the cache of the device.
 */
#ifndef TOMONODE_NODE_JOB_RUN_H
#define TOMONODE_NODE_JOB_RUN_H

#include <stdbool.h>

#include "node/jobs/case_order.h"
#include "node/process/work_process.h"
#include "recon/core/monitor.h"

struct job_run_conf {
	struct work_process *process; /* its journal is open */
	int64_t job;
	bool adopted; /* a pilot continues this attempt: keep what the outbox has of it */
	void *ctx;
	/* Reconstruct the case into out_dir as case_run() does: of a worker compute_case() (cmd_worker.c), which calls it; of a
	 * seat seat_compute() (seat_case.c), which lets the pilot do it. */
	void (*compute)(void *ctx, const struct case_order *order, const char *out_dir, const struct monitor *monitor,
			struct case_outcome *ret_outcome);
	void (*alive)(void *ctx);   /* called on progress, at most a few times a second */
	bool (*stopped)(void *ctx); /* polled; true: stop */
};

enum job_run_end {
	JOB_RUN_RECONSTRUCTED,	/* the result is in the outbox */
	JOB_RUN_REFUSED,	/* the case is held or failed; the journal has the reason */
	JOB_RUN_NOT_RUNNING,	/* the job is not, or no longer, running; no event was written */
	JOB_RUN_STOPPED,	/* stopped() returned true; no event was written */
	JOB_RUN_LOST,		/* compute() returned CASE_LOST, see err; no event was written, the outbox is kept */
	JOB_RUN_DEVICE_FAILED,	/* the device failed, see err; no event was written */
	JOB_RUN_JOURNAL_FAILED, /* the journal cannot be read or written, see err */
};

enum job_run_end job_run(const struct job_run_conf *conf, struct err *err);

#endif
