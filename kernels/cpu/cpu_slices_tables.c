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

/* Return the largest footprint, in bins, of a tile `step` voxels wide along an axis, over all views. */
static int largest_footprint(const struct projection *a, int axis, int step)
{
	int n_bins = axis ? a->scan->n_v : a->scan->n_u, n = a->grid.n[axis], largest = 1;

	for (int view = 0; view < a->n_views; view++) {
		struct slice_map low = map_at(a, view, 0), high = map_at(a, view, a->grid.n[2] - 1);

		/* A voxel's footprint moves monotonically with its height, so the bottom and the top slice bound it. */
		for (int i = 0; i < n; i += step) {
			int end = cpu_min(i + step, n);
			struct cpu_span s0 = cpu_footprint(&low, axis, i, end, n_bins),
					s1 = cpu_footprint(&high, axis, i, end, n_bins);

			largest = cpu_max(largest, cpu_max(s0.end, s1.end) - cpu_min(s0.first, s1.first));
		}
	}
	return largest;
}

void cpu_slices_shape(struct projection *a)
{
	const struct scan *scan = a->scan;
	const struct grid *g = &a->grid;
	double scale_max = 0, scale_min = HUGE_VAL;
	int wide = cpu_max(CPU_BLOCK, CACHE_FLOATS / (2 * g->n[2]) / CPU_BLOCK * CPU_BLOCK);
	size_t forward, back;

	for (int view = 0; view < a->n_views; view++) {
		double low = map_at(a, view, 0).scale[0], high = map_at(a, view, g->n[2] - 1).scale[0];

		scale_max = low > scale_max ? low : scale_max;
		scale_min = high < scale_min ? high : scale_min;
	}
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
	a->footprint_u = (int)round_up((size_t)largest_footprint(a, 0, a->tile_x));
	a->footprint_v = largest_footprint(a, 1, a->tile_y);
	forward = round_up((size_t)g->n[0]) + 2 * (size_t)a->pad_x + 2 * (size_t)a->blocks_u * CPU_BLOCK;
	back = 2 * (round_up((size_t)scan->n_u) + 2 * (size_t)a->pad_u + (size_t)a->blocks_x * CPU_BLOCK +
		    (size_t)a->n_views * (size_t)a->footprint_u * (size_t)a->footprint_v) +
	       (size_t)a->n_views * CPU_BACK_VIEW;
	a->thread_floats = forward > back ? forward : back;
}

static size_t count_slices(const struct projection *a)
{
	return (size_t)a->n_views * (size_t)a->grid.n[2];
}

size_t cpu_slices_bytes(const struct projection *a)
{
	return count_slices(a) * sizeof(struct cpu_slice) +
	       count_slices(a) * ((size_t)a->blocks_u + (size_t)a->blocks_x) * sizeof(struct cpu_block) +
	       (size_t)a->n_views * ((size_t)a->scan->n_u + (size_t)a->scan->n_v) * sizeof(float);
}

static void make_slice(const struct projection *a, struct cpu_slice *s, struct cpu_block *forward, struct cpu_block *back)
{
	double scale = s->map.scale[0], shift = s->map.shift[0];
	int n_u = a->scan->n_u, n_x = a->grid.n[0];

	s->bins = cpu_footprint(&s->map, 0, 0, n_x, n_u);
	s->voxels.first = clamp(ceil(shift - 1), 0, n_x);
	s->voxels.end = clamp(floor(scale * (n_u - 1) + shift + 1) + 1, s->voxels.first, n_x);
	s->taps = slice_taps(scale);
	s->forward = forward;
	s->back = back;
	for (int b = 0; b < a->blocks_u; b++) {
		double at = scale * (b * CPU_BLOCK) + shift;

		forward[b].base = clamp(floor(at), -a->pad_x, n_x);
		forward[b].f = (float)(at - floor(at));
		forward[b].s = 0;
	}
	for (int b = 0; b < a->blocks_x; b++) {
		double at = (b * CPU_BLOCK - 1 - shift) / scale;

		back[b].base = clamp(floor(at), -a->pad_u, n_u);
		back[b].f = (float)(at - floor(at));
		back[b].s = (float)(scale * floor(at) + shift - b * CPU_BLOCK);
	}
}

int cpu_slices_tables(struct projection *a, struct err *err)
{
	size_t n = count_slices(a), n_z = (size_t)a->grid.n[2], n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v, at;
	size_t per_slice = (size_t)a->blocks_u + (size_t)a->blocks_x;

	a->slice = calloc(n, sizeof(*a->slice));
	a->block = calloc(n * per_slice, sizeof(*a->block));
	a->len_u = calloc((size_t)a->n_views * n_u, sizeof(float));
	a->len_v = calloc((size_t)a->n_views * n_v, sizeof(float));
	if (!a->slice || !a->block || !a->len_u || !a->len_v)
		return err_set(err, ENOMEM, "projection: cannot allocate tables of %zu bytes", cpu_slices_bytes(a));
	for (at = 0; at < n; at++) {
		struct cpu_block *block = a->block + at * per_slice;

		a->slice[at].map = map_at(a, (int)(at / n_z), (int)(at % n_z));
		make_slice(a, &a->slice[at], block, block + a->blocks_u);
	}
	for (int view = 0; view < a->n_views; view++) {
		const struct scan_view *w = &a->scan->views[a->first + view];

		for (size_t u = 0; u < n_u; u++)
			a->len_u[(size_t)view * n_u + u] = (float)slice_length_u(a->scan, w, &a->grid, (int)u);
		for (size_t v = 0; v < n_v; v++)
			a->len_v[(size_t)view * n_v + v] = (float)slice_length_v(a->scan, w, &a->grid, (int)v);
	}
	return 0;
}
