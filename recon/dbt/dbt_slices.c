/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_slices.c - read slices from a session: while one is copied to the caller's memory, the next one is transferred from the
 * device. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "recon/dbt/dbt_internal.h"

#define SAMPLES 4000000 /* values of a volume used for its histogram */

static size_t slice_voxels(const struct dbt_session *s)
{
	return (size_t)s->plan->grid.n[0] * (size_t)s->plan->grid.n[1];
}

static int begin_transfer(struct dbt_session *s, int k, struct err *err)
{
	size_t n = slice_voxels(s);
	struct buf part = buf_part(&s->x, (size_t)k * n, n);
	int r = s->dev->ops->order(s->dev, QUEUE_WORK, QUEUE_DOWN, err);

	if (r == 0)
		r = s->dev->ops->download_begin(&part, s->out[k % 2], err);
	s->in_transfer = r < 0 ? -1 : k;
	return r;
}

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t voxels = slice_voxels(s);
	int r = 0;

	if (!s->result || first < 0 || n < 1 || n > s->plan->grid.n[2] - first)
		return err_set(err, EINVAL, "reconstruction: slices %d to %d of %d%s", first, first + n - 1, s->plan->grid.n[2],
			       s->result ? "" : ", before dbt_run()");
	if (s->streamed) {
		memcpy(ret_slices, s->stream.x + (size_t)first * voxels, (size_t)n * voxels * sizeof(float));
		return 0;
	}
	for (int k = first; r == 0 && k < first + n; k++) {
		if (s->in_transfer != k)
			r = begin_transfer(s, k, err);
		if (r == 0)
			r = s->dev->ops->wait(s->dev, QUEUE_DOWN, err);
		if (r == 0 && k + 1 < s->plan->grid.n[2])
			r = begin_transfer(s, k + 1, err);
		if (r == 0)
			memcpy(ret_slices + (size_t)(k - first) * voxels, s->out[k % 2], voxels * sizeof(float));
	}
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
