/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the plans of tomosynthesis, PET and parallel beams: reject a value, determine the memory limit, format
 * bytes. */
#ifndef TOMONODE_RECON_PLAN_H
#define TOMONODE_RECON_PLAN_H

#include "kernels/device.h"

struct plan_bytes {
	size_t total, volumes, data, tables;
};

/* Return EINVAL with the message "KEY=FOUND; allowed: ALLOWED". */
int plan_refuse(struct err *err, const char *key, double found, const char *allowed);
/* Return the bytes that a plan may use on the device: `asked` (0: no limit requested), but not more than the device has; 0:
 * unknown. */
size_t plan_limit(const struct device *dev, size_t asked);
double plan_gigabytes(size_t bytes);
/* Return ENOMEM: neither everything at once nor the least part (named by `part`, "one slice") fits. */
int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err);

#endif
