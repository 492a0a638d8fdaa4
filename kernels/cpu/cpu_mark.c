/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_mark.c - mark() on the CPU: find the voxels outside the breast (air) and those that project onto a bin with data. Rows of
 * voxels are processed view by view. Most voxels get their final value from the first views: outside the skin line all voxels of
 * a row are air, and the first view marks nearly all others. So a row keeps the span outside which all is air and the span outside
 * which all is final, and each view examines only what is inside of them. In a row of bins the air, and the bins with data, are
 * mostly one run: what projects onto a run is a run of voxels, which is set without a look at the bins. */
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

/* Return the first of the voxels [lo, hi) whose nearest bin is `bin` or a bin after it; hi: there is none. */
static int voxel_near(const struct reach *row, int lo, int hi, int bin)
{
	while (lo < hi) {
		int middle = (lo + hi) / 2;

		if (row[middle].nearest < bin)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Return the first of the voxels [lo, hi) that bins from `bin` on touch (after = 0), or only such bins (after = 1); hi: none. */
static int voxel_touched(const struct reach *row, int lo, int hi, int bin, int after)
{
	while (lo < hi) {
		int middle = (lo + hi) / 2;

		if (after ? row[middle].first < bin : row[middle].end <= bin)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* What a row of bins shows. */
struct bin_row {
	struct cpu_span air;  /* contains all bins of air */
	bool all_air;	      /* it contains no other bins */
	struct cpu_span data; /* the first run of bins with data */
};

static struct bin_row look_at_row(const float *row, int n_u)
{
	struct bin_row r = {.air = {0, n_u}, .data = {0, n_u}};
	int other = 0;

	if (!row) {
		r.air.end = 0;
		return r;
	}
	while (r.air.first < r.air.end && !(row[r.air.first] < 0))
		r.air.first++;
	while (r.air.first < r.air.end && !(row[r.air.end - 1] < 0))
		r.air.end--;
	for (int i = r.air.first; i < r.air.end; i++)
		other |= !(row[i] < 0);
	r.all_air = !other;
	while (r.data.first < n_u && !(row[r.data.first] > 0))
		r.data.first++;
	r.data.end = r.data.first;
	while (r.data.end < n_u && row[r.data.end] > 0)
		r.data.end++;
	return r;
}

static void look_at_bins(const struct projection *a, struct bin_row *bins)
{
	int n_u = a->scan->n_u, n_rows = a->n_views * a->scan->n_v, threads = cpu_state(a->dev)->threads;

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int r = 0; r < n_rows; r++)
		bins[r] = look_at_row(a->mask.mem ? a->mask.mem + (size_t)r * (size_t)n_u : NULL, n_u);
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

/* A row of voxels. */
struct voxel_row {
	float *x;
	struct cpu_span inside; /* all others are air, or no view sees them */
	struct cpu_span open;	/* of these: the others are final, but for air */
};

static bool is_empty(struct cpu_span s)
{
	return s.first >= s.end;
}

/* Remove air from both ends of the span. */
static void trim_air(const float *x, struct cpu_span *s)
{
	while (s->end - s->first >= STRETCH && all_air(x + s->end - STRETCH, STRETCH))
		s->end -= STRETCH;
	while (s->first < s->end && x[s->end - 1] < 0)
		s->end--;
	while (s->first < s->end && x[s->first] < 0)
		s->first++;
}

/* Mark the air of a row of voxels in one view: `bins` is the row of bins nearest to it, us the reach of each voxel along u there.
 */
static void mark_air(const float *mask, const struct bin_row *bins, const struct reach *us, struct voxel_row *row)
{
	struct cpu_span in = row->inside, air = bins->air;
	float *x = row->x;
	int to;

	if (is_empty(air) || us[in.end - 1].nearest < air.first || us[in.first].nearest >= air.end)
		return;
	air.first = voxel_near(us, in.first, in.end, air.first);
	air.end = voxel_near(us, air.first, in.end, air.end);
	for (int from = air.first; from < air.end; from = to) {
		to = cpu_min(from + STRETCH, air.end);
		if (all_air(x + from, to - from))
			continue;
		for (int i = from; i < to; i++)
			if (bins->all_air || mask[us[i].nearest] < 0)
				x[i] = -1;
	}
	trim_air(x, &row->inside);
}

/* Remove [first, end) from the span if it is at one of its ends. */
static void cut_span(struct cpu_span *s, int first, int end)
{
	if (first <= s->first)
		s->first = cpu_max(s->first, end);
	else if (end >= s->end)
		s->end = cpu_min(s->end, first);
}

/* Mark the open voxels that a run of bins with data touches. */
static void mark_run(const struct reach *us, struct cpu_span run, struct voxel_row *row)
{
	struct cpu_span *open = &row->open;
	float *x = row->x;
	int first, end;

	if (is_empty(run))
		return;
	first = voxel_touched(us, open->first, open->end, run.first, 0);
	end = voxel_touched(us, first, open->end, run.end, 1);
	for (int i = first; i < end; i++)
		x[i] = x[i] < 0 ? x[i] : 1;
	if (first < end)
		cut_span(open, first, end);
}

/* Mark the open voxels that the rows v of bins touch, each by looking at its bins. */
static void mark_each(const float *mask, int n_u, const struct reach *us, const struct reach *v, struct voxel_row *row)
{
	struct cpu_span left = {row->open.end, row->open.first};
	float *x = row->x;
	int to;

	for (int from = row->open.first; from < row->open.end; from = to) {
		to = cpu_min(from + STRETCH, row->open.end);
		if (all_final(x + from, to - from))
			continue;
		for (int i = from; i < to; i++) {
			if (x[i] < 0 || x[i] == 1)
				continue;
			if (bin_counts(mask, n_u, &us[i], v)) {
				x[i] = 1;
			} else {
				left.first = cpu_min(left.first, i);
				left.end = i + 1;
			}
		}
	}
	row->open = left;
}

/* The strips of a view that were used last. */
struct strip {
	int number; /* -1: none */
	struct slice_map map;
	struct reach *us;      /* of the voxels of a row along u */
	bool has_us, has_gaps; /* gaps: no bin touches some of the voxels between the others */
};

static int count_places(const struct projection *a)
{
	return cpu_has_strips(a) ? KEPT : 1;
}

static struct strip *enter_strip(const struct projection *a, int view, int k, int number, struct strip *kept)
{
	struct strip *s = &kept[number % count_places(a)];

	if (s->number != number) {
		s->number = number;
		s->map = cpu_strip_map(a, view, k, number);
		s->has_us = false;
	}
	return s;
}

static const struct reach *reach_in_strip(const struct projection *a, struct strip *s)
{
	int n_u = a->scan->n_u;

	if (s->has_us)
		return s->us;
	s->has_us = true;
	s->has_gaps = false;
	for (int i = 0; i < a->grid.n[0]; i++) {
		struct reach r = reach_of(&s->map, 0, i, n_u);

		s->has_gaps |= r.first == r.end && r.first > 0 && r.first < n_u;
		s->us[i] = r;
	}
	return s->us;
}

/* Process row j of voxels with the rows of bins [first, end) of one strip of a view. mask, bins: of the view. */
static void mark_in_strip(const struct projection *a, const float *mask, const struct bin_row *bins, struct cpu_span rows, int j,
			  struct strip *s, struct voxel_row *row)
{
	int n_u = a->scan->n_u, n_v = a->scan->n_v;
	long long nearest = slice_nearest_bin(&s->map, 1, j);
	struct reach v;

	if (nearest >= rows.first && nearest < rows.end && !is_empty(bins[nearest].air))
		mark_air(mask + (size_t)nearest * (size_t)n_u, &bins[nearest], reach_in_strip(a, s), row);
	row->open.first = cpu_max(row->open.first, row->inside.first);
	row->open.end = cpu_min(row->open.end, row->inside.end);
	if (is_empty(row->open))
		return;
	v = reach_of(&s->map, 1, j, n_v);
	v.first = cpu_max(v.first, rows.first);
	v.end = cpu_min(v.end, rows.end);
	if (v.first >= v.end)
		return;
	reach_in_strip(a, s);
	for (int b = v.first; b < v.end && !s->has_gaps && !is_empty(row->open); b++)
		mark_run(s->us, bins[b].data, row);
	if (!is_empty(row->open))
		mark_each(mask, n_u, s->us, &v, row);
}

/* Process row j of the voxels of slice k in one view. */
static void mark_row(const struct projection *a, int view, int k, int j, const struct bin_row *bins, struct strip *kept,
		     struct voxel_row *row)
{
	int n_v = a->scan->n_v;
	const float *mask = a->mask.mem ? a->mask.mem + (size_t)view * scan_view_size(a->scan) : NULL;
	struct cpu_span rows = {0, n_v};

	if (cpu_has_strips(a)) {
		rows = cpu_strip_rows(a, view, k, j, j + 1);
		rows.first = cpu_max(0, rows.first - 1); /* the nearest row may be farther than a voxel */
		rows.end = cpu_min(n_v, rows.end + 1);
	}
	for (int v = rows.first, next; v < rows.end && !is_empty(row->inside); v = next) {
		int strip = v / a->strip_rows;

		next = cpu_min((strip + 1) * a->strip_rows, n_v);
		mark_in_strip(a, mask, bins + (size_t)view * (size_t)n_v, (struct cpu_span){strip * a->strip_rows, next}, j,
			      enter_strip(a, view, k, strip, kept), row);
	}
}

/* Return the voxels of the rows of slice k that any view sees; with strips, all of them. */
static struct cpu_span seen_voxels(const struct projection *a, int k, struct strip *kept)
{
	int n_x = a->grid.n[0], n_u = a->scan->n_u;
	struct cpu_span seen = {n_x, 0};

	if (cpu_has_strips(a))
		return (struct cpu_span){0, n_x};
	for (int view = 0; view < a->n_views; view++) {
		const struct reach *us = reach_in_strip(a, enter_strip(a, view, k, 0, &kept[view]));
		int first = 0, end = n_x;

		while (first < end && us[first].nearest < 0 && us[first].end == 0)
			first++;
		while (first < end && us[end - 1].nearest == n_u && us[end - 1].first == n_u)
			end--;
		seen.first = cpu_min(seen.first, first);
		seen.end = cpu_max(seen.end, end);
	}
	return seen;
}

static void mark_slice(const struct projection *a, int k, const struct bin_row *bins, struct strip *kept, float *x)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1], places = count_places(a);
	struct cpu_span seen;

	for (int i = 0; i < a->n_views * places; i++)
		kept[i].number = -1;
	seen = seen_voxels(a, k, kept);
	for (int j = 0; j < n_y; j++) {
		struct voxel_row row = {.x = x + (size_t)j * (size_t)n_x, .inside = seen, .open = seen};

		trim_air(row.x, &row.inside);
		for (int view = 0; view < a->n_views; view++)
			mark_row(a, view, k, j, bins, kept + (size_t)view * (size_t)places, &row);
	}
}

int cpu_mark(struct projection *a, struct buf *x, struct err *err)
{
	int threads = cpu_state(a->dev)->threads;
	size_t per_slice = (size_t)a->grid.n[0] * (size_t)a->grid.n[1], n_views = (size_t)a->n_views;
	size_t per_thread = n_views * (size_t)count_places(a), n_kept = (size_t)threads * per_thread;
	struct bin_row *bins;
	struct strip *kept;
	struct reach *us;

	if (x->n != grid_size(&a->grid))
		return err_set(err, EINVAL, "mark: the volume has %zu floats, but the grid has %zu voxels", x->n,
			       grid_size(&a->grid));
	for (int view = 0; view < a->n_views; view++)
		if (a->scan->kind != SCAN_DBT || !slice_map_valid(a->scan, &a->scan->views[a->first + view], &a->grid))
			return err_set(err, EINVAL, "mark: view %d: the volume is not between detector and source",
				       a->first + view);
	bins = malloc((size_t)a->n_views * (size_t)a->scan->n_v * sizeof(*bins));
	us = malloc(n_kept * (size_t)a->grid.n[0] * sizeof(*us));
	kept = malloc(n_kept * sizeof(*kept));
	if (!bins || !us || !kept) {
		free(bins);
		free(us);
		free(kept);
		return err_set(err, ENOMEM, "mark: out of memory");
	}
	for (size_t i = 0; i < n_kept; i++)
		kept[i].us = us + i * (size_t)a->grid.n[0];
	look_at_bins(a, bins);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int k = 0; k < a->grid.n[2]; k++)
		mark_slice(a, k, bins, kept + (size_t)cpu_thread() * per_thread, x->mem + (size_t)k * per_slice);
	free(bins);
	free(us);
	free(kept);
	return 0;
}
