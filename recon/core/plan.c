/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the error messages and the memory limit that all plans share. */
#include "recon/core/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int plan_check(const void *protocol, const struct key *keys, size_t n, const struct plan_range *wider, size_t count,
	       const char *of, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct key key = keys[i];
		char found[40], allowed[300];

		for (const struct plan_range *r = wider; r && r->key; r++)
			if (!strcmp(r->key, key.name)) {
				key.lo = r->lowest;
				key.hi = r->highest;
				key.zero = r->zero ? r->zero : key.zero;
			}
		if (!strcmp(key.name, "subsets")) {
			key.hi = (double)count;
			snprintf(key.unit, sizeof(key.unit), "(all %s)", of);
		}
		if (!key_is_used(keys, n, &key, protocol) || key_holds(&key, protocol))
			continue;
		key_allowed(&key, allowed, sizeof(allowed));
		key.type = key.type == KEY_CHOICE ? KEY_INT : key.type; /* a value without a word */
		key_format(&key, protocol, found, sizeof(found));
		return err_set(err, EINVAL, "%s=%s; allowed: %s", key.name, found, allowed);
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

void plan_count(struct plan_bytes *b, struct device *dev, const struct projection_spec *spec)
{
	size_t scratch = dev->ops->scratch_bytes(dev, spec);

	b->tables += dev->ops->projection_bytes(dev, spec);
	b->scratch = scratch > b->scratch ? scratch : b->scratch;
}

static size_t further_threads(const struct device *dev, size_t scratch)
{
	return scratch * (size_t)(dev->threads > 1 ? dev->threads - 1 : 0);
}

void plan_sum(struct plan_bytes *b, const struct device *dev)
{
	b->tables += b->scratch;
	b->total = b->volumes + b->data + b->tables;
	b->threads = further_threads(dev, b->scratch);
}

static bool is_cpu(const struct device *dev)
{
	return strcmp(dev->ops->kind, "cpu") == 0;
}

static bool limits_host(const struct device *dev)
{
	return dev->host_memory > 0 && is_cpu(dev);
}

size_t plan_main_memory(const struct plan_bytes *b, const struct device *dev)
{
	return b->host + (is_cpu(dev) ? b->total + b->threads : 0);
}

bool plan_fits(const struct plan_bytes *b, const struct device *dev, size_t limit, bool host, size_t beside)
{
	return (limit == 0 || b->total <= limit) &&
	       (!host || !limits_host(dev) || b->total + b->threads + b->host + beside <= dev->host_memory);
}

int plan_threads(const struct device *dev, size_t total, size_t scratch, size_t *ret_bytes, struct err *err)
{
	size_t further = further_threads(dev, scratch);

	if (dev->memory > 0 && (total > dev->memory || further > dev->memory - total))
		return err_set(err, ENOMEM,
			       "the plan needs %.1f MB on %s, and its %d threads %.1f MB more; the machine has %.1f MB: set "
			       "memory_limit, or use fewer threads (device = \"cpu:N\")",
			       plan_megabytes(total), dev->ops->kind, dev->threads, plan_megabytes(further),
			       plan_megabytes(dev->memory));
	*ret_bytes = further;
	return 0;
}

static bool choice_fits(const struct plan_choices *c, const struct device *dev, size_t limit, bool host)
{
	return plan_fits(c->bytes, dev, limit, host, c->host_beside) &&
	       (!host || c->host_most == 0 || plan_main_memory(c->bytes, dev) <= c->host_most);
}

/* Find the first choice that fits, and set the plan to it. Return 1 if there is one, 0 if not. */
static int find_choice(const struct plan_choices *c, const struct device *dev, size_t limit, bool host, struct err *err)
{
	int none = 0, first = c->n, r = 0; /* those up to `none` do not fit; falling: those from `first` on do */

	for (int i = 0; r == 0 && i < (c->falling ? 1 : c->n); i++)
		if ((r = c->count(c->ctx, i, err)) == 0 && choice_fits(c, dev, limit, host))
			return 1;
	while (r == 0 && c->falling && first - none > 1) {
		int i = first - (first - none) / 2;

		r = c->count(c->ctx, i, err);
		*(choice_fits(c, dev, limit, host) ? &first : &none) = i;
	}
	if (r < 0 || !c->falling || first == c->n)
		return r;
	r = c->count(c->ctx, first, err);
	return r < 0 ? r : 1;
}

/* Neither everything at once fits, nor the smallest parts. */
static int refuse_choices(const struct plan_choices *c, const struct device *dev, size_t limit, struct err *err)
{
	const struct plan_bytes *b = c->bytes;
	struct plan_bytes all;
	int r = c->count(c->ctx, 0, err);

	all = *b;
	if (r == 0)
		r = c->count(c->ctx, c->n - 1, err);
	if (r < 0)
		return r;
	return err_set(
		err, ENOMEM,
		"the plan needs %.1f MB on %s (volumes %.1f, data %.1f, tables %.1f), and with %s at a time %.1f MB (%.1f, "
		"%.1f, %.1f); the limit is %.1f MB (%s)",
		plan_megabytes(all.total), dev->ops->kind, plan_megabytes(all.volumes), plan_megabytes(all.data),
		plan_megabytes(all.tables), c->least, plan_megabytes(b->total), plan_megabytes(b->volumes),
		plan_megabytes(b->data), plan_megabytes(b->tables), plan_megabytes(limit), plan_limit_name(dev, limit));
}

int plan_fit(const struct plan_choices *c, const struct device *dev, size_t memory_limit, struct err *err)
{
	size_t limit = plan_limit(dev, memory_limit);
	int r = find_choice(c, dev, limit, true, err);

	if (r == 0 && (limits_host(dev) || c->host_most > 0))
		r = find_choice(c, dev, limit, false, err);
	if (r == 0)
		return refuse_choices(c, dev, limit, err);
	return r < 0 ? r : plan_threads(dev, c->bytes->total, c->bytes->scratch, &c->bytes->threads, err);
}
