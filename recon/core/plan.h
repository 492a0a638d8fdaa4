/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the plans of tomosynthesis, PET and parallel beams share: reject a value, determine the memory limit, report
 * memory that is too small. */
#ifndef TOMONODE_RECON_PLAN_H
#define TOMONODE_RECON_PLAN_H

#include <stdbool.h>

#include "kernels/device.h"

struct plan_bytes {
	size_t total, volumes, data, tables;
};

/* Return EINVAL with the message "KEY=FOUND; allowed: ALLOWED". */
int plan_refuse(struct err *err, const char *key, double found, const char *allowed);
/* Return the number of bytes that a plan may use on the device: `asked` (0: no limit requested), but not more than the device
 * has. Return 0 if no limit is requested and the device's memory is unknown. */
size_t plan_limit(const struct device *dev, size_t asked);
const char *plan_limit_name(const struct device *dev, size_t limit); /* the key, or the device's memory */
double plan_megabytes(size_t bytes);
/* A limit counts the working memory of one thread, so that the plan, and with it every bit of the image, is the same for any
 * number of threads. Set *ret_bytes to the working memory of all further threads, `scratch` bytes each; ENOMEM: `total` and these
 * exceed the device's memory. */
int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err);
size_t plan_further_threads(const struct device *dev, size_t scratch); /* that working memory alone */
/* Return whether this process may use the memory of a plan on the CPU (device->host_memory): `total` with the working memory of
 * every thread, and `host` bytes beside the device. Always true for another device. */
bool plan_fits_host(const struct device *dev, size_t total, size_t scratch, size_t host);
/* Return ENOMEM with a message: neither the whole volume fits into `limit` bytes nor the smallest part that can be computed at a
 * time; `part` is its name, for example "one slice". */
int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err);

#endif
