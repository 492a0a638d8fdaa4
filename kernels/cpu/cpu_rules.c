/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rules.c - the update rules over whole vectors: divide the row loops among threads. */
#include "kernels/cpu/cpu.h"

#include <errno.h>

#define CHUNK 8192 /* results per unit of work */

int cpu_rule_check(const struct rule *rule, struct err *err)
{
	if (!rule_is_known(rule->kind))
		return err_set(err, EINVAL, "unknown update rule %d", (int)rule->kind);
	if (!(rule->bin_floor > 0) || !(rule->voxel_floor > 0))
		return err_set(err, EINVAL, "update rule %d: bin_floor=%g, voxel_floor=%g; both must be above 0", (int)rule->kind,
			       (double)rule->bin_floor, (double)rule->voxel_floor);
	if (rule_has_step(rule->kind) && !(rule->step > 0 && rule->step < 2))
		return err_set(err, EINVAL, "update rule %d: relaxation %g; allowed: between 0 and 2", (int)rule->kind,
			       (double)rule->step);
	return 0;
}

static int data_size(const struct buf *b, size_t n, const char *what, struct err *err)
{
	return !b || b->n == n ? 0
			       : err_set(err, EINVAL, "rule_bins: the vector of %s has %zu floats, but there are %zu bins", what,
					 b->n, n);
}

int cpu_rule_bins(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		  const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err)
{
	const struct cpu_state *state = cpu_state(ret_q->dev);
	bool length = rule_needs_length(rule->kind);
	size_t n = ret_q->n;
	int threads = n < 4 * CHUNK ? 1 : state->threads, r = cpu_rule_check(rule, err);

	(void)threads;
	if (r == 0 && length && !row)
		r = err_set(err, EINVAL, "rule_bins: rule %d needs the row lengths (row is NULL)", (int)rule->kind);
	if (r < 0 || (r = data_size(y, n, "data", err)) < 0 || (r = data_size(p, n, "line integrals", err)) < 0 ||
	    (r = data_size(row, n, "row lengths", err)) < 0 || (r = data_size(mult, n, "factors", err)) < 0 ||
	    (r = data_size(add, n, "background", err)) < 0)
		return r;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t at = 0; at < n; at += CHUNK)
		state->rows->bins(rule, y->mem + at, p->mem + at, length ? row->mem + at : NULL, mult ? mult->mem + at : NULL,
				  add ? add->mem + at : NULL, ret_q->mem + at, (int)(n - at < CHUNK ? n - at : CHUNK));
	return 0;
}

int cpu_rule_voxels(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err)
{
	const struct cpu_state *state = cpu_state(x->dev);
	int threads = x->n < 4 * CHUNK ? 1 : state->threads, r = cpu_rule_check(rule, err);
	size_t n = x->n;

	(void)threads;
	if (r < 0)
		return r;
	if (buf_same_size("rule_voxels", num, x, err) < 0 || buf_same_size("rule_voxels", den, x, err) < 0)
		return -EINVAL;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t at = 0; at < n; at += CHUNK)
		state->rows->voxels(rule, num->mem + at, den->mem + at, x->mem + at, (int)(n - at < CHUNK ? n - at : CHUNK));
	return 0;
}

void cpu_rule_weigh(struct projection *a, const struct rule *rule, float *pair)
{
	size_t n = (size_t)a->n_views * scan_view_size(a->scan);
	const float *mask = a->mask.mem;
	float *q = pair, *d = pair + n;
	int threads = n < 4 * CHUNK ? 1 : cpu_state(a->dev)->threads;

	(void)threads;
	if (!rule->weighted || !mask)
		return;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t i = 0; i < n; i++) {
		if (mask[i] > 0 && mask[i] < 1) {
			struct rule_pair weighed = rule_weigh(rule->kind, (struct rule_pair){q[i], d[i]}, mask[i]);

			q[i] = weighed.q;
			d[i] = weighed.d;
		}
	}
}

void cpu_rule_pairs(struct projection *a, const struct rule *rule, const float *y, const float *p, const float *row, float *pair)
{
	const struct cpu_state *state = cpu_state(a->dev);
	size_t n = (size_t)a->n_views * scan_view_size(a->scan);
	const float *mask = a->mask.mem;
	int threads = n < 4 * CHUNK ? 1 : state->threads;

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t at = 0; at < n; at += CHUNK)
		state->rows->pairs(rule, y + at, p ? p + at : NULL, row ? row + at : NULL, mask ? mask + at : NULL, pair + at,
				   pair + n + at, (int)(n - at < CHUNK ? n - at : CHUNK));
}
