/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the error messages and the memory limit that all plans share. */
#include "recon/core/plan.h"

#include <errno.h>

int plan_refuse(struct err *err, const char *key, double found, const char *allowed)
{
	return err_set(err, EINVAL, "%s=%g; allowed: %s", key, found, allowed);
}

size_t plan_limit(const struct device *dev, size_t asked)
{
	return dev->memory > 0 && (asked == 0 || asked > dev->memory) ? dev->memory : asked;
}

double plan_gigabytes(size_t bytes)
{
	return (double)bytes / 1e9;
}

int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err)
{
	return err_set(
		err, ENOMEM,
		"the plan needs %.3f GB on %s (volumes %.3f, data %.3f, tables %.3f), and with %s at a time %.3f GB (%.3f, "
		"%.3f, %.3f); the limit is %.3f GB",
		plan_gigabytes(whole.total), dev->ops->kind, plan_gigabytes(whole.volumes), plan_gigabytes(whole.data),
		plan_gigabytes(whole.tables), part, plan_gigabytes(least.total), plan_gigabytes(least.volumes),
		plan_gigabytes(least.data), plan_gigabytes(least.tables), plan_gigabytes(limit));
}

size_t plan_further_threads(const struct device *dev, size_t scratch)
{
	return scratch * (size_t)(dev->threads > 1 ? dev->threads - 1 : 0);
}

int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err)
{
	size_t further = plan_further_threads(dev, scratch);

	if (dev->memory > 0 && (total > dev->memory || further > dev->memory - total))
		return err_set(err, ENOMEM,
			       "the plan needs %.3f GB on %s, and its %d threads %.3f GB more; the machine has %.3f GB: set "
			       "memory_limit, or use fewer threads (device = \"cpu:N\")",
			       plan_gigabytes(total), dev->ops->kind, dev->threads, plan_gigabytes(further),
			       plan_gigabytes(dev->memory));
	*ret_bytes = further;
	return 0;
}
