/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_line_rows_back.c - the back pass of a single slice of parallel beams without a table: for each pixel, the rays that meet
 * it.
 *
 * - Tiles of CPU_TILE x CPU_TILE pixels, whose sums stay in registers for CPU_TILE_VIEWS views. So no thread needs an image of
 * its own, and the result does not depend on the number of threads.
 * - Pixels at the edge of the field of view or, with JOSEPH, at an end of their row, are computed one by one.
 * - Positions: the corner of a tile in double, the rest relative to it in float; the error is below 1e-5 pixels. */
#include "kernels/cpu/cpu_line_rows.h"

#include <math.h>
#include <string.h>

#define BLOCK 64	/* edge of a unit of work of the back pass, pixels */
#define WINDOW_MOST 256 /* bins that the rays of a tile may have; further ones are computed one by one */
#define BUFFER (WINDOW_MOST + CPU_WINDOW)
#define SAFETY 1e-4 /* pixels: so close to a pixel's edge a ray counts as one that may meet it */

struct back {
	const struct projection *a;
	const struct view_rays *rays; /* one per view */
	const float *q;
	float *x;
	bool add;
};

/* Return the sum of a pixel over the rays of a view that meet it. */
static double pixel_sum(const struct back *b, int view, int x, int y)
{
	const struct projection *a = b->a;
	const struct view_rays *r = &b->rays[view];
	const struct row_view *w = &r->w;
	int k = w->lead ? y : x, i = w->lead ? x : y, n_v = a->scan->n_v;
	double low = w->start + w->slope * k, reach = a->model == PROJECTION_JOSEPH ? 1 : fabs(w->along);
	/* the rays with i - reach < low + pitch v < i + 1, and one more on each side */
	double p = (i - reach - low) / w->pitch, o = (i + 1 - low) / w->pitch, sum = 0;
	int from = (int)fmin(fmax(fmin(p, o) - 1, 0), n_v), to = (int)fmax(fmin(fmax(p, o) + 2, n_v), 0);

	for (int v = from; v < to; v++) {
		struct row_range range = row_range_of(w, a->scan, cpu_rows_view(a, view), v, &a->grid);
		float weight[2];
		int first;

		if (range.begin >= range.end || !row_entries(w, &range, a->scan->radius[v], k, &first, weight) || i < first ||
		    i > first + 1)
			continue;
		if (weight[i - first] > 0)
			sum += weight[i - first] * b->q[(size_t)view * (size_t)n_v + (size_t)v];
	}
	return sum;
}

/* Where a pixel is. EDGE: tiles do not compute it correctly; OUTSIDE: no ray meets it. */
enum place { PLACE_WHOLE, PLACE_EDGE, PLACE_OUTSIDE };

/* The place of a pixel for the views with this lead. */
static enum place place_of(const struct projection *a, int lead, int x, int y)
{
	const struct grid *g = &a->grid;
	bool joseph = a->model == PROJECTION_JOSEPH;
	int i = lead ? x : y, width = g->n[1 - lead];
	double margin = joseph ? 1.5 : 0.5; /* pixels from its centre: so far away is the part of a ray that meets it */
	double at_x = fabs(g->lo[0] + (x + 0.5) * g->h[0]), at_y = fabs(g->lo[1] + (y + 0.5) * g->h[1]);
	double half_x = margin * g->h[0], half_y = margin * g->h[1];

	if (hypot(fmax(at_x - half_x, 0), fmax(at_y - half_y, 0)) > a->scan->fov_radius)
		return PLACE_OUTSIDE;
	if ((joseph && (i == 0 || i == width - 1)) || hypot(at_x + half_x, at_y + half_y) > a->scan->fov_radius)
		return PLACE_EDGE;
	return PLACE_WHOLE;
}

/* Compute how the rays of a view cross a tile. buffer: BUFFER floats. Return 0 if none does, -1 if there are too many for a
 * window. */
static int cross_tile(const struct back *b, int view, int x, int y, float *buffer, struct cpu_tile_rays *ret)
{
	const struct projection *a = b->a;
	const struct view_rays *r = &b->rays[view];
	const struct row_view *w = &r->w;
	const float *q = b->q + (size_t)view * (size_t)a->scan->n_v;
	int k = w->lead ? y : x, i = w->lead ? x : y, n_v = a->scan->n_v;
	/* ray u, ascending: v = u or n_v - 1 - u */
	double start = w->start + (r->descending ? w->pitch * (n_v - 1) : 0), pitch = fabs(w->pitch);
	double reach = (a->model == PROJECTION_JOSEPH ? 1 : fabs(w->along)) + SAFETY, at = i - (start + w->slope * k);
	double down = -w->slope * (CPU_TILE - 1);
	double least = (at + fmin(down, 0) - reach) / pitch, most = (at + fmax(down, 0) + CPU_TILE) / pitch, base = floor(least);
	int n;

	ret->rays = (int)ceil((1 + reach + SAFETY) / pitch);
	if (most <= -1 || base >= n_v)
		return 0;
	n = (int)(most - base) + 2;
	if (r->one_by_one || n + ret->rays > WINDOW_MOST)
		return -1;
	for (int j = 0; j < (n > CPU_WINDOW ? n : CPU_WINDOW) + ret->rays; j++) {
		int u = (int)base + 1 + j, v = r->descending ? n_v - 1 - u : u;

		buffer[j] = j < n && u >= 0 && u < n_v && scan_reach(a->scan, v) > 0 ? q[v] * w->length : 0;
	}
	ret->window = buffer;
	ret->at = (float)(at - base * pitch);
	ret->down = (float)-w->slope;
	ret->pitch = (float)pitch;
	ret->per_pixel = (float)(1 / pitch);
	ret->inverse = w->inverse;
	ret->reach = (float)reach;
	ret->near_by = n <= CPU_WINDOW;
	return 1;
}

/* Add a tile's sums over the views with this lead. sum[j][i]: row j along the leading axis. */
static void back_tile(const struct back *b, int lead, int x, int y, float *buffer, float *sum)
{
	const struct projection *a = b->a;
	struct cpu_tile_rays views[CPU_TILE_VIEWS];
	int n = 0;

	memset(sum, 0, CPU_TILE * CPU_TILE * sizeof(*sum));
	for (int view = 0; view < a->n_views; view++) {
		int rc;

		if (b->rays[view].w.lead != lead)
			continue;
		rc = cross_tile(b, view, x, y, buffer + n * BUFFER, &views[n]);
		n += rc > 0;
		for (int i = 0; rc < 0 && i < CPU_TILE * CPU_TILE; i++) {
			int at_x = x + (lead ? i % CPU_TILE : i / CPU_TILE), at_y = y + (lead ? i / CPU_TILE : i % CPU_TILE);

			sum[i] += (float)pixel_sum(b, view, at_x, at_y);
		}
		if (n == CPU_TILE_VIEWS) {
			cpu_state(a->dev)->rows->lines->rays(sum, views, n);
			n = 0;
		}
	}
	cpu_state(a->dev)->rows->lines->rays(sum, views, n);
}

/* Return the sum of a pixel over the views with this lead. tile: what back_tile() has for it. */
static float lead_sum(const struct back *b, int lead, int x, int y, float tile)
{
	enum place place = place_of(b->a, lead, x, y);
	double sum = 0;

	if (place != PLACE_EDGE)
		return place == PLACE_WHOLE ? tile : 0;
	for (int view = 0; view < b->a->n_views; view++)
		if (b->rays[view].w.lead == lead)
			sum += pixel_sum(b, view, x, y);
	return (float)sum;
}

static void store_pixel(const struct back *b, int x, int y, float value)
{
	const struct grid *g = &b->a->grid;
	size_t column = lines_column(g);
	float *to = b->x + ((size_t)y * (size_t)g->n[0] + (size_t)x) * column;

	*to = b->add ? *to + value : value;
	for (size_t z = 1; z < column && !b->add; z++)
		to[z] = 0;
}

static void back_block(const struct back *b, int x0, int y0, float *buffer)
{
	const struct projection *a = b->a;
	int x1 = cpu_min(x0 + BLOCK, a->grid.n[0]), y1 = cpu_min(y0 + BLOCK, a->grid.n[1]);
	float sum[2][CPU_TILE * CPU_TILE];

	for (int y = y0; y < y1; y += CPU_TILE)
		for (int x = x0; x < x1; x += CPU_TILE) {
			for (int lead = 0; lead < 2; lead++)
				back_tile(b, lead, x, y, buffer, sum[lead]);
			for (int j = 0; j < cpu_min(CPU_TILE, y1 - y); j++)
				for (int i = 0; i < cpu_min(CPU_TILE, x1 - x); i++) {
					float along_y = lead_sum(b, 1, x + i, y + j, sum[1][j * CPU_TILE + i]);
					float along_x = lead_sum(b, 0, x + i, y + j, sum[0][i * CPU_TILE + j]);

					store_pixel(b, x + i, y + j, along_x + along_y);
				}
		}
}

void cpu_line_rows_back(const struct projection *a, const struct cpu_back *b)
{
	struct back back = {.a = a, .rays = a->lines->rays, .q = b->q, .x = b->num, .add = b->add};
	int threads = cpu_state(a->dev)->threads, n_x = a->grid.n[0], n_y = a->grid.n[1];

	(void)threads;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic)
	for (int y = 0; y < n_y; y += BLOCK)
		for (int x = 0; x < n_x; x += BLOCK)
			back_block(&back, x, y, cpu_rows_scratch(a));
}

size_t cpu_line_rows_back_scratch(void)
{
	return (size_t)CPU_TILE_VIEWS * BUFFER;
}
