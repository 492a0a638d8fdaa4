/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_mark.c - mark() on the CPU: find the voxels outside the breast (air) and those that project onto a bin with data. Rows of
 * voxels are processed view by view. Most voxels get their final value from the first views: outside the skin line all voxels of
 * a row are air, and the first view marks nearly all others. So each view examines only the voxels whose nearest bin is between
 * the first and the last bin of air in its row, and those not yet marked. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>

#define STRETCH 64 /* voxels tested together */
#define KEPT 4	   /* strips of a view whose tables are kept */

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

/* Mark the air of a row of voxels in one view: `row` is the row of bins nearest to it, us the reach of each voxel along u there.
 */
static void mark_air(const struct projection *a, const float *mask, int row, const struct reach *us, const struct cpu_span *span,
		     float *x)
{
	int n_u = a->scan->n_u, n_x = a->grid.n[0], end = span->first < span->end ? voxel_of(us, n_x, span->end) : 0, to;

	for (int from = end ? voxel_of(us, n_x, span->first) : 0; from < end; from = to) {
		to = cpu_min(from + STRETCH, end);
		if (all_air(x + from, to - from))
			continue;
		for (int i = from; i < to; i++)
			if (mask[(size_t)row * (size_t)n_u + (size_t)us[i].nearest] < 0)
				x[i] = -1;
	}
}

/* Mark the voxels of a row that the rows v of bins touch. Return whether the row still has unmarked voxels, which other bins may
 * set to 1. */
static bool mark_touched(const struct projection *a, const float *mask, const struct reach *us, const struct reach *v, float *x)
{
	int n_x = a->grid.n[0], to;
	bool left = false;

	for (int from = 0; from < n_x; from = to) {
		to = cpu_min(from + STRETCH, n_x);
		if (all_final(x + from, to - from))
			continue;
		for (int i = from; i < to; i++) {
			if (x[i] < 0 || x[i] == 1)
				continue;
			if (bin_counts(mask, a->scan->n_u, &us[i], v))
				x[i] = 1;
			else
				left = true;
		}
	}
	return left;
}

/* The reach of the voxels of a row along u, for the strips of a view that were used last: `key` is the strip in each place, or
 * -1.
 */
struct strip_cache {
	int key[KEPT];
	struct reach *us; /* count_places() rows of n_x elements */
};

static int count_places(const struct projection *a)
{
	return cpu_has_strips(a) ? KEPT : 1;
}

static const struct reach *reach_in_strip(const struct projection *a, int view, int k, int strip, struct strip_cache *cache)
{
	int n_x = a->grid.n[0], place = strip % count_places(a);
	struct reach *us = cache->us + (size_t)place * (size_t)n_x;

	if (cache->key[place] != strip) {
		struct slice_map map = cpu_strip_map(a, view, k, strip);

		for (int i = 0; i < n_x; i++)
			us[i] = reach_of(&map, 0, i, a->scan->n_u);
		cache->key[place] = strip;
	}
	return us;
}

/* Process row j of the voxels of slice k in one view. Return whether it still has unmarked voxels. */
static bool mark_row(const struct projection *a, int view, int k, int j, const struct cpu_span *air, bool open,
		     struct strip_cache *cache, float *x)
{
	int n_v = a->scan->n_v;
	const float *mask = a->mask.mem ? a->mask.mem + (size_t)view * scan_view_size(a->scan) : NULL;
	struct cpu_span rows = cpu_strip_rows(a, view, k, j, j + 1);

	rows.first = cpu_max(0, rows.first - 1); /* the nearest row may be farther than a voxel */
	rows.end = cpu_min(n_v, rows.end + 1);
	for (int v = rows.first, next; v < rows.end; v = next) {
		int strip = v / a->strip_rows;
		struct slice_map map = cpu_strip_map(a, view, k, strip);
		struct reach touched = reach_of(&map, 1, j, n_v);
		const struct reach *us = NULL;

		next = cpu_min((strip + 1) * a->strip_rows, n_v);
		touched.first = cpu_max(touched.first, strip * a->strip_rows);
		touched.end = cpu_min(touched.end, next);
		if (touched.nearest >= strip * a->strip_rows && touched.nearest < next) {
			us = reach_in_strip(a, view, k, strip, cache);
			mark_air(a, mask, touched.nearest, us, &air[(size_t)view * (size_t)n_v + (size_t)touched.nearest], x);
		}
		if (open && touched.first < touched.end)
			open = mark_touched(a, mask, us ? us : reach_in_strip(a, view, k, strip, cache), &touched, x);
	}
	return open;
}

static void mark_slice(const struct projection *a, int k, const struct cpu_span *air, struct strip_cache *caches, float *x)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1];

	for (int view = 0; view < a->n_views; view++)
		for (int i = 0; i < count_places(a); i++)
			caches[view].key[i] = -1;
	for (int j = 0; j < n_y; j++) {
		bool open = true;

		for (int view = 0; view < a->n_views; view++)
			open = mark_row(a, view, k, j, air, open, &caches[view], x + (size_t)j * (size_t)n_x);
	}
}

int cpu_mark(struct projection *a, struct buf *x, struct err *err)
{
	int threads = cpu_state(a->dev)->threads;
	size_t per_slice = (size_t)a->grid.n[0] * (size_t)a->grid.n[1], n_views = (size_t)a->n_views;
	size_t table = (size_t)count_places(a) * (size_t)a->grid.n[0], n_caches = (size_t)threads * n_views;
	struct cpu_span *air;
	struct strip_cache *caches;
	struct reach *us;

	if (x->n != grid_size(&a->grid))
		return err_set(err, EINVAL, "mark: the volume has %zu floats, but the grid has %zu voxels", x->n,
			       grid_size(&a->grid));
	for (int view = 0; view < a->n_views; view++)
		if (a->scan->kind != SCAN_DBT || !slice_map_valid(a->scan, &a->scan->views[a->first + view], &a->grid))
			return err_set(err, EINVAL, "mark: view %d: the volume is not between detector and source",
				       a->first + view);
	air = malloc((size_t)a->n_views * (size_t)a->scan->n_v * sizeof(*air));
	us = malloc(n_caches * table * sizeof(*us));
	caches = malloc(n_caches * sizeof(*caches));
	if (!air || !us || !caches) {
		free(air);
		free(us);
		free(caches);
		return err_set(err, ENOMEM, "mark: out of memory");
	}
	for (size_t i = 0; i < n_caches; i++)
		caches[i].us = us + i * table;
	find_air(a, air);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int k = 0; k < a->grid.n[2]; k++)
		mark_slice(a, k, air, caches + (size_t)cpu_thread() * n_views, x->mem + (size_t)k * per_slice);
	free(air);
	free(us);
	free(caches);
	return 0;
}
