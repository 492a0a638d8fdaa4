/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_slices_tables.c - tables that the slice-by-slice operator prepares once: maps, blocks, lengths, and the sizes of its
 * working memory.
 *
 * All are computed in double. A block stores its position relative to an integer base, so that its float loses no precision
 * however wide the detector. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>

/* Tile sizes if the caller does not set them. Adjacent rows of bins use the same rows of voxels, and conversely; so a tile is as
 * wide as two rows of every slice fit into the level-2 cache, and has several rows. */
#define CACHE_FLOATS (640 * 1024 / 4)
#define ROWS_FORWARD 16
#define ROWS_BACK 32

static size_t round_up(size_t n)
{
	return (n + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK;
}

/* Convert a double of any size into an integer of the range; NaN gives the lower end. */
static int clamp(double x, int lo, int hi)
{
	return !(x > lo) ? lo : x < hi ? (int)x : hi;
}

struct cpu_span cpu_footprint(const struct slice_map *map, int axis, int first, int end, int n)
{
	struct cpu_span span;

	span.first = clamp(slice_first_bin(map, axis, first), 0, n);
	span.end = clamp(floor((end - map->shift[axis]) / map->scale[axis]) + 1, span.first,
			 n); /* voxel end - 1 touches bins up to voxel position `end` */
	return span;
}

static struct slice_map map_at(const struct projection *a, int view, int k)
{
	return slice_map_make(a->scan, &a->scan->views[a->first + view], &a->grid, k);
}

static struct cpu_span join_spans(struct cpu_span a, struct cpu_span b)
{
	return (struct cpu_span){cpu_min(a.first, b.first), cpu_max(a.end, b.end)};
}

struct cpu_span cpu_strip_rows(const struct projection *a, int view, int k, int y0, int y1)
{
	const struct scan_view *w = &a->scan->views[a->first + view];
	int n_v = a->scan->n_v;
	struct cpu_span span;

	if (!w->posed) {
		struct slice_map map = map_at(a, view, k);

		return cpu_footprint(&map, 1, y0, y1, n_v);
	}
	/* a row more on either side than those within a voxel, because a strip's map is a straight line */
	span.first = clamp(floor(slice_row_at(w, &a->grid, k, y0 - 1)), 0, n_v);
	span.end = clamp(ceil(slice_row_at(w, &a->grid, k, y1)) + 1, span.first, n_v);
	return span;
}

/* A voxel's footprint moves monotonically with its height, so the bottom and the top slice bound it; along u also with the strip.
 */
void cpu_tile_footprint(const struct projection *a, int view, const struct cpu_tile *t, struct cpu_span *ret_u,
			struct cpu_span *ret_v)
{
	int last = a->grid.n[2] - 1, n_u = a->scan->n_u, n_v = a->scan->n_v;

	if (!cpu_has_strips(a)) {
		struct slice_map low = map_at(a, view, 0), high = map_at(a, view, last);

		*ret_u = join_spans(cpu_footprint(&low, 0, t->x0, t->x1, n_u), cpu_footprint(&high, 0, t->x0, t->x1, n_u));
		*ret_v = join_spans(cpu_footprint(&low, 1, t->y0, t->y1, n_v), cpu_footprint(&high, 1, t->y0, t->y1, n_v));
		return;
	}
	*ret_v = join_spans(cpu_strip_rows(a, view, 0, t->y0, t->y1), cpu_strip_rows(a, view, last, t->y0, t->y1));
	for (int corner = 0; corner < 4; corner++) {
		int v = corner & 1 ? cpu_max(ret_v->end - 1, 0) : cpu_min(ret_v->first, n_v - 1);
		struct slice_map map = cpu_strip_map(a, view, corner & 2 ? last : 0, v / a->strip_rows);
		struct cpu_span u = cpu_footprint(&map, 0, t->x0, t->x1, n_u);

		*ret_u = corner ? join_spans(*ret_u, u) : u;
	}
}

/* Set the sizes of the largest footprint of all tiles in all views. */
static void largest_footprint(struct projection *a)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1];
	struct cpu_span u, v;

	a->footprint_u = a->footprint_v = 1;
	for (int view = 0; view < a->n_views; view++) {
		for (int x = 0; x < n_x; x += a->tile_x) {
			struct cpu_tile t = {x, cpu_min(x + a->tile_x, n_x), 0, n_y};

			cpu_tile_footprint(a, view, &t, &u, &v);
			a->footprint_u = cpu_max(a->footprint_u, u.end - u.first);
		}
		for (int y = 0; y < n_y; y += a->tile_y) {
			struct cpu_tile t = {0, n_x, y, cpu_min(y + a->tile_y, n_y)};

			cpu_tile_footprint(a, view, &t, &u, &v);
			a->footprint_v = cpu_max(a->footprint_v, v.end - v.first);
		}
	}
	a->footprint_u = (int)round_up((size_t)a->footprint_u);
	a->strips = cpu_has_strips(a) ? (a->footprint_v + a->strip_rows - 2) / a->strip_rows + 1 : 1;
}

/* Set the smallest and the largest scale along x. */
static void scale_range(const struct projection *a, double *ret_min, double *ret_max)
{
	int strip = cpu_has_strips(a) ? (a->scan->n_v - 1) / a->strip_rows : 0;

	*ret_min = HUGE_VAL;
	*ret_max = 0;
	for (int view = 0; view < a->n_views; view++) {
		for (int corner = 0; corner < 4; corner++) {
			int k = corner & 1 ? a->grid.n[2] - 1 : 0;
			double scale = cpu_strip_map(a, view, k, corner & 2 ? strip : 0).scale[0];

			/* GCC 12 fails for Arm on fmin() and fmax() here. */
			if (scale < *ret_min)
				*ret_min = scale;
			if (scale > *ret_max)
				*ret_max = scale;
		}
	}
}

void cpu_slices_shape(struct projection *a)
{
	const struct scan *scan = a->scan;
	const struct grid *g = &a->grid;
	double scale_max, scale_min;
	int wide = cpu_max(CPU_BLOCK, CACHE_FLOATS / (2 * g->n[2]) / CPU_BLOCK * CPU_BLOCK);
	size_t forward, back;

	scale_range(a, &scale_min, &scale_max);
	a->blocks_u = (int)(round_up((size_t)scan->n_u) / CPU_BLOCK);
	a->blocks_x = (int)(round_up((size_t)g->n[0]) / CPU_BLOCK);
	/* The results of a block that extends beyond the end of the row read so many zeros; 32 more for the two vectors that are
	 * loaded together. */
	a->pad_x = (int)round_up((size_t)(CPU_BLOCK * scale_max) + 36);
	a->pad_u = (int)round_up((size_t)((CPU_BLOCK + 4) / scale_min) + 36);
	if (!a->tile_u)
		a->tile_u = wide;
	if (!a->tile_v)
		a->tile_v = ROWS_FORWARD;
	if (!a->tile_x)
		a->tile_x = wide;
	if (!a->tile_y)
		a->tile_y = ROWS_BACK;
	a->tile_u = cpu_min(a->tile_u, scan->n_u);
	a->tile_v = cpu_min(a->tile_v, scan->n_v);
	a->tile_x = cpu_min(a->tile_x, g->n[0]);
	a->tile_y = cpu_min(a->tile_y, g->n[1]);
	largest_footprint(a);
	forward = round_up((size_t)g->n[0]) + 2 * (size_t)a->pad_x + 2 * (size_t)a->blocks_u * CPU_BLOCK;
	back = 2 * (round_up((size_t)scan->n_u) + 2 * (size_t)a->pad_u + (size_t)a->blocks_x * CPU_BLOCK +
		    (size_t)a->n_views * (size_t)a->footprint_u * (size_t)a->footprint_v) +
	       (size_t)a->n_views * (CPU_BACK_VIEW + cpu_span_floats(a->footprint_v));
	if (cpu_has_strips(a)) {
		forward += (size_t)g->n[2] * cpu_slice_floats(a->blocks_u);
		back += (size_t)a->n_views * (size_t)a->strips * (CPU_BACK_STRIP + cpu_slice_floats(a->blocks_x));
	}
	a->thread_floats = forward > back ? forward : back;
}

static size_t count_slices(const struct projection *a)
{
	return (size_t)a->n_views * (size_t)a->grid.n[2];
}

size_t cpu_slices_bytes(const struct projection *a)
{
	if (cpu_has_strips(a))
		return (size_t)a->n_views * ((size_t)a->scan->n_u + 2 * (size_t)a->scan->n_v) * sizeof(float);
	return count_slices(a) * sizeof(struct cpu_slice) +
	       count_slices(a) * ((size_t)a->blocks_u + (size_t)a->blocks_x) * sizeof(struct cpu_block) +
	       (size_t)a->n_views * ((size_t)a->scan->n_u + (size_t)a->scan->n_v) * sizeof(float);
}

void cpu_slice_make(const struct projection *a, struct cpu_slice *s, struct cpu_block *forward, int f0, int f1,
		    struct cpu_block *back, int b0, int b1)
{
	double scale = s->map.scale[0], shift = s->map.shift[0];
	int n_u = a->scan->n_u, n_x = a->grid.n[0];

	s->bins = cpu_footprint(&s->map, 0, 0, n_x, n_u);
	s->voxels.first = clamp(ceil(shift - 1), 0, n_x);
	s->voxels.end = clamp(floor(scale * (n_u - 1) + shift + 1) + 1, s->voxels.first, n_x);
	s->taps = slice_taps(scale);
	s->forward = forward;
	s->back = back;
	for (int b = f0; b < f1; b++) {
		double at = scale * (b * CPU_BLOCK) + shift, base = floor(at);

		forward[b].base = clamp(base, 1 - a->pad_x, n_x); /* the input before the first is read, too */
		forward[b].f = (float)(at - base);
		forward[b].s = 0;
	}
	for (int b = b0; b < b1; b++) {
		double at = (b * CPU_BLOCK - 1 - shift) / scale, base = floor(at);

		back[b].base = clamp(base, -a->pad_u, n_u);
		back[b].f = (float)(at - base);
		back[b].s = (float)(scale * base + shift - b * CPU_BLOCK);
	}
}

static void make_lengths(struct projection *a)
{
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v;

	for (int view = 0; view < a->n_views; view++) {
		const struct scan_view *w = &a->scan->views[a->first + view];
		float *stretch = cpu_stretch(a, view);

		for (size_t u = 0; u < n_u; u++)
			a->len_u[(size_t)view * n_u + u] = (float)slice_length_u(a->scan, w, &a->grid, (int)u);
		for (size_t v = 0; v < n_v; v++)
			a->len_v[(size_t)view * n_v + v] = (float)slice_length_v(a->scan, w, &a->grid, (int)v);
		for (size_t v = 0; stretch && v < n_v; v++)
			stretch[v] = (float)slice_stretch(w, (int)v);
	}
}

int cpu_slices_tables(struct projection *a, struct err *err)
{
	bool strips = cpu_has_strips(a);
	size_t n = strips ? 0 : count_slices(a), n_z = (size_t)a->grid.n[2], n_u = (size_t)a->scan->n_u,
	       n_v = (size_t)a->scan->n_v, at;
	size_t per_slice = (size_t)a->blocks_u + (size_t)a->blocks_x;

	a->slice = strips ? NULL : calloc(n, sizeof(*a->slice));
	a->block = strips ? NULL : calloc(n * per_slice, sizeof(*a->block));
	a->len_u = calloc((size_t)a->n_views * n_u, sizeof(float));
	a->len_v = calloc((strips ? 2 : 1) * (size_t)a->n_views * n_v, sizeof(float));
	if ((!strips && (!a->slice || !a->block)) || !a->len_u || !a->len_v)
		return err_set(err, ENOMEM, "projection: cannot allocate tables of %zu bytes", cpu_slices_bytes(a));
	for (at = 0; at < n; at++) {
		struct cpu_block *block = a->block + at * per_slice;

		a->slice[at].map = map_at(a, (int)(at / n_z), (int)(at % n_z));
		cpu_slice_make(a, &a->slice[at], block, 0, a->blocks_u, block + a->blocks_u, 0, a->blocks_x);
	}
	make_lengths(a);
	return 0;
}
