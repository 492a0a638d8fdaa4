/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_mark.c - mark() on the CPU: find the voxels outside the breast (air) and those that project onto a bin with data. Rows of
 * voxels are processed view by view. Most voxels get their final value from the first views: outside the skin line all voxels of
 * a row are air, and the first view marks nearly all others. So each view examines only the voxels whose nearest bin is between
 * the first and the last bin of air in its row, and those not yet marked. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>

#define STRETCH 64 /* voxels tested together */

/* The bins along one axis that touch a voxel, first <= b < end, and the one nearest to its centre; `nearest` is -1 or n if it is
 * outside the detector. */
struct reach {
	int first, end, nearest;
};

static struct reach reach_of(const struct slice_map *map, int axis, int i, int n)
{
	struct cpu_span span = cpu_footprint(map, axis, i, i + 1, n);
	long long nearest = slice_nearest_bin(map, axis, i);
	struct reach r = {span.first, span.end, nearest < 0 ? -1 : nearest < n ? (int)nearest : n};

	/* remove bins of weight 0: those at a distance of exactly one voxel, and those that rounding has added */
	while (r.first < r.end && !(slice_weight(map->scale[axis] * r.first + map->shift[axis] - i) > 0))
		r.first++;
	while (r.first < r.end && !(slice_weight(map->scale[axis] * (r.end - 1) + map->shift[axis] - i) > 0))
		r.end--;
	return r;
}

/* Return the first voxel of a row whose nearest bin is `bin` or a bin after it. */
static int voxel_of(const struct reach *row, int n, int bin)
{
	int lo = 0, hi = n;

	while (lo < hi) {
		int middle = (lo + hi) / 2;

		if (row[middle].nearest < bin)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Find the span of each detector row that contains all its bins of air. */
static void find_air(const struct projection *a, struct cpu_span *air)
{
	int n_u = a->scan->n_u, n_rows = a->n_views * a->scan->n_v, threads = cpu_state(a->dev)->threads;

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int r = 0; r < n_rows; r++) {
		const float *row = a->mask.mem ? a->mask.mem + (size_t)r * (size_t)n_u : NULL;
		struct cpu_span s = {0, row ? n_u : 0};

		while (s.first < s.end && !(row[s.first] < 0))
			s.first++;
		while (s.first < s.end && !(row[s.end - 1] < 0))
			s.end--;
		air[r] = s;
	}
}

static bool bin_counts(const float *mask, int n_u, const struct reach *u, const struct reach *v)
{
	if (!mask)
		return u->first < u->end && v->first < v->end;
	for (int b = v->first; b < v->end; b++)
		for (int c = u->first; c < u->end; c++)
			if (mask[(size_t)b * (size_t)n_u + (size_t)c] > 0)
				return true;
	return false;
}

/* Return whether all n voxels are final: marked as air (all_air), or marked at all (the next function). Written so that the
 * compiler vectorises the loops. */
static bool all_air(const float *x, int n)
{
	int other = 0;

	for (int i = 0; i < n; i++)
		other |= !(x[i] < 0);
	return !other;
}

static bool all_final(const float *x, int n)
{
	int open = 0;

	for (int i = 0; i < n; i++)
		open |= !(x[i] < 0) & (x[i] != 1);
	return !open;
}

/* Process one row of voxels in one view. us: the reach of each voxel along u. Return whether the row still has unmarked voxels,
 * which another view may set to 1. */
static bool mark_row(const struct projection *a, int view, const struct reach *us, const struct reach *v,
		     const struct cpu_span *air, bool open, float *x)
{
	int n_u = a->scan->n_u, n_x = a->grid.n[0], to;
	const float *mask = a->mask.mem ? a->mask.mem + (size_t)view * scan_view_size(a->scan) : NULL;
	bool left = false;

	if (v->nearest >= 0 && v->nearest < a->scan->n_v) {
		const struct cpu_span *span = &air[(size_t)view * (size_t)a->scan->n_v + (size_t)v->nearest];
		int end = span->first < span->end ? voxel_of(us, n_x, span->end) : 0;

		for (int from = end ? voxel_of(us, n_x, span->first) : 0; from < end; from = to) {
			to = cpu_min(from + STRETCH, end);
			if (all_air(x + from, to - from))
				continue;
			for (int i = from; i < to; i++)
				if (mask[(size_t)v->nearest * (size_t)n_u + (size_t)us[i].nearest] < 0)
					x[i] = -1;
		}
	}
	for (int from = 0; open && from < n_x; from = to) {
		to = cpu_min(from + STRETCH, n_x);
		if (all_final(x + from, to - from))
			continue;
		for (int i = from; i < to; i++) {
			if (x[i] < 0 || x[i] == 1)
				continue;
			if (bin_counts(mask, n_u, &us[i], v))
				x[i] = 1;
			else
				left = true;
		}
	}
	return left;
}

static void mark_slice(const struct projection *a, int k, const struct cpu_span *air, struct reach *us, float *x)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1];

	for (int view = 0; view < a->n_views; view++) {
		struct slice_map map = slice_map_make(a->scan, &a->scan->views[a->first + view], &a->grid, k);

		for (int i = 0; i < n_x; i++)
			us[(size_t)view * (size_t)n_x + (size_t)i] = reach_of(&map, 0, i, a->scan->n_u);
	}
	for (int j = 0; j < n_y; j++) {
		bool open = true;

		for (int view = 0; view < a->n_views; view++) {
			struct slice_map map = slice_map_make(a->scan, &a->scan->views[a->first + view], &a->grid, k);
			struct reach v = reach_of(&map, 1, j, a->scan->n_v);

			open = mark_row(a, view, us + (size_t)view * (size_t)n_x, &v, air, open, x + (size_t)j * (size_t)n_x);
		}
	}
}

int cpu_mark(struct projection *a, struct buf *x, struct err *err)
{
	int threads = cpu_state(a->dev)->threads;
	size_t per_slice = (size_t)a->grid.n[0] * (size_t)a->grid.n[1], tables = (size_t)a->n_views * (size_t)a->grid.n[0];
	struct cpu_span *air;
	struct reach *us;

	if (x->n != grid_size(&a->grid))
		return err_set(err, EINVAL, "mark: the volume has %zu floats, but the grid has %zu voxels", x->n,
			       grid_size(&a->grid));
	for (int view = 0; view < a->n_views; view++)
		if (a->scan->kind != SCAN_DBT || !slice_map_valid(&a->scan->views[a->first + view], &a->grid))
			return err_set(err, EINVAL, "mark: view %d: the volume is not between detector and source",
				       a->first + view);
	air = malloc((size_t)a->n_views * (size_t)a->scan->n_v * sizeof(*air));
	us = malloc((size_t)threads * tables * sizeof(*us));
	if (!air || !us) {
		free(air);
		free(us);
		return err_set(err, ENOMEM, "mark: out of memory");
	}
	find_air(a, air);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int k = 0; k < a->grid.n[2]; k++)
		mark_slice(a, k, air, us + (size_t)cpu_thread() * tables, x->mem + (size_t)k * per_slice);
	free(air);
	free(us);
	return 0;
}
