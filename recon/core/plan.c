/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the error messages and the memory limit that all plans share. */
#include "recon/core/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

unsigned plan_conditions(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return (algorithm_iterates(a) ? PLAN_ITERATES : 0U) | (i->update == UPDATE_SUBSETS ? PLAN_SUBSETS : 0U) |
	       (i->update == UPDATE_RAYS ? PLAN_RAYS : 0U) | (i->filtered ? PLAN_FILTERED : 0U) |
	       (i->rule == RULE_SART ? PLAN_SART : 0U) | (i->rule == RULE_EM_RELAXED ? PLAN_RELAXED : 0U);
}

static double value_of(const void *protocol, const struct plan_range *r)
{
	const char *at = (const char *)protocol + r->at;
	double real;
	int whole;

	memcpy(&whole, at, sizeof(whole));
	if (r->real)
		memcpy(&real, at, sizeof(real));
	return r->real ? real : whole;
}

/* Return whether a value is allowed; false for NaN. */
static bool is_allowed(const struct plan_range *r, double highest, double x)
{
	if (r->words)
		return x >= 0 && x < 32 && r->choices >> (unsigned)x & 1;
	return (r->zero && x == 0) || ((r->above ? x > r->lowest : x >= r->lowest) && (r->below ? x < highest : x <= highest));
}

/* Write for example "0 (none), 0.1 to 50 mm". */
static void describe_range(const struct plan_range *r, double highest, char *ret, size_t size)
{
	int n = r->zero ? snprintf(ret, size, "0 (%s)%s", r->zero, r->lowest == 0 ? " to " : ", ") : 0;

	if (!r->zero || r->lowest != 0)
		n += snprintf(ret + n, size - (size_t)n, "%s%g%s", r->above ? "more than " : "", r->lowest,
			      r->below	 ? ", less than "
			      : r->above ? ", up to "
					 : " to ");
	snprintf(ret + n, size - (size_t)n, "%.9g%s%s%s", highest, r->unit ? r->unit : "", r->of ? ", the number of " : "",
		 r->of ? r->of : "");
}

int plan_check(const void *protocol, const struct plan_range *ranges, unsigned used, size_t count, struct err *err)
{
	for (const struct plan_range *r = ranges; r->name; r++) {
		double highest = r->of ? (double)count : r->highest, x = value_of(protocol, r);
		char allowed[200];

		if ((r->when & ~used) || is_allowed(r, highest, x))
			continue;
		describe_range(r, highest, allowed, sizeof(allowed));
		return err_set(err, EINVAL, "%s=%g; allowed: %s", r->name, x, r->words ? r->words : allowed);
	}
	return 0;
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
