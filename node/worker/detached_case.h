/* SPDX-License-Identifier: Apache-2.0 */
/* One case of a pilot, in its worker: read the order from ROOT/work/JOB-ATTEMPT.order, reconstruct it from files below ROOT into
 * ROOT/work/JOB-ATTEMPT/, write the outcome, a message WIRE_OUTCOME, to ROOT/work/JOB-ATTEMPT.outcome. */
#ifndef TOMONODE_NODE_DETACHED_CASE_H
#define TOMONODE_NODE_DETACHED_CASE_H

#include "kernels/device.h"
#include "recon/core/monitor.h"
#include "recon/pet/pet.h"

/* 0: the outcome is written; ECANCELED: the monitor cancelled, no outcome; EHWPOISON: the device failed, no outcome. */
int detached_case_run(const char *root, int64_t job, int64_t attempt, struct device *dev, struct pet_cache *cache,
		      const struct monitor *monitor, struct err *err);

#endif
