/* em.c - the only EM loop. MLEM is one subset.
 *
 * Without fused passes one volume holds the sensitivity of the subset at hand. It is computed anew for every sub-iteration of
 * OSEM: keeping all of them takes a volume per subset (3.8 GB for 25 views at 0.34 mm), which is what a system with little memory
 * cannot give.
 */
#include "recon/em.h"

#include <errno.h>

size_t em_work_size(size_t n_in, size_t largest_n_out, bool fused)
{
	return largest_n_out + (fused ? 0 : 2 * n_in);
}

static int sub_iteration_fused(const struct em_conf *conf, const struct em_subset *s, struct buf *x, struct buf *p,
			       struct err *err)
{
	int r = s->op->apply_ratio(s->op, x, &s->y, conf->floor, p, err); /* p = y / A x */

	return r < 0 ? r : s->op->adjoint_update(s->op, p, conf->floor, x, err); /* x = x A'p / A'1 */
}

static int sub_iteration(const struct em_conf *conf, const struct em_subset *s, struct buf *x, struct buf *p, struct buf *c,
			 struct buf *sens, bool sens_known, struct err *err)
{
	const struct device_ops *v = x->dev->ops;
	int r = 0;

	if (!sens_known) {
		r = v->fill(p, 1, err);
		if (r == 0)
			r = s->op->adjoint(s->op, p, sens, err); /* sens = A'1 */
	}
	if (r == 0)
		r = s->op->apply(s->op, x, p, err); /* p = A x */
	if (r == 0)
		r = v->ratio(&s->y, p, conf->floor, p, err); /* p = y / p */
	if (r == 0)
		r = s->op->adjoint(s->op, p, c, err); /* c = A'p */
	if (r == 0)
		r = v->update(x, c, sens, conf->floor, err); /* x = x c / sens */
	return r;
}

static int check(const struct em_conf *conf, const struct em_subset *subset, size_t n_subsets, const struct buf *x,
		 struct err *err)
{
	if (conf->iterations < 1 || !(conf->floor > 0) || n_subsets < 1)
		return err_set(err, EINVAL, "EM: %d iterations over %zu subsets, floor %g", conf->iterations, n_subsets,
			       (double)conf->floor);
	for (size_t s = 0; s < n_subsets; s++)
		if (subset[s].op->dev != x->dev || subset[s].op->n_in != x->n || subset[s].op->n_out != subset[s].y.n)
			return err_set(err, EINVAL, "EM: subset %zu: operator of %zu x %zu for %zu data and a volume of %zu", s,
				       subset[s].op->n_out, subset[s].op->n_in, subset[s].y.n, x->n);
	return 0;
}

int em_run(const struct em_conf *conf, const struct em_subset *subset, size_t n_subsets, struct buf *x,
	   const struct monitor *monitor, struct err *err)
{
	struct buf p = {0}, c = {0}, sens = {0};
	size_t largest = 0, steps = n_subsets * (size_t)(conf->iterations > 0 ? conf->iterations : 0);
	bool fused = true;
	int r = check(conf, subset, n_subsets, x, err);

	if (r < 0)
		return r;
	for (size_t s = 0; s < n_subsets; s++) {
		largest = subset[s].y.n > largest ? subset[s].y.n : largest;
		fused = fused && linop_fused(subset[s].op);
	}
	r = x->dev->ops->alloc(x->dev, largest, &p, err);
	if (r == 0 && !fused)
		r = x->dev->ops->alloc(x->dev, x->n, &c, err);
	if (r == 0 && !fused)
		r = x->dev->ops->alloc(x->dev, x->n, &sens, err);
	for (size_t step = 0; r == 0 && step < steps; step++) {
		const struct em_subset *s = &subset[step % n_subsets];
		struct buf part = buf_part(&p, 0, s->y.n);

		if (monitor_cancelled(monitor)) {
			r = err_set(err, ECANCELED, "reconstruction cancelled after %zu of %zu steps", step, steps);
			break;
		}
		if (fused)
			r = sub_iteration_fused(conf, s, x, &part, err);
		else
			r = sub_iteration(conf, s, x, &part, &c, &sens, n_subsets == 1 && step > 0, err);
		if (r == 0)
			monitor_progress(monitor, "reconstruct", (double)(step + 1) / (double)steps);
	}
	buf_release(&p);
	buf_release(&c);
	buf_release(&sens);
	return r;
}
