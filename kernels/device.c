/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the functions that are the same for all devices. */
#include "kernels/device.h"

#include <errno.h>
#include <math.h>

struct device *device_close(struct device *dev)
{
	if (dev)
		dev->ops->destroy(dev);
	return NULL;
}

int device_check(const struct device_ops *ops, struct err *err)
{
#define SLOT(f)                                                                                                                  \
	if (!ops->f)                                                                                                             \
	return err_set(err, EINVAL, "device table '%s': function %s is missing", ops->kind ? ops->kind : "?", #f)
	SLOT(kind);
	SLOT(destroy);
	SLOT(alloc);
	SLOT(release);
	SLOT(upload);
	SLOT(download);
	SLOT(host_alloc);
	SLOT(host_free);
	SLOT(upload_begin);
	SLOT(download_begin);
	SLOT(order);
	SLOT(wait);
	SLOT(fill);
	SLOT(copy);
	SLOT(permute);
	SLOT(multiply);
	SLOT(axpy);
	SLOT(threshold);
	SLOT(shape);
	SLOT(blur);
	SLOT(convolve);
	SLOT(transforms);
	SLOT(prior_sums);
	SLOT(rule_bins);
	SLOT(rule_voxels);
	SLOT(sum);
	SLOT(dot);
	SLOT(tally);
	SLOT(store);
	SLOT(log_likelihood);
	SLOT(step_rate);
	SLOT(projection_bytes);
	SLOT(scratch_bytes);
	SLOT(projection_create);
	SLOT(projection_free);
	SLOT(forward);
	SLOT(adjoint);
	SLOT(back_interpolated);
	SLOT(row_sweep);
	SLOT(make_pair);
	SLOT(back_sums);
	SLOT(fused);
	SLOT(forward_pair);
	SLOT(back_update);
	SLOT(sub_iterate);
	SLOT(events_bytes);
	SLOT(events_create);
	SLOT(events_free);
	SLOT(events_sort);
	SLOT(events_forward);
	SLOT(events_back);
	SLOT(events_ratio);
	SLOT(scatter_pairs);
	SLOT(mark);
#undef SLOT
	return 0;
}

int device_check_queue(const struct device *dev, enum device_queue queue, struct err *err)
{
	if (queue != QUEUE_WORK && queue != QUEUE_UP && queue != QUEUE_DOWN)
		return err_set(err, EINVAL, "%s: unknown queue %d", dev->name, (int)queue);
	return 0;
}

int buf_same_size(const char *what, const struct buf *x, const struct buf *y, struct err *err)
{
	if (x->n != y->n)
		return err_set(err, EINVAL, "%s: the vectors have different lengths: %zu and %zu floats", what, x->n, y->n);
	return 0;
}

struct buf buf_part(const struct buf *b, size_t at, size_t n)
{
	struct buf part = {b->dev, b->mem + at, n};

	return part;
}

void buf_release(struct buf *b)
{
	if (!b)
		return;
	if (b->dev && b->mem)
		b->dev->ops->release(b);
	b->dev = NULL;
	b->mem = NULL;
	b->n = 0;
}

int device_check_prior(const struct prior *p, const struct buf *x, const struct grid *g, const int halo[2], const struct buf *num,
		       const struct buf *den, struct err *err)
{
	size_t n = grid_size(g), slice = (size_t)g->n[0] * (size_t)g->n[1], more = halo ? (size_t)(halo[0] + halo[1]) * slice : 0;

	if (!prior_is_valid(p))
		return err_set(err, EINVAL, "%s: prior: beta=%g, gamma=%g, epsilon=%g, level=%g, across=%g", x->dev->name,
			       (double)p->beta, (double)p->gamma, (double)p->epsilon, (double)p->level, (double)p->across);
	if (more > 0 && g->z_fastest)
		return err_set(err, EINVAL, "%s: prior: further slices with a volume stored z fastest", x->dev->name);
	if (x->n != n + more || num->n != n || (den && den->n != n))
		return err_set(err, EINVAL,
			       "%s: prior: volumes of %zu, %zu and %zu floats for a grid of %zu and %zu further voxels",
			       x->dev->name, x->n, num->n, den ? den->n : n, n, more);
	if (x->mem == num->mem || (den && x->mem == den->mem))
		return err_set(err, EINVAL, "%s: prior: num and den must not be x", x->dev->name);
	return 0;
}

int device_check_store(const struct buf *x, const struct stored_form *form, const struct buf *ret_values, struct err *err)
{
	size_t n = form->columns * form->rows;

	if (n == 0 || form->rows > UINT16_MAX || x->n != n || ret_values->n != (n + 1) / 2 || x->mem == ret_values->mem)
		return err_set(err, EINVAL, "%s: store: an image of %zu x %zu in %zu floats, stored in %zu floats", x->dev->name,
			       form->columns, form->rows, x->n, ret_values->n);
	if (!(form->per_step > 0 && isfinite(form->per_step) && isfinite(form->offset) && form->top >= 0 &&
	      form->top <= UINT16_MAX))
		return err_set(err, EINVAL, "%s: store: offset=%g, %g steps per unit, at most %g", x->dev->name,
			       (double)form->offset, (double)form->per_step, (double)form->top);
	return 0;
}

int device_check_scatter(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, const struct buf *ret,
			 struct scatter_model *ret_model, struct err *err)
{
	size_t n = grid_size(spec->grid), results = spec->n_pairs * (size_t)(spec->tof.n > 0 ? spec->tof.n : 1);
	int r = scatter_model_make(spec, ret_model, err);

	if (r < 0)
		return r;
	if (activity->n != n || mu->n != n || ret->n != results || ret->mem == activity->mem || ret->mem == mu->mem)
		return err_set(
			err, EINVAL,
			"%s: single scatter: activity of %zu and mu of %zu floats for %zu voxels, %zu floats for %zu results",
			activity->dev->name, activity->n, mu->n, n, ret->n, results);
	return 0;
}
