/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the error messages and the memory limit that all plans share. */
#include "recon/core/plan.h"

#include <errno.h>
#include <string.h>

int plan_refuse(struct err *err, const char *key, double found, const char *allowed)
{
	return err_set(err, EINVAL, "%s=%g; allowed: %s", key, found, allowed);
}

size_t plan_limit(const struct device *dev, size_t asked)
{
	return dev->memory > 0 && (asked == 0 || asked > dev->memory) ? dev->memory : asked;
}

const char *plan_limit_name(const struct device *dev, size_t limit)
{
	return limit == dev->memory ? "the device's memory" : "memory_limit";
}

double plan_megabytes(size_t bytes)
{
	return (double)bytes / 1e6;
}

int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err)
{
	return err_set(
		err, ENOMEM,
		"the plan needs %.1f MB on %s (volumes %.1f, data %.1f, tables %.1f), and with %s at a time %.1f MB (%.1f, "
		"%.1f, %.1f); the limit is %.1f MB (%s)",
		plan_megabytes(whole.total), dev->ops->kind, plan_megabytes(whole.volumes), plan_megabytes(whole.data),
		plan_megabytes(whole.tables), part, plan_megabytes(least.total), plan_megabytes(least.volumes),
		plan_megabytes(least.data), plan_megabytes(least.tables), plan_megabytes(limit), plan_limit_name(dev, limit));
}

size_t plan_further_threads(const struct device *dev, size_t scratch)
{
	return scratch * (size_t)(dev->threads > 1 ? dev->threads - 1 : 0);
}

bool plan_fits_host(const struct device *dev, size_t total, size_t scratch, size_t host)
{
	return dev->host_memory == 0 || strcmp(dev->ops->kind, "cpu") != 0 ||
	       total + plan_further_threads(dev, scratch) + host <= dev->host_memory;
}

int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err)
{
	size_t further = plan_further_threads(dev, scratch);

	if (dev->memory > 0 && (total > dev->memory || further > dev->memory - total))
		return err_set(err, ENOMEM,
			       "the plan needs %.1f MB on %s, and its %d threads %.1f MB more; the machine has %.1f MB: set "
			       "memory_limit, or use fewer threads (device = \"cpu:N\")",
			       plan_megabytes(total), dev->ops->kind, dev->threads, plan_megabytes(further),
			       plan_megabytes(dev->memory));
	*ret_bytes = further;
	return 0;
}
