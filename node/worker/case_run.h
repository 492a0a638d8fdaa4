/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruct one case on a device: verify its files, compute, write the result, describe it. Without a journal: the order says
 * what to do, the outcome what came of it. Used by a worker of the node and by that of a pilot. */
#ifndef TOMONODE_NODE_CASE_RUN_H
#define TOMONODE_NODE_CASE_RUN_H

#include "kernels/device.h"
#include "node/config/config.h"
#include "node/jobs/case_order.h"
#include "node/reconstruct/reconstruct.h"
#include "recon/core/monitor.h"
#include "recon/pet/pet.h"

/* What a worker keeps of its last case for another result of the same images. All zero: nothing. */
struct case_kept {
	struct reconstruct_kept data;
	struct case_order order; /* of that case */
	const struct config *config;
};
void case_kept_clear(struct case_kept *kept);

struct case_run_conf {
	const struct config *config;
	struct device *dev;
	struct pet_cache *cache; /* of the device; the run may add to it and does not free it */
	struct case_kept *kept;	 /* of the worker; NULL: nothing is kept. Freed where it is not of this case's files */
	const char *folder;	 /* that the names of the files are relative to */
	const char *out_dir;	 /* exists and is empty */
	const struct monitor *monitor;
	const struct step_runner *steps; /* NULL: it cannot run steps */
};

/* outcome->why.code: 0: the result is in out_dir, and the detail names its objects as files of outbox/JOB. EBADMSG with
 * outcome->damaged > 0: files differ from those received. ECANCELED: the monitor cancelled. EHWPOISON: the device failed.
 * With order->keep, what the next result of the same files can use remains in conf->kept after a success, if there is memory for
 * it, and the bytes in kept->data.bytes remain reserved. Files that it has are neither verified nor read again. */
void case_run(const struct case_run_conf *conf, const struct case_order *order, struct case_outcome *ret_outcome);

#endif
