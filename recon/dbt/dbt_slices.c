/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_slices.c - take a volume into a session; read and replace its slices, as floats or in their stored form: while one is copied to the
 * caller's memory, the next one is transferred from the device. The next store() begins when the transfer of the one before has
 * ended, so that one buffer of stored values is enough. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/dbt_internal.h"
#include "recon/dbt/inside.h"

#define SAMPLES 4000000 /* values of a volume used for its histogram */
#define INSIDE_SLICES 8 /* slices used for the histogram of the inside */

static size_t slice_voxels(const struct dbt_session *s)
{
	return (size_t)s->plan->grid.n[0] * (size_t)s->plan->grid.n[1];
}

/* Begin the transfer of slice k in this form; NULL: floats. */
static int begin_transfer(struct dbt_session *s, int k, const struct stored_form *form, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	size_t n = slice_voxels(s);
	struct buf part = buf_part(&s->x, (size_t)k * n, n);
	int r = form ? v->store(&part, form, &s->stored, err) : 0;

	if (r == 0)
		r = v->order(s->dev, QUEUE_WORK, QUEUE_DOWN, err);
	if (r == 0)
		r = v->download_begin(form ? &s->stored : &part, s->out[k % 2], err);
	s->in_transfer = r < 0 ? -1 : k;
	s->form = form ? *form : (struct stored_form){0};
	return r;
}

static bool same_form(const struct stored_form *a, const struct stored_form *b)
{
	return a->columns == b->columns && a->rows == b->rows && a->offset == b->offset && a->per_step == b->per_step &&
	       a->top == b->top && a->turn_columns == b->turn_columns && a->turn_rows == b->turn_rows && a->padded == b->padded;
}

/* Wait for slice k, which is then in out[k % 2], and begin the transfer of the next one. */
static int take_slice(struct dbt_session *s, int k, const struct stored_form *form, struct err *err)
{
	const struct stored_form floats = {0};
	int r = 0;

	if (s->in_transfer != k || !same_form(&s->form, form ? form : &floats)) {
		r = s->dev->ops->wait(s->dev, QUEUE_DOWN, err); /* another slice may be in transfer to the same memory */
		if (r == 0)
			r = begin_transfer(s, k, form, err);
	}
	if (r == 0)
		r = s->dev->ops->wait(s->dev, QUEUE_DOWN, err);
	if (r == 0 && k + 1 < s->plan->grid.n[2])
		r = begin_transfer(s, k + 1, form, err);
	return r;
}

static int check_range(const struct dbt_session *s, int first, int n, struct err *err)
{
	if (!s->result || first < 0 || n < 1 || n > s->plan->grid.n[2] - first)
		return err_set(err, EINVAL, "reconstruction: slices %d to %d of %d%s", first, first + n - 1, s->plan->grid.n[2],
			       s->result ? "" : ", before dbt_run()");
	return 0;
}

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t voxels = slice_voxels(s);
	int r = check_range(s, first, n, err);

	if (r == 0 && s->streamed) {
		memcpy(ret_slices, s->stream.x + (size_t)first * voxels, (size_t)n * voxels * sizeof(float));
		return 0;
	}
	for (int k = first; r == 0 && k < first + n; k++) {
		r = take_slice(s, k, NULL, err);
		if (r == 0)
			memcpy(ret_slices + (size_t)(k - first) * voxels, s->out[k % 2], voxels * sizeof(float));
	}
	return r;
}

/* Replace slices of a session that may have no result yet. */
static int put_slices(struct dbt_session *s, int first, int n, const float *slices, struct err *err)
{
	size_t voxels = slice_voxels(s), at = (size_t)first * voxels, all = (size_t)n * voxels;
	struct buf part = buf_part(&s->x, at, all);
	int r = 0;

	if (s->streamed) {
		memcpy(s->stream.x + at, slices, all * sizeof(*slices));
		return 0;
	}
	if (s->in_transfer >= first && s->in_transfer < first + n) { /* the slice as it was */
		r = s->dev->ops->wait(s->dev, QUEUE_DOWN, err);
		s->in_transfer = -1;
	}
	return r < 0 ? r : s->dev->ops->upload(&part, slices, err);
}

int dbt_replace_slices(struct dbt_session *s, int first, int n, const float *slices, struct err *err)
{
	int r = check_range(s, first, n, err);

	return r < 0 ? r : put_slices(s, first, n, slices, err);
}

int dbt_take(struct dbt_session *s, const float *volume, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->done)
		r = err_set(err, EINVAL, "reconstruction: a volume was already computed or taken");
	s->done = true;
	pthread_mutex_unlock(&s->lock);
	if (r == 0)
		r = put_slices(s, 0, s->plan->grid.n[2], volume, err);
	s->result = s->result || r == 0;
	return r;
}

int dbt_read_stored(struct dbt_session *s, int k, const struct stored_form *form, uint16_t *ret_values, struct err *err)
{
	const struct grid *g = &s->plan->grid;
	size_t voxels = slice_voxels(s);
	int r = check_range(s, k, 1, err);

	if (r == 0 && (form->columns != (size_t)g->n[0] || form->rows != (size_t)g->n[1]))
		r = err_set(err, EINVAL, "reconstruction: stored slices of %zu x %zu, the volume's are %d x %d", form->columns,
			    form->rows, g->n[0], g->n[1]);
	if (r == 0 && s->streamed) {
		const float *slice = s->stream.x + (size_t)k * voxels;

#pragma omp parallel for schedule(static)
		for (size_t i = 0; i < form->rows; i++)
			stored_rows(form, slice, i, i + 1, ret_values);
		return 0;
	}
	if (r == 0)
		r = take_slice(s, k, form, err);
	if (r == 0)
		memcpy(ret_values, s->out[k % 2], voxels * sizeof(*ret_values));
	return r;
}

/* Compute the tally of a volume in host memory, slice by slice on the device. */
static int tally_streamed(struct dbt_session *s, float offset, float step, size_t stride, uint64_t bins[65536],
			  size_t *ret_counted, struct tally *ret_tally, struct err *err)
{
	size_t voxels = slice_voxels(s), counted = 0;
	struct buf slice = buf_part(&s->stream.slab[0], 0, voxels);
	struct tally sum = {0}, one;

	for (int k = 0; k < s->plan->grid.n[2]; k++) {
		int r = s->dev->ops->upload(&slice, s->stream.x + (size_t)k * voxels, err);

		if (r == 0)
			r = s->dev->ops->tally(&slice, offset, step, stride, bins, &one, err);
		if (r < 0)
			return r;
		sum.below += one.below;
		sum.above += one.above;
		sum.bad += one.bad;
		counted += (voxels + stride - 1) / stride;
	}
	*ret_counted = counted;
	*ret_tally = sum;
	return 0;
}

int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err)
{
	size_t n = grid_size(&s->plan->grid), stride = 1 + n / SAMPLES;
	int r;

	if (!s->result)
		return err_set(err, EINVAL, "reconstruction: no result before dbt_run()");
	if (s->streamed)
		return tally_streamed(s, (float)offset, (float)step, stride, bins, ret_counted, ret_tally, err);
	r = s->dev->ops->tally(&s->x, (float)offset, (float)step, stride, bins, ret_tally, err);
	if (r == 0)
		*ret_counted = (n + stride - 1) / stride;
	return r;
}

int dbt_tally_inside(struct dbt_session *s, double offset, double step, double depth, uint64_t bins[65536], size_t *ret_counted,
		     struct err *err)
{
	const struct grid *g = &s->plan->grid;
	int slices = g->n[2] < INSIDE_SLICES ? g->n[2] : INSIDE_SLICES, r = 0;
	size_t voxels = slice_voxels(s), counted = 0, stride = 1 + voxels * (size_t)slices / SAMPLES;
	float *slice = malloc(voxels * sizeof(*slice));

	if (!slice)
		return err_set(err, ENOMEM, "reconstruction: no memory for a slice of %zu voxels", voxels);
	for (int i = 0; r == 0 && i < slices; i++) {
		r = dbt_read_slices(s, (int)((2L * i + 1) * g->n[2] / (2L * slices)), 1, slice, err);
		if (r == 0)
			r = inside_tally(g, slice, offset, step, depth, stride, bins, &counted, err);
	}
	free(slice);
	if (r == 0)
		*ret_counted = counted;
	return r;
}
