/* One attempt at one job: reconstruct its case into outbox/JOB and write down how it went. What the worker does with a job.
 *
 * - The node has written `started`; the attempt writes the one event that ends it. Where its process dies before, the node does.
 * - Nothing it does twice harms: the result's names and UIDs follow from the sources and the protocol.
 * - Refusals by kind: data that contradict themselves, an encoding we do not read, no profile: held, for a person. A plan that
 *   does not fit: failed, it will not fit tomorrow. No space: again, not counted. The device is broken: nothing is written, the
 *   node gives the job to another one. Anything else: an attempt that failed.
 * - Nothing is reconstructed out of files that are not what was received (node/worker/case_check.h): held, and the files are
 * marked.
 * - work/JOB/status says how far it is; not the journal, which is for what lasts.
 * - Nothing of it stays in the process but the device.
 */
#ifndef TOMONODE_NODE_JOB_RUN_H
#define TOMONODE_NODE_JOB_RUN_H

#include <stdbool.h>

#include "kernels/device.h"
#include "node/process/work_process.h"

struct job_run_conf {
	struct work_process *process; /* its journal is open */
	struct device *dev;
	int64_t job;
	void *ctx;
	void (*alive)(void *ctx);   /* called when it makes progress, a few times a second at most */
	bool (*stopped)(void *ctx); /* true: end it */
};

enum job_run_end {
	JOB_RUN_RECONSTRUCTED,	/* the result is in the outbox */
	JOB_RUN_REFUSED,	/* so the journal says */
	JOB_RUN_NOT_RUNNING,	/* the job is not running (any more): nothing was written */
	JOB_RUN_STOPPED,	/* we were told to; nothing was written */
	JOB_RUN_DEVICE_FAILED,	/* the device is broken, err says how; nothing was written */
	JOB_RUN_JOURNAL_FAILED, /* the journal cannot be read or written, err says why */
};

enum job_run_end job_run(const struct job_run_conf *conf, struct err *err);

#endif
