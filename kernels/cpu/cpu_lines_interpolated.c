/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_lines_interpolated.c - back_interpolated() of stacks of 2-D parallel beams.
 *
 * - One slice: tiles of CPU_TILE x CPU_TILE pixels, whose sums stay in registers for CPU_TILE_VIEWS views. A tile projects onto a
 *   few adjacent bins of a view. Rows are copied first, with padding on both sides, so that reading needs no range check.
 *   Positions: the corner of a tile in double, the rest relative to it in float; the error is below 1e-5 of a bin.
 * - Many slices: blocks of pixels; for each pixel and some views, first compute the positions in the rows, then use them for all
 *   slices.
 * - Sums are float; those of single slices start anew every CPU_TILE_VIEWS views. */
#include "kernels/cpu/cpu_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 128     /* edge of a unit of work, pixels; so small that its data stay in the thread's cache */
#define LARGE 1024    /* pixels; smaller images use half of BLOCK, so that there are enough units for all threads */
#define FRONT 48      /* zeros before a row, for pixels that project up to so many bins outside it */
#define BEHIND 64     /* zeros after a row */
#define STACK_BLOCK 8 /* BLOCK for many slices */
#define STACK_VIEWS 16

/* Position of pixel (x, y) on a view's row: first + x along[0] + y along[1] bins. */
struct place {
	double first, along[2];
};

struct task {
	const struct projection *a;
	const struct place *place; /* one per view */
	const float *y;		   /* one slice: the copy, with rows `row` floats apart */
	size_t row;
	float *x;
	bool add;
};

static bool in_fov(const struct projection *a, int i, int j)
{
	const struct grid *g = &a->grid;
	double px = g->lo[0] + (i + 0.5) * g->h[0], py = g->lo[1] + (j + 0.5) * g->h[1];

	return px * px + py * py < a->scan->fov_radius * a->scan->fov_radius;
}

static void make_places(const struct projection *a, struct place *place)
{
	const struct scan *s = a->scan;
	const struct grid *g = &a->grid;
	double pitch = (s->radius[s->n_v - 1] - s->radius[0]) / (s->n_v - 1);

	for (int view = 0; view < a->n_views; view++) {
		const double *turn = s->views[a->first + view].turn;
		double x = g->lo[0] + 0.5 * g->h[0], y = g->lo[1] + 0.5 * g->h[1];

		place[view] = (struct place){(x * turn[0] + y * turn[1] - s->radius[0]) / pitch,
					     {g->h[0] * turn[0] / pitch, g->h[1] * turn[1] / pitch}};
	}
}

/* Compute how a tile projects onto a view. Return false if it does not project onto any bin. */
static bool project_tile(const struct task *t, int view, int x, int y, struct cpu_tile_view *ret)
{
	const struct place *p = &t->place[view];
	double at = p->first + x * p->along[0] + y * p->along[1], last = t->a->scan->n_v - 1;
	double across = (CPU_TILE - 1) * p->along[0], down = (CPU_TILE - 1) * p->along[1];
	double least = at + fmin(across, 0) + fmin(down, 0), most = at + fmax(across, 0) + fmax(down, 0), base;

	if (most < -LINE_EDGE || least > last + LINE_EDGE)
		return false;
	base = fmin(fmax(floor(least), -FRONT), last - 1);
	*ret = (struct cpu_tile_view){.row = t->y + (size_t)view * t->row + FRONT + (ptrdiff_t)base,
				      .at = (float)(at - base),
				      .across = (float)p->along[0],
				      .down = (float)p->along[1],
				      .last = (float)(last - base),
				      .first = (float)-base,
				      .edge = least < LINE_EDGE || most > last - LINE_EDGE,
				      .near_by = most - base < 31 && base <= least};
	return true;
}

static void store_tile(const struct task *t, int x, int y, const float *sum)
{
	const struct projection *a = t->a;
	int n_x = cpu_min(CPU_TILE, a->grid.n[0] - x), n_y = cpu_min(CPU_TILE, a->grid.n[1] - y);
	size_t column = lines_column(&a->grid);

	for (int j = 0; j < n_y; j++)
		for (int i = 0; i < n_x; i++) {
			float *to = t->x + ((size_t)(y + j) * (size_t)a->grid.n[0] + (size_t)(x + i)) * column;
			float value = in_fov(a, x + i, y + j) ? sum[j * BLOCK + i] : 0;

			*to = t->add ? *to + value : value;
			for (size_t z = 1; z < column && !t->add; z++)
				to[z] = 0;
		}
}

static void back_block(const struct task *t, int x0, int y0, int size)
{
	const struct projection *a = t->a;
	int x1 = cpu_min(x0 + size, a->grid.n[0]), y1 = cpu_min(y0 + size, a->grid.n[1]);
	struct cpu_tile_view tile_views[CPU_TILE_VIEWS];
	float sum[BLOCK * BLOCK];

	memset(sum, 0, (size_t)size * BLOCK * sizeof(*sum));
	for (int first = 0; first < a->n_views; first += CPU_TILE_VIEWS)
		for (int y = y0; y < y1; y += CPU_TILE)
			for (int x = x0; x < x1; x += CPU_TILE) {
				int n = 0;

				for (int view = first; view < cpu_min(first + CPU_TILE_VIEWS, a->n_views); view++)
					n += project_tile(t, view, x, y, &tile_views[n]);
				cpu_state(a->dev)->rows->lines->tile(sum + (y - y0) * BLOCK + (x - x0), BLOCK, tile_views, n);
			}
	for (int y = y0; y < y1; y += CPU_TILE)
		for (int x = x0; x < x1; x += CPU_TILE)
			store_tile(t, x, y, sum + (y - y0) * BLOCK + (x - x0));
}

/* For each of the views [first, end), compute the position onto which a pixel projects, if it is on a bin. Return the number of
 * positions. */
static int locate_pixel(const struct task *t, int x, int y, int first, int end, struct cpu_bin_position *ret)
{
	const struct scan *s = t->a->scan;
	double last = s->n_v - 1;
	int n = 0;

	for (int view = first; view < end; view++) {
		const struct place *p = &t->place[view];
		double at = p->first + x * p->along[0] + y * p->along[1];
		int bin;

		if (at < -LINE_EDGE || at > last + LINE_EDGE)
			continue;
		at = at < 0 ? 0 : at > last ? last : at;
		bin = cpu_min((int)at, s->n_v - 2);
		ret[n].from = ((size_t)view * (size_t)s->n_v + (size_t)bin) * (size_t)s->n_u;
		ret[n++].part = (float)(at - bin);
	}
	return n;
}

static void store_pixel(const struct task *t, int x, int y, int u, int n, const float *sum)
{
	const struct projection *a = t->a;
	size_t column = lines_column(&a->grid);
	float *to = t->x + ((size_t)y * (size_t)a->grid.n[0] + (size_t)x) * column;
	bool on = in_fov(a, x, y);

	for (int i = 0; i < n; i++) {
		float value = on ? sum[i] : 0;

		to[u + i] = t->add ? to[u + i] + value : value;
	}
	for (size_t z = (size_t)a->scan->n_u; z < column && !t->add; z++)
		to[z] = 0;
}

static void back_stack_block(const struct task *t, int x0, int y0, int u)
{
	const struct projection *a = t->a;
	int x1 = cpu_min(x0 + STACK_BLOCK, a->grid.n[0]), y1 = cpu_min(y0 + STACK_BLOCK, a->grid.n[1]);
	int n_u = cpu_min(CPU_LINES_WIDE, a->scan->n_u - u);
	float sum[STACK_BLOCK * STACK_BLOCK][CPU_LINES_WIDE] = {{0}};
	struct cpu_bin_position positions[STACK_VIEWS];

	for (int first = 0; first < a->n_views; first += STACK_VIEWS)
		for (int y = y0; y < y1; y++)
			for (int x = x0; x < x1; x++) {
				int n = locate_pixel(t, x, y, first, cpu_min(first + STACK_VIEWS, a->n_views), positions);

				cpu_state(a->dev)->rows->lines->interpolate(positions, n, t->y + u, (size_t)a->scan->n_u, n_u,
									    sum[(y - y0) * STACK_BLOCK + (x - x0)]);
			}
	for (int y = y0; y < y1; y++)
		for (int x = x0; x < x1; x++)
			store_pixel(t, x, y, u, n_u, sum[(y - y0) * STACK_BLOCK + (x - x0)]);
}

static void copy_rows(const struct projection *a, const float *y, size_t row, float *to, int threads)
{
	size_t n_v = (size_t)a->scan->n_v;

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int view = 0; view < a->n_views; view++) {
		float *at = to + (size_t)view * row;

		memset(at, 0, FRONT * sizeof(*at));
		memcpy(at + FRONT, y + (size_t)view * n_v, n_v * sizeof(*at));
		memset(at + FRONT + n_v, 0, (row - FRONT - n_v) * sizeof(*at));
	}
}

int cpu_lines_interpolated(struct projection *a, const float *y, bool add, float *x, struct err *err)
{
	int threads = cpu_state(a->dev)->threads, n_x = a->grid.n[0], n_y = a->grid.n[1], n_u = a->scan->n_u;
	struct place *place = malloc((size_t)a->n_views * sizeof(*place));
	struct task t = {.a = a, .place = place, .y = y, .x = x, .add = add};
	int size = n_x < LARGE ? BLOCK / 2 : BLOCK, r = 0;
	float *rows = NULL;

	(void)threads;
	if (n_u == 1) {
		t.row = FRONT + (size_t)a->scan->n_v + BEHIND;
		t.y = rows = cpu_memory((size_t)a->n_views * t.row * sizeof(*rows));
	}
	if (!place || !t.y) {
		r = err_set(err, ENOMEM, "back_interpolated: out of memory for %d views", a->n_views);
		goto out;
	}
	make_places(a, place);
	if (n_u == 1) {
		copy_rows(a, y, t.row, rows, threads);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic)
		for (int j = 0; j < n_y; j += size)
			for (int i = 0; i < n_x; i += size)
				back_block(&t, i, j, size);
		goto out;
	}
#pragma omp parallel for collapse(3) num_threads(threads) schedule(dynamic)
	for (int u = 0; u < n_u; u += CPU_LINES_WIDE)
		for (int j = 0; j < n_y; j += STACK_BLOCK)
			for (int i = 0; i < n_x; i += STACK_BLOCK)
				back_stack_block(&t, i, j, u);
out:
	free(place);
	free(rows);
	return r;
}
