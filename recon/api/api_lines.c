/* SPDX-License-Identifier: Apache-2.0 */
/* api_lines.c - the matrix of a list of lines as a linear operator.
 *
 * - Batches of lines are sorted once, so that neighbours pass through the same voxels; the sorted line i is number index[i].
 * - A sum of float32 numbers loses what is smaller than 2^-24 of it. So a batch has few terms for a voxel, about TERMS, and the
 *   volumes of the batches are added with Kahan's summation (1965): the adjoint is exact for any number of lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/api/api_internal.h"

#define BATCH_MOST ((size_t)1 << 22)
#define BATCH_LEAST ((size_t)1 << 12)
#define TERMS 16384.0 /* mean number of terms of a voxel in the sum of a batch; a line has 4 in each plane of voxels */

struct lines {
	struct linop op; /* first member */
	size_t n, batch;
	struct buf points, list;
	struct events *events;
	struct buf part, sum, y; /* two volumes if there are several batches; y: for apply_add(), at its first call */
};

static struct lines *lines_of(const struct linop *op)
{
	return (struct lines *)(uintptr_t)op;
}

static int lines_apply(const struct linop *op, const struct buf *x, struct buf *ret_y, struct err *err)
{
	struct lines *l = lines_of(op);

	return op->dev->ops->events_forward(l->events, &l->list, x, ret_y, err);
}

static int lines_apply_add(const struct linop *op, const struct buf *x, struct buf *y, struct err *err)
{
	struct lines *l = lines_of(op);
	int r = l->y.mem ? 0 : op->dev->ops->alloc(op->dev, l->n, &l->y, err);

	if (r == 0)
		r = lines_apply(op, x, &l->y, err);
	return r < 0 ? r : op->dev->ops->axpy(1, &l->y, y, err);
}

/* x += part, with the rounding error of the sum so far in `part`, which then has the new one; sum: work. */
static int add_part(const struct device_ops *v, struct buf *x, struct buf *part, struct buf *sum, struct err *err)
{
	int r = v->copy(x, sum, err);

	if (r == 0)
		r = v->axpy(1, part, sum, err); /* s = x + p, rounded */
	if (r == 0)
		r = v->axpy(-1, sum, x, err); /* x - s */
	if (r == 0)
		r = v->axpy(1, x, part, err); /* p - (s - x) */
	return r < 0 ? r : v->copy(sum, x, err);
}

static int lines_adjoint_add(const struct linop *op, const struct buf *y, struct buf *x, struct err *err)
{
	struct lines *l = lines_of(op);
	const struct device_ops *v = op->dev->ops;
	int r;

	if (l->n <= l->batch)
		return v->events_back(l->events, &l->list, y, x, err);
	r = v->fill(&l->part, 0, err);
	for (size_t i = 0; r == 0 && i < l->n; i += l->batch) {
		size_t n = l->n - i < l->batch ? l->n - i : l->batch;
		struct buf list = buf_part(&l->list, i * EVENT_FLOATS, n * EVENT_FLOATS), q = buf_part(y, i, n);

		r = v->events_back(l->events, &list, &q, &l->part, err); /* beside the error of the batches before */
		if (r == 0)
			r = add_part(v, x, &l->part, &l->sum, err);
	}
	return r;
}

static int lines_adjoint(const struct linop *op, const struct buf *y, struct buf *ret_x, struct err *err)
{
	int r = op->dev->ops->fill(ret_x, 0, err);

	return r < 0 ? r : lines_adjoint_add(op, y, ret_x, err);
}

static void lines_destroy(struct linop *op)
{
	struct lines *l = lines_of(op);

	if (l->events)
		op->dev->ops->events_free(l->events);
	buf_release(&l->points);
	buf_release(&l->list);
	buf_release(&l->part);
	buf_release(&l->sum);
	buf_release(&l->y);
	free(l);
}

static size_t batch_lines(const struct grid *g, size_t n)
{
	int longest = g->n[0] > g->n[1] ? g->n[0] : g->n[1];
	double most = TERMS * g->n[0] * g->n[1] * g->n[2] / (4.0 * (longest > g->n[2] ? longest : g->n[2]));
	size_t batch = most >= (double)BATCH_MOST ? BATCH_MOST : most <= (double)BATCH_LEAST ? BATCH_LEAST : (size_t)most;

	return n < batch ? n : batch;
}

/* Upload the lines, sorted batch by batch; `add`, which projections do not use, carries their numbers. */
static int upload_lines(struct lines *l, const struct tn_scan *s, int first, int step, struct buf *index, struct err *err)
{
	const struct device_ops *v = l->op.dev->ops;
	struct event *list = malloc(l->n * sizeof(*list));
	float *number = (float *)(void *)list; /* written behind what was read: 4 of 16 bytes */
	int r = list ? 0 : err_set(err, ENOMEM, "lines: no memory for %zu", l->n);

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		int32_t at = (int32_t)i;

		list[i] = s->lines[(size_t)first + i * (size_t)step];
		memcpy(&list[i].add, &at, sizeof(at));
	}
	if (r == 0)
		r = v->upload(&l->list, (const float *)(const void *)list, err);
	for (size_t i = 0; r == 0 && i < l->n; i += l->batch) {
		size_t n = l->n - i < l->batch ? l->n - i : l->batch;
		struct buf part = buf_part(&l->list, i * EVENT_FLOATS, n * EVENT_FLOATS);

		r = v->events_sort(l->events, &part, err);
	}
	if (r == 0)
		r = v->download(&l->list, (float *)(void *)list, err);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		memmove(&number[i], &list[i].add, sizeof(*number));
	if (r == 0)
		r = v->upload(index, number, err);
	free(list);
	return r;
}

int api_lines_create(struct device *dev, const struct tn_scan *s, const struct grid *g, int first, int step, bool deterministic,
		     struct linop **ret_op, struct buf *ret_index, struct err *err)
{
	const struct device_ops *v = dev->ops;
	struct lines *l = calloc(1, sizeof(*l));
	struct buf index = {0};
	int r;

	if (!l)
		return err_set(err, ENOMEM, "lines: out of memory");
	l->n = (s->n_lines - (size_t)first + (size_t)step - 1) / (size_t)step;
	l->batch = batch_lines(g, l->n);
	l->op = (struct linop){
		.n_in = grid_size(g),
		.n_out = l->n,
		.dev = dev,
		.apply = lines_apply,
		.apply_add = lines_apply_add,
		.adjoint = lines_adjoint,
		.adjoint_add = lines_adjoint_add,
		.destroy = lines_destroy,
	};
	r = v->alloc(dev, 3 * s->n_points, &l->points, err);
	if (r == 0)
		r = v->upload(&l->points, s->points, err);
	if (r == 0)
		r = v->alloc(dev, l->n * EVENT_FLOATS, &l->list, err);
	if (r == 0)
		r = v->alloc(dev, l->n, &index, err);
	if (r == 0 && l->n > l->batch)
		r = v->alloc(dev, l->op.n_in, &l->part, err);
	if (r == 0 && l->n > l->batch)
		r = v->alloc(dev, l->op.n_in, &l->sum, err);
	if (r == 0)
		r = v->events_create(dev,
				     &(struct events_spec){
					     .grid = g,
					     .fov_radius = s->fov_radius > 0 ? s->fov_radius : api_grid_radius(g),
					     .tof = s->tof,
					     .detectors = &l->points,
					     .batch = l->batch,
					     .deterministic = deterministic,
				     },
				     &l->events, err);
	if (r == 0)
		r = upload_lines(l, s, first, step, &index, err);
	if (r < 0) {
		lines_destroy(&l->op);
		buf_release(&index);
		return r;
	}
	*ret_op = &l->op;
	*ret_index = index;
	return 0;
}
