/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_slices.c - the slice-by-slice operator of a DBT scan: forward gathers over voxels, its exact adjoint gathers over bins.
 *
 * The map from a view to a slice is separable, so a row of results needs a weighted sum of two (forward) or two to three (back)
 * rows of inputs, followed by a resampling along the row. The ray's length in a slice is applied once per bin.
 *
 * Forward: a unit of work is a tile of bins; for each row of bins, all slices are processed. The next row of bins uses the same
 * rows of voxels again, so two rows of every slice should stay in the level-2 cache. If there is a rule, a row of line integrals
 * is converted into a row of pairs at once. Only what lies between the first and the last bin that the mask allows is computed.
 *
 * Back: a unit of work is a tile of voxel columns. The tile's footprint on the detector (q and d, or one of them, times the ray's
 * length) is copied into the thread's scratch. Then each row of voxels is finished, for all views, before the next; with a rule
 * it is updated at once, and only what bins with data touch, without the zeros at both ends, is read and computed: the others keep
 * their values (kernels/rules.h). Every voxel belongs to one tile; the result is the only volume that is used. With `add`, the terms are
 * added to the existing values view by view, in the order of a single pass over all views; so several passes over parts of the
 * views give bitwise the same result.
 *
 * A detector that turns is divided into strips of a few rows, each of which has a map of its own (kernels/slice_map.h). A thread
 * computes the slices of the strips that it needs, once for the rows of a strip. */
#include "kernels/avx2.h"
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#define STRETCH 64 /* voxels looked at together */

static float *thread_scratch(const struct projection *a)
{
	struct cpu_state *state = cpu_state(a->dev);

	return state->scratch + (size_t)cpu_thread() * a->thread_floats;
}

static int count_blocks(int n)
{
	return (n + CPU_BLOCK - 1) / CPU_BLOCK;
}

/* Prefetch a row that will be used soon. Rows of a narrow tile are too short for the processor's own prefetcher. */
static void fetch_row(const float *row, int n)
{
	for (int i = 0; i < n; i += CPU_BLOCK)
		__builtin_prefetch(row + i, 0, 2);
}

/* The working memory of one thread in a forward pass. */
struct forward_work {
	float *row;		 /* weighted sum of rows of voxels; zeros on either side */
	float *acc;		 /* row of bins */
	float *line;		 /* row of bins: line integrals, if a rule needs them */
	struct cpu_slice *slice; /* with strips: the slices of strip `strip` of `view`, then their blocks */
	int view, strip;
};

/* Add the values of a slice along the rays of bins [u0, u1) of row v to acc. */
static void forward_slice(const struct projection *a, const struct cpu_slice *s, const float *slice, int v, int u0, int u1,
			  const float *stretch, const struct forward_work *w)
{
	const struct cpu_rows *rows = cpu_state(a->dev)->rows;
	int n_x = a->grid.n[0], n_y = a->grid.n[1], first, end, b0, b1, lo, hi;
	double at = s->map.scale[1] * v + s->map.shift[1], j = floor(at);
	float weight[2] = {(float)(1 - (at - j)), (float)(at - j)};

	for (int r = 0; stretch && r < 2; r++)
		weight[r] *= *stretch;
	first = cpu_max(u0, s->bins.first);
	end = cpu_min(u1, s->bins.end);
	if (first >= end || !(j >= -1 && j < n_y))
		return;
	b0 = first / CPU_BLOCK;
	b1 = count_blocks(end);
	lo = cpu_max(0, s->forward[b0].base);
	hi = cpu_min(n_x, s->forward[b1 - 1].base + (int)(s->map.scale[0] * CPU_BLOCK) + 3);
	if (lo >= hi)
		return;
	if (j < 0)
		rows->combine(w->row + lo, slice + lo, 0, weight + 1, 1, hi - lo);
	else
		rows->combine(w->row + lo, slice + (size_t)j * (size_t)n_x + lo, (size_t)n_x, weight, j + 1 < n_y ? 2 : 1,
			      hi - lo);
	if (j + 2 < n_y)
		fetch_row(slice + ((size_t)j + 2) * (size_t)n_x + lo, hi - lo); /* for the next row of bins */
	rows->resample(w->acc + b0 * CPU_BLOCK, w->row, s->forward + b0, b1 - b0, (float)s->map.scale[0]);
}

/* Return the slices of the strip that contains row v; computes them if they are not those of the row before. */
static const struct cpu_slice *forward_slices(const struct projection *a, int view, int v, int u0, int u1, struct forward_work *w)
{
	int n_z = a->grid.n[2], strip = v / a->strip_rows;
	struct cpu_block *block;

	if (!cpu_has_strips(a))
		return &a->slice[(size_t)view * (size_t)n_z];
	if (view == w->view && strip == w->strip)
		return w->slice;
	block = (void *)(w->slice + n_z);
	for (int k = 0; k < n_z; k++, block += a->blocks_u) {
		w->slice[k].map = cpu_strip_map(a, view, k, strip);
		cpu_slice_make(a, &w->slice[k], block, u0 / CPU_BLOCK, count_blocks(u1), NULL, 0, 0);
	}
	w->view = view;
	w->strip = strip;
	return w->slice;
}

static void forward_row(const struct projection *a, const struct cpu_forward *f, int view, int v, int u0, int u1,
			struct forward_work *w)
{
	const struct cpu_slice *slices = forward_slices(a, view, v, u0, u1, w);
	const struct cpu_rows *rows = cpu_state(a->dev)->rows;
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v, n_z = (size_t)a->grid.n[2];
	size_t bin = ((size_t)view * n_v + (size_t)v) * n_u + (size_t)u0, per_slice = (size_t)a->grid.n[0] * (size_t)a->grid.n[1];
	const float *mask = a->mask.mem ? a->mask.mem + bin : NULL, *len_u = a->len_u + (size_t)view * n_u + u0;
	const float *stretch = cpu_has_strips(a) ? cpu_stretch(a, view) + v : NULL;
	float len_v = a->len_v[(size_t)view * n_v + (size_t)v];
	int b0 = u0 / CPU_BLOCK, b1 = count_blocks(u1), first = 0, end = u1 - u0;

	while (mask && first < end && !(mask[first] > 0))
		first++;
	while (mask && first < end && !(mask[end - 1] > 0))
		end--;
	memset(w->acc + b0 * CPU_BLOCK, 0, (size_t)(b1 - b0) * CPU_BLOCK * sizeof(float));
	for (size_t k = 0; k < n_z; k++)
		forward_slice(a, &slices[k], f->x + k * per_slice, v, u0 + first, u0 + end, stretch, w);
	if (!f->rule) {
		rows->finish(f->out + bin, w->acc + u0, f->add, mask, len_u, len_v, u1 - u0);
		return;
	}
	rows->finish(w->line, w->acc + u0, false, mask, len_u, len_v, u1 - u0);
	rows->pairs(f->rule, f->y + bin, w->line, f->row ? f->row + bin : NULL, mask, f->q + bin, f->d + bin, u1 - u0);
}

void cpu_slices_forward(struct projection *a, const struct cpu_forward *f)
{
	int n_u = a->scan->n_u, n_v = a->scan->n_v, threads = cpu_state(a->dev)->threads;
	int tiles_u = (n_u + a->tile_u - 1) / a->tile_u, tiles_v = (n_v + a->tile_v - 1) / a->tile_v;
	size_t row_floats = (size_t)count_blocks(a->grid.n[0]) * CPU_BLOCK + 2 * (size_t)a->pad_x;
	size_t bins = (size_t)a->blocks_u * CPU_BLOCK;

	(void)threads;
#pragma omp parallel num_threads(threads)
	{
		float *scratch = thread_scratch(a);
		struct forward_work w = {scratch + a->pad_x,
					 scratch + row_floats,
					 scratch + row_floats + bins,
					 (void *)(scratch + row_floats + 2 * bins),
					 -1,
					 -1};

		memset(scratch, 0, row_floats * sizeof(float));
#pragma omp for collapse(3) schedule(static)
		for (int view = 0; view < a->n_views; view++) {
			for (int tu = 0; tu < tiles_u; tu++) {
				for (int tv = 0; tv < tiles_v; tv++) {
					int u0 = tu * a->tile_u, v1 = cpu_min((tv + 1) * a->tile_v, n_v);

					w.strip = -1;
					for (int v = tv * a->tile_v; v < v1; v++)
						forward_row(a, f, view, v, u0, cpu_min(u0 + a->tile_u, n_u), &w);
				}
			}
		}
	}
}

/* The current slice of a tile in one strip of a view. */
struct back_strip {
	const struct cpu_slice *s;
	struct cpu_span rows; /* rows of bins of the strip that are in the tile's footprint */
	struct cpu_span u;    /* the footprint in this slice, along u */
	int b0, b1; /* blocks [b0, b1) of voxels that the footprint touches; b0 = b1: no bin of the strip touches the tile in this
		       slice */
};
_Static_assert(sizeof(struct back_strip) <= CPU_BACK_STRIP * sizeof(float), "room in the scratch");

/* One view of a tile in the back pass. */
struct back_view {
	struct cpu_span footprint_u, footprint_v; /* the tile's footprint over all slices */
	struct back_strip *strip;		  /* the strips that touch the current slice */
	int n, at;				  /* their number; the first one that touches the current row of voxels */
	struct back_strip whole;		  /* the only one if the detector stands still */
};
_Static_assert(sizeof(struct back_view) <= CPU_BACK_VIEW * sizeof(float), "room in the scratch");

/* The working memory of one thread in a back pass. */
struct back_work {
	float *row_q, *row_d; /* weighted sums of rows of bins; zeros on either side */
	float *num, *den;     /* rows of voxels */
	float *footprint_q,
		*footprint_d;	/* for each view its footprint, footprint_v rows of footprint_u bins: q * length and d * length */
	struct cpu_span *data;	/* of each of these rows: the bins from the first to the last with d > 0; with a rule */
	struct back_view *view; /* n_views elements */
	struct back_strip *strip; /* n_views * strips elements, if there are strips */
	float *slice;		  /* with strips: a slice with its blocks of voxels for each of them */
};

static size_t foot_floats(const struct projection *a)
{
	return (size_t)a->footprint_u * (size_t)a->footprint_v;
}

/* Limit the footprint of a slice to that of the tile. The footprints of the lowest and the highest slice contain those of all
 * others, except for rounding: a bin at the edge, with weight 0, may be computed as part of a slice between them, but it is not
 * in the scratch memory. */
static struct cpu_span limit_span(struct cpu_span s, const struct cpu_span *footprint)
{
	s.first = cpu_max(s.first, footprint->first);
	s.end = cpu_min(s.end, footprint->end);
	return s;
}

/* Return the elements without the zeros at both ends. */
static struct cpu_span without_zeros(const float *d, int n)
{
	struct cpu_span s = {0, n};

	while (s.first < s.end && d[s.end - 1] == 0)
		s.end--;
	while (s.first < s.end && d[s.first] == 0)
		s.first++;
	return s;
}

/* Find the tile's footprint in a view and copy it into the scratch. */
static void fill_footprint(const struct projection *a, const struct cpu_back *job, const struct cpu_tile *t, int view,
			   const struct back_work *w)
{
	const struct cpu_rows *rows = cpu_state(a->dev)->rows;
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v;
	struct back_view *b = &w->view[view];

	b->strip = cpu_has_strips(a) ? w->strip + (size_t)view * (size_t)a->strips : &b->whole;
	cpu_tile_footprint(a, view, t, &b->footprint_u, &b->footprint_v);
	for (int r = b->footprint_v.first; r < b->footprint_v.end; r++) {
		size_t bin = ((size_t)view * n_v + (size_t)r) * n_u + (size_t)b->footprint_u.first;
		size_t to = (size_t)view * foot_floats(a) + (size_t)(r - b->footprint_v.first) * (size_t)a->footprint_u;

		/* the mask has been applied to pairs already */
		rows->lengths(w->footprint_q + to, job->d ? w->footprint_d + to : NULL, job->q + bin,
			      job->d ? job->d + bin : NULL, a->mask.mem && !job->d ? a->mask.mem + bin : NULL,
			      a->len_u + (size_t)view * n_u + b->footprint_u.first, a->len_v[(size_t)view * n_v + (size_t)r],
			      b->footprint_u.end - b->footprint_u.first);
		if (job->x)
			w->data[(size_t)view * (size_t)a->footprint_v + (size_t)(r - b->footprint_v.first)] =
				without_zeros(w->footprint_d + to, b->footprint_u.end - b->footprint_u.first);
	}
}

/* Compute the members of *b that are the same for all rows of a tile in one slice of a strip. */
static void enter_strip(const struct projection *a, const struct cpu_slice *s, struct cpu_span rows, const struct cpu_tile *t,
			const struct back_view *view, struct back_strip *b)
{
	int first = cpu_max(t->x0, s->voxels.first), end = cpu_min(t->x1, s->voxels.end);

	b->s = s;
	b->rows = limit_span(rows, &view->footprint_v);
	b->b0 = b->b1 = 0;
	if (first >= end)
		return;
	b->u = limit_span(cpu_footprint(&s->map, 0, first, end, a->scan->n_u), &view->footprint_u);
	if (b->u.first >= b->u.end)
		return;
	b->b0 = first / CPU_BLOCK;
	b->b1 = count_blocks(end);
}

/* Find the strips of a view that touch a tile in slice k. */
static void enter_slice(const struct projection *a, int view, int k, const struct cpu_tile *t, const struct back_work *w)
{
	struct back_view *b = &w->view[view];
	struct cpu_span rows;

	b->at = 0;
	b->n = 1;
	if (!cpu_has_strips(a)) {
		enter_strip(a, &a->slice[(size_t)view * (size_t)a->grid.n[2] + (size_t)k], b->footprint_v, t, b, b->strip);
		return;
	}
	rows = limit_span(cpu_strip_rows(a, view, k, t->y0, t->y1), &b->footprint_v);
	b->n = 0;
	for (int v = rows.first; v < rows.end && b->n < a->strips; b->n++) {
		size_t at = (size_t)view * (size_t)a->strips + (size_t)b->n;
		struct cpu_slice *s = (void *)(w->slice + at * cpu_slice_floats(a->blocks_x));
		int strip = v / a->strip_rows, next = (strip + 1) * a->strip_rows;

		s->map = cpu_strip_map(a, view, k, strip);
		cpu_slice_make(a, s, NULL, 0, 0, (void *)(s + 1), t->x0 / CPU_BLOCK, count_blocks(t->x1));
		enter_strip(a, s, (struct cpu_span){strip * a->strip_rows, cpu_min(next, a->scan->n_v)}, t, b, &b->strip[b->n]);
		v = next;
	}
}

/* Set blocks [b0, b1) of the sums to 0. */
static void clear_sums(int b0, int b1, bool two, const struct back_work *w)
{
	size_t bytes = b0 < b1 ? (size_t)(b1 - b0) * CPU_BLOCK * sizeof(float) : 0;

	memset(w->num + (size_t)b0 * CPU_BLOCK, 0, bytes);
	if (two)
		memset(w->den + (size_t)b0 * CPU_BLOCK, 0, bytes);
}

/* Return the bins along u that touch the voxels of blocks [b0, b1), and those of a voxel more on either side: in single precision,
 * a bin at the distance of a voxel may have a weight. */
static struct cpu_span bins_of(const struct projection *a, const struct back_strip *b, int b0, int b1)
{
	if (b0 == b->b0 && b1 == b->b1)
		return b->u;
	return limit_span(cpu_footprint(&b->s->map, 0, b0 * CPU_BLOCK - 1, b1 * CPU_BLOCK + 1, a->scan->n_u), &b->u);
}

/* Add the bins of a strip to num (and den) of the blocks `live` of voxels in row j. fresh: the sums are not yet initialised. Return
 * whether they are still not initialised afterwards, because no bin touches them. */
static bool back_strip(const struct projection *a, int view, const struct back_strip *b, struct cpu_span live, int j, bool two,
		       bool fresh, const struct back_work *w)
{
	const struct cpu_rows *rows = cpu_state(a->dev)->rows;
	const struct back_view *of = &w->view[view];
	const struct cpu_slice *s = b->s;
	const float *stretch = cpu_stretch(a, view);
	struct cpu_span v = limit_span(cpu_footprint(&s->map, 1, j, j + 1, a->scan->n_v), &b->rows);
	int at, b0 = cpu_max(b->b0, live.first), b1 = cpu_min(b->b1, live.end);
	struct cpu_span u;

	if (b0 >= b1 || v.first >= v.end)
		return fresh;
	u = bins_of(a, b, b0, b1);
	/* A few rows of bins at a time: two or three if bins are as dense as voxels. */
	for (; v.first < v.end; v.first += at) {
		size_t from = (size_t)view * foot_floats(a) + (size_t)(v.first - of->footprint_v.first) * (size_t)a->footprint_u +
			      (size_t)(u.first - of->footprint_u.first);
		float weight[8];

		if (fresh) {
			clear_sums(live.first, b0, two, w);
			clear_sums(b1, live.end, two, w);
		}
		for (at = 0; at < 8 && v.first + at < v.end; at++)
			weight[at] = (float)slice_weight(s->map.scale[1] * (v.first + at) + s->map.shift[1] - j);
		for (int r = 0; stretch && r < at; r++)
			weight[r] *= stretch[v.first + r];
		rows->combine(w->row_q + u.first, w->footprint_q + from, (size_t)a->footprint_u, weight, at, u.end - u.first);
		if (two)
			rows->combine(w->row_d + u.first, w->footprint_d + from, (size_t)a->footprint_u, weight, at,
				      u.end - u.first);
		rows->gather(w->num + b0 * CPU_BLOCK, two ? w->den + b0 * CPU_BLOCK : NULL, w->row_q, two ? w->row_d : NULL,
			     s->back + b0, b1 - b0, fresh, (float)s->map.scale[0], s->taps);
		fresh = false;
	}
	return fresh;
}

/* Return the position of row v of bins among the rows of voxels. */
static double row_position(const struct back_strip *b, int v)
{
	return b->s->map.scale[1] * v + b->s->map.shift[1];
}

/* Add the view's bins, see back_strip(). The rows j of a tile are processed in ascending order. */
static bool back_row(const struct projection *a, int view, struct cpu_span live, int j, bool two, bool fresh,
		     const struct back_work *w)
{
	struct back_view *b = &w->view[view];

	while (b->at + 1 < b->n && row_position(&b->strip[b->at], b->strip[b->at].rows.end - 1) <= j - 1)
		b->at++;
	for (int i = b->at; i < b->n; i++) {
		const struct back_strip *strip = &b->strip[i];

		if (i > b->at && row_position(strip, strip->rows.first) >= j + 1)
			break;
		if (strip->b0 < strip->b1)
			fresh = back_strip(a, view, strip, live, j, two, fresh, w);
	}
	return fresh;
}

/* Return the voxels of the tile's row j that bins with d > 0 touch, and a few more; with strips, all of them. */
static struct cpu_span touched_voxels(const struct projection *a, const struct cpu_tile *t, int j, const struct back_work *w)
{
	struct cpu_span touched = {t->x1, t->x0};

	for (int view = 0; view < a->n_views; view++) {
		const struct back_view *b = &w->view[view];
		const struct slice_map *map;
		struct cpu_span v;

		if (cpu_has_strips(a))
			return (struct cpu_span){t->x0, t->x1};
		if (b->whole.b0 >= b->whole.b1)
			continue;
		map = &b->whole.s->map;
		v = limit_span(cpu_footprint(map, 1, j, j + 1, a->scan->n_v), &b->footprint_v);
		for (int r = v.first; r < v.end; r++) {
			size_t row = (size_t)view * (size_t)a->footprint_v + (size_t)(r - b->footprint_v.first);
			struct cpu_span u = w->data[row];

			if (u.first >= u.end)
				continue;
			u.first += b->footprint_u.first;
			u.end += b->footprint_u.first;
			touched.first = cpu_min(touched.first, (int)floor(map->scale[0] * u.first + map->shift[0]) - 1);
			touched.end = cpu_max(touched.end, (int)floor(map->scale[0] * u.end + map->shift[0]) + 3);
		}
	}
	touched.first = cpu_max(touched.first, t->x0);
	touched.end = cpu_min(touched.end, t->x1);
	return touched;
}

static inline __attribute__((always_inline)) bool all_zero_loop(const float *x)
{
	int other = 0;

	for (int i = 0; i < STRETCH; i++)
		other |= x[i] != 0;
	return !other;
}

FOR_AVX2(bool, all_zero, (const float *x), (x))

/* Return the voxels of the span without the zeros at both ends. x: of voxel 0. */
static struct cpu_span between_zeros(const float *x, struct cpu_span s)
{
	while (s.end - s.first >= STRETCH && all_zero(x + s.end - STRETCH))
		s.end -= STRETCH;
	while (s.first < s.end && x[s.end - 1] == 0)
		s.end--;
	while (s.end - s.first >= STRETCH && all_zero(x + s.first))
		s.first += STRETCH;
	while (s.first < s.end && x[s.first] == 0)
		s.first++;
	return s;
}

static void back_tile(const struct projection *a, const struct cpu_back *job, const struct cpu_tile *t, const struct back_work *w)
{
	const struct cpu_rows *rows = cpu_state(a->dev)->rows;
	size_t n_z = (size_t)a->grid.n[2], n_x = (size_t)a->grid.n[0], n_y = (size_t)a->grid.n[1];
	size_t row_bytes = (size_t)(t->x1 - t->x0) * sizeof(float);
	const float *first = job->x ? job->x : job->num; /* the volume to prefetch */
	int width, ahead;

	for (int view = 0; view < a->n_views; view++)
		fill_footprint(a, job, t, view, w);
	for (size_t k = 0; k < n_z; k++) {
		for (int view = 0; view < a->n_views; view++)
			enter_slice(a, view, (int)k, t, w);
		for (int j = t->y0; j < t->y1; j++) {
			size_t row = (k * n_y + (size_t)j) * n_x + (size_t)t->x0;
			struct cpu_span inside = {t->x0, t->x1}, live;
			bool fresh = !job->add;

			if (job->x)
				inside = touched_voxels(a, t, j, w);
			if (inside.first >= inside.end)
				continue;
			ahead = inside.first - t->x0;
			width = inside.end - inside.first;
			if (j + 1 < t->y1)
				fetch_row(first + row + n_x + ahead, width);
			else if (k + 1 < n_z)
				fetch_row(first + ((k + 1) * n_y + (size_t)t->y0) * n_x + t->x0 + ahead, width);
			if (job->add) {
				memcpy(w->num + t->x0, job->num + row, row_bytes);
				if (job->d)
					memcpy(w->den + t->x0, job->den + row, row_bytes);
			}
			if (job->x)
				inside = between_zeros(job->x + row - t->x0, inside);
			if (inside.first >= inside.end)
				continue;
			live = (struct cpu_span){inside.first / CPU_BLOCK, count_blocks(inside.end)};
			for (int view = 0; view < a->n_views; view++)
				fresh = back_row(a, view, live, j, job->d != NULL, fresh, w);
			if (fresh)
				clear_sums(live.first, live.end, job->d != NULL, w);
			if (job->x) {
				rows->voxels(job->rule, w->num + inside.first, w->den + inside.first,
					     job->x + row + (inside.first - t->x0), inside.end - inside.first);
				continue;
			}
			memcpy(job->num + row, w->num + t->x0, row_bytes);
			if (job->d)
				memcpy(job->den + row, w->den + t->x0, row_bytes);
		}
	}
}

void cpu_slices_back(struct projection *a, const struct cpu_back *job)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1], threads = cpu_state(a->dev)->threads;
	int tiles_x = (n_x + a->tile_x - 1) / a->tile_x, tiles_y = (n_y + a->tile_y - 1) / a->tile_y;
	size_t row_floats = (size_t)count_blocks(a->scan->n_u) * CPU_BLOCK + 2 * (size_t)a->pad_u;
	size_t voxels = (size_t)a->blocks_x * CPU_BLOCK, footprint = (size_t)a->n_views * foot_floats(a);
	size_t data = (size_t)a->n_views * cpu_span_floats(a->footprint_v);
	size_t views = (size_t)a->n_views * CPU_BACK_VIEW, strips = (size_t)a->n_views * (size_t)a->strips * CPU_BACK_STRIP;

	(void)threads;
#pragma omp parallel num_threads(threads)
	{
		float *scratch = thread_scratch(a), *after = scratch + 2 * row_floats + 2 * voxels + 2 * footprint;
		struct back_work w = {
			.row_q = scratch + a->pad_u,
			.row_d = scratch + row_floats + a->pad_u,
			.num = scratch + 2 * row_floats,
			.den = scratch + 2 * row_floats + voxels,
			.footprint_q = scratch + 2 * row_floats + 2 * voxels,
			.footprint_d = scratch + 2 * row_floats + 2 * voxels + footprint,
			.view = (void *)after,
			.data = (void *)(after + views),
			.strip = (void *)(after + views + data),
			.slice = after + views + data + strips,
		};

		memset(scratch, 0, 2 * row_floats * sizeof(float));
#pragma omp for collapse(2) schedule(static)
		for (int ty = 0; ty < tiles_y; ty++) {
			for (int tx = 0; tx < tiles_x; tx++) {
				struct cpu_tile t = {tx * a->tile_x, cpu_min((tx + 1) * a->tile_x, n_x), ty * a->tile_y,
						     cpu_min((ty + 1) * a->tile_y, n_y)};

				back_tile(a, job, &t, &w);
			}
		}
	}
}
