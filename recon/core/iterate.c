/* SPDX-License-Identifier: Apache-2.0 */
/* iterate.c - the iteration with all data on the device. If the operator has fused passes, it uses them and stores neither line
 * integrals nor sums. It computes A_s'd of a subset (for EM its sensitivity) again in every step, unless the subset keeps it,
 * which needs memory for one volume per subset. With a penalty the sums are stored, because a voxel cannot be updated while its
 * neighbours need its value. */
#include "recon/core/iterate.h"

#include <errno.h>

size_t iterate_work_size(size_t n_in, size_t largest_n_out, bool fused, bool prior)
{
	return 2 * largest_n_out + (fused ? 0 : largest_n_out) + (fused && !prior ? 0 : 2 * n_in);
}

int iterate_work_alloc(struct session_memory *m, size_t n_in, size_t largest_n_out, bool fused, bool prior,
		       struct iterate_work *ret_work, struct err *err)
{
	*ret_work = (struct iterate_work){0};
	session_alloc(m, 2 * largest_n_out, &ret_work->pair, err);
	if (!fused)
		session_alloc(m, largest_n_out, &ret_work->p, err);
	if (!fused || prior) {
		session_alloc(m, n_in, &ret_work->num, err);
		session_alloc(m, n_in, &ret_work->den, err);
	}
	return m->rc;
}

int iterate_work_alloc_kept(struct session_memory *m, size_t n_in, size_t largest_n_out, struct iterate_work *ret_work,
			    struct err *err)
{
	*ret_work = (struct iterate_work){0};
	session_alloc(m, largest_n_out, &ret_work->p, err);
	return session_alloc(m, n_in, &ret_work->num, err);
}

int iterate_check(const struct iterate_conf *conf, struct err *err)
{
	const struct rule *r = &conf->rule;

	if (conf->iterations < 1 || !rule_is_known(r->kind) || !(r->bin_floor > 0) || !(r->voxel_floor > 0))
		return err_set(err, EINVAL, "iteration: iterations=%d, rule=%d, bin_floor=%g or voxel_floor=%g is invalid",
			       conf->iterations, (int)r->kind, (double)r->bin_floor, (double)r->voxel_floor);
	if (rule_has_step(r->kind) && !(r->step > 0 && r->step < 2))
		return err_set(err, EINVAL, "iteration: relaxation %g; allowed: between 0 and 2", (double)r->step);
	if (!(conf->relaxation >= 0))
		return err_set(err, EINVAL, "iteration: relaxation of %g per pass; allowed: 0 or more", conf->relaxation);
	return 0;
}

/* Check a subset whose den is kept. Parts that load() fills are checked only after loading. */
static int check_kept(const struct iterate_conf *conf, const struct iterate_subset *s, size_t index, const struct iterate_work *w,
		      const struct buf *x, struct err *err)
{
	if (!rule_keeps_den(conf->rule.kind))
		return err_set(err, EINVAL,
			       "iteration: subset %zu the divisor of rule %d changes with the image and cannot be kept", index,
			       (int)conf->rule.kind);
	if (s->den.n != x->n || w->num.n != x->n || (conf->scale && conf->scale->n != x->n) || (conf->prior && !conf->grid))
		return err_set(err, EINVAL, "iteration: subset %zu: buffers for sums have %zu and %zu floats, the volume has %zu",
			       index, s->den.n, w->num.n, x->n);
	return 0;
}

static int check_part(const struct rule *rule, const struct iterate_part *part, const struct iterate_work *w, const struct buf *x,
		      struct err *err)
{
	const struct linop *op = part->op;

	if (op->dev != x->dev || op->n_in != x->n || op->n_out != part->y.n || op->n_out > w->p.n ||
	    (rule_needs_length(rule->kind) && op->n_out != part->row.n))
		return err_set(
			err, EINVAL,
			"iteration: an operator of %zu x %zu does not fit %zu data, a volume of %zu and a work vector of %zu",
			op->n_out, op->n_in, part->y.n, x->n, w->p.n);
	return 0;
}

static int check_subsets(const struct iterate_conf *conf, const struct iterate_subset *subset, size_t n_subsets,
			 const struct iterate_work *w, const struct buf *x, struct err *err)
{
	int r = iterate_check(conf, err);

	if (r < 0)
		return r;
	for (size_t s = 0; s < n_subsets; s++) {
		const struct linop *op = subset[s].op;
		bool rows = rule_needs_length(conf->rule.kind);

		if (subset[s].n_parts) {
			if ((r = check_kept(conf, &subset[s], s, w, x, err)) < 0)
				return r;
			continue;
		}
		if (op->dev != x->dev || op->n_in != x->n || op->n_out != subset[s].y.n ||
		    (rows && op->n_out != subset[s].row.n) || 2 * op->n_out > w->pair.n)
			return err_set(err, EINVAL,
				       "iteration: subset %zu: an operator of %zu x %zu does not fit %zu data, %zu row lengths, "
				       "a volume of %zu and a work vector of %zu",
				       s, op->n_out, op->n_in, subset[s].y.n, subset[s].row.n, x->n, w->pair.n);
		if ((!linop_fused(op) && op->n_out > w->p.n) ||
		    ((!linop_fused(op) || conf->prior) && (w->num.n != x->n || w->den.n != x->n)))
			return err_set(
				err, EINVAL,
				"iteration: subset %zu: its operator has no fused passes or there is a prior, but the work "
				"memory has no buffers for sums",
				s);
	}
	return n_subsets ? 0 : err_set(err, EINVAL, "iteration: no subsets");
}

/* Compute the pairs (q, d) of a subset. */
static int project_pair(const struct rule *rule, const struct iterate_subset *s, struct iterate_work *w, struct buf *pair,
			const struct buf *x, struct err *err)
{
	const struct buf *row = s->row.mem ? &s->row : NULL;
	struct buf p;
	int r;

	if (linop_fused(s->op))
		return s->op->apply_pair(s->op, rule, x, &s->y, row, pair, err);
	p = buf_part(&w->p, 0, s->y.n);
	if (rule_needs_line(rule->kind))
		r = s->op->apply(s->op, x, &p, err); /* p = A x */
	else
		r = x->dev->ops->fill(&p, 0, err);
	if (r == 0 && s->away.mem)
		r = x->dev->ops->axpy(1, &s->away, &p, err);
	return r < 0 ? r : s->op->make_pair(s->op, rule, &s->y, &p, row, pair, err);
}

static int step_plain(const struct iterate_conf *conf, const struct rule *rule, const struct iterate_subset *s,
		      struct iterate_work *w, struct buf *pair, struct buf *x, struct err *err)
{
	const struct device_ops *v = x->dev->ops;
	int r = project_pair(rule, s, w, pair, x, err);

	if (r == 0)
		r = s->op->adjoint_sums(s->op, pair, false, &w->num, &w->den, err);
	if (r == 0 && conf->prior)
		r = v->prior_sums(conf->prior, x, conf->grid, NULL, rule_is_ratio(rule->kind), &w->num, &w->den, err);
	return r < 0 ? r : v->rule_voxels(rule, &w->num, &w->den, x, err);
}

static const struct buf *buf_or_null(const struct buf *b)
{
	return b->mem ? b : NULL;
}

/* Compute num = A'q (or num += A'q) of one part. */
static int back_part(const struct iterate_conf *conf, struct iterate_part *part, bool add, struct iterate_work *w,
		     const struct buf *x, struct err *err)
{
	struct buf p;
	int r = conf->load ? conf->load(conf->ctx, part, err) : 0;

	if (r < 0 || (r = check_part(&conf->rule, part, w, x, err)) < 0)
		return r;
	p = buf_part(&w->p, 0, part->y.n);
	if (rule_needs_line(conf->rule.kind))
		r = part->op->apply(part->op, x, &p, err); /* p = A x */
	else
		r = x->dev->ops->fill(&p, 0, err);
	if (r == 0)
		r = x->dev->ops->rule_bins(&conf->rule, &part->y, &p, buf_or_null(&part->row), buf_or_null(&part->mult),
					   buf_or_null(&part->add), &p, err);
	if (r < 0)
		return r;
	return add ? part->op->adjoint_add(part->op, &p, &w->num, err) : part->op->adjoint(part->op, &p, &w->num, err);
}

static int step_kept(const struct iterate_conf *conf, const struct rule *rule, const struct iterate_subset *s,
		     struct iterate_work *w, struct buf *x, struct err *err)
{
	const struct device_ops *v = x->dev->ops;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_parts; i++)
		r = back_part(conf, &s->part[i], i > 0, w, x, err);
	if (r == 0 && conf->prior)
		r = v->prior_sums(conf->prior, x, conf->grid, NULL, false, &w->num, NULL, err);
	if (r == 0 && conf->scale && (r = v->axpy(-1, &s->den, &w->num, err)) == 0) /* num - den = (num - den + scale) - scale */
		r = v->axpy(1, conf->scale, &w->num, err);
	return r < 0 ? r : v->rule_voxels(rule, &w->num, conf->scale ? conf->scale : &s->den, x, err);
}

int iterate_run(const struct iterate_conf *conf, const struct iterate_subset *subset, size_t n_subsets, struct iterate_work *work,
		struct buf *x, const struct monitor *monitor, struct err *err)
{
	size_t steps = n_subsets * (size_t)(conf->iterations > 0 ? conf->iterations : 0);
	int r = check_subsets(conf, subset, n_subsets, work, x, err);

	for (size_t step = 0; r == 0 && step < steps; step++) {
		const struct iterate_subset *s = &subset[step % n_subsets];
		struct buf pair = buf_part(&work->pair, 0, 2 * s->y.n);
		struct rule rule = conf->rule;

		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled after %zu of %zu steps", step, steps);
		rule.step /= (float)(1 + conf->relaxation * (double)(step / n_subsets));
		if (s->n_parts)
			r = step_kept(conf, &rule, s, work, x, err);
		else if (linop_fused(s->op) && !conf->prior)
			r = s->op->sub_iterate(s->op, &rule, &s->y, s->row.mem ? &s->row : NULL, &pair, x, err);
		else
			r = step_plain(conf, &rule, s, work, &pair, x, err);
		if (r == 0)
			monitor_progress(monitor, "reconstruct", (double)(step + 1) / (double)steps);
	}
	return r;
}
