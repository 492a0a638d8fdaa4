/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_exact.c - the reference operator: the ray walk, forward and (by scattering) back. Forward: a unit of work is a tile of
 * bins; each ray has one sum, in double. Back: a unit of work is a tile of voxel columns; one thread walks along every ray that
 * crosses the tile, but only inside it. Planes are numbered as in the whole volume, so each voxel gets the same lengths as in a
 * walk through the whole volume. The terms of a voxel are added in the order of the bins, which depends neither on the tile nor
 * on the thread: no atomics are needed, and every run gives bitwise the same result. The projections of the tile's eight corners
 * onto the detector show which rays cross it.
 *
 * Time of flight: a ray has a sum for each TOF bin. The weights of a piece of the ray are those of the middle of its step of the
 * transaxial path (kernels/paths.h), in double. */
#include "kernels/cpu/cpu.h"
#include "kernels/planes.h"
#include "kernels/tof_walk.h"

#include <math.h>
#include <string.h>

#define EDGE 1e-6 /* mm: far larger than the effect of rounding on a ray */

static bool counts_bin(const struct projection *a, size_t bin)
{
	return !a->mask.mem || a->mask.mem[bin] > 0;
}

/* The weights of TOF bins [first, end) at t. */
struct window {
	double t;
	int first, end;
	double weight[TOF_MOST];
};

/* Compute the weights at t; the pieces of one step have the same. */
static void find_weights(struct window *w, const struct scan_tof *tof, double t)
{
	if (t == w->t)
		return;
	w->t = t;
	tof_bins(tof, t, &w->first, &w->end);
	for (int k = w->first; k < w->end; k++)
		w->weight[k] = tof_weight(tof, k, t);
}

/* Compute the sums of the TOF bins of one ray. */
static void tof_line(const struct projection *a, struct tof_walk *s, const float *x, double *ret_sum)
{
	struct tof_piece piece;
	struct window w;

	w.t = HUGE_VAL;
	while (tof_walk_next(s, &piece)) {
		find_weights(&w, &a->scan->tof, piece.middle);
		for (int k = w.first; k < w.end; k++)
			ret_sum[k] += piece.length * w.weight[k] * x[piece.voxel];
	}
}

/* Project forward the rays of all planes in one radial bin. */
static void tof_forward_bin(const struct projection *a, int view, int v, double largest_rise, const struct cpu_forward *f)
{
	struct voxel_box whole = voxel_box_whole(&a->grid);
	size_t n_u = (size_t)a->scan->n_u, n = (size_t)a->scan->tof.n;
	float *out = f->out + ((size_t)view * (size_t)a->scan->n_v + (size_t)v) * n * n_u;
	double from[3], to[3], sum[TOF_MOST];
	struct tof_walk s;

	for (size_t u = 0; u < n_u; u++) {
		memset(sum, 0, n * sizeof(*sum));
		if (scan_ray(a->scan, &a->scan->views[a->first + view], (int)u, v, from, to) &&
		    tof_walk_start(&s, a->scan, v, largest_rise, &a->grid, &whole, from, to))
			tof_line(a, &s, f->x, sum);
		for (size_t k = 0; k < n; k++)
			out[k * n_u + u] = (f->add ? out[k * n_u + u] : 0) + (float)sum[k];
	}
}

static void tof_forward(const struct projection *a, const struct cpu_forward *f)
{
	double rise = planes_max_abs_rise(a->scan);
	int threads = cpu_state(a->dev)->threads;

	(void)threads;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic)
	for (int view = 0; view < a->n_views; view++)
		for (int v = 0; v < a->scan->n_v; v++)
			tof_forward_bin(a, view, v, rise, f);
}

void cpu_exact_forward(struct projection *a, const struct cpu_forward *f)
{
	int n_u = a->scan->n_u, n_v = a->scan->n_v, threads = cpu_state(a->dev)->threads;
	int tiles_u = (n_u + a->tile_u - 1) / a->tile_u, tiles_v = (n_v + a->tile_v - 1) / a->tile_v;
	struct voxel_box whole = voxel_box_whole(&a->grid);

	if (a->scan->tof.n) {
		tof_forward(a, f);
		return;
	}
	(void)threads;
#pragma omp parallel for collapse(3) num_threads(threads) schedule(dynamic)
	for (int view = 0; view < a->n_views; view++) {
		for (int tv = 0; tv < tiles_v; tv++) {
			for (int tu = 0; tu < tiles_u; tu++) {
				int u1 = cpu_min((tu + 1) * a->tile_u, n_u), v1 = cpu_min((tv + 1) * a->tile_v, n_v);

				for (int v = tv * a->tile_v; v < v1; v++) {
					for (int u = tu * a->tile_u; u < u1; u++) {
						size_t bin = ((size_t)view * (size_t)n_v + (size_t)v) * (size_t)n_u + (size_t)u,
						       voxel;
						double from[3], to[3], length, sum = 0;
						struct ray_walk w;

						if (counts_bin(a, bin) &&
						    scan_ray(a->scan, &a->scan->views[a->first + view], u, v, from, to) &&
						    ray_walk_start(&w, &a->grid, &whole, from, to))
							while (ray_walk_next(&w, &voxel, &length))
								sum += length * f->x[voxel];
						f->out[bin] = f->add ? f->out[bin] + (float)sum : (float)sum;
					}
				}
			}
		}
	}
}

/* Return the bins along one axis whose rays may cross [lo, hi] of the box: project its faces at heights z0 < z1 from the source
 * onto the detector. */
static struct cpu_span rays_through(const struct projection *a, const struct scan_view *view, int axis, int first, int end)
{
	const struct grid *g = &a->grid;
	double z[2] = {g->lo[2], g->lo[2] + g->n[2] * g->h[2]}, low = HUGE_VAL, high = -HUGE_VAL;
	int n = axis ? a->scan->n_v : a->scan->n_u;
	struct cpu_span all = {0, n}, span;

	for (int corner = 0; corner < 4; corner++) {
		double at = g->lo[axis] + (corner & 1 ? end : first) * g->h[axis], height = z[corner >> 1], bin;

		if (height >= view->src[2])
			return all; /* beside or above the source: no bound */
		bin = view->src[axis] + (at - view->src[axis]) * view->src[2] / (view->src[2] - height);
		bin = (bin - a->scan->lo[axis] - view->shift[axis]) / a->scan->h[axis] - 0.5;
		low = bin < low ? bin : low;
		high = bin > high ? bin : high;
	}
	span.first = low - 1 > n ? n : low - 1 < 0 ? 0 : (int)(low - 1);
	span.end = high + 2 > n ? n : high + 2 < span.first ? span.first : (int)(high + 2);
	return span;
}

/* Return the same for a box below the source, along both axes, if the detector has a pose of its own. */
static void rays_through_posed(const struct projection *a, const struct scan_view *view, const struct voxel_box *box,
			       struct cpu_span *ret_u, struct cpu_span *ret_v)
{
	const struct grid *g = &a->grid;
	double low[2] = {HUGE_VAL, HUGE_VAL}, high[2] = {-HUGE_VAL, -HUGE_VAL}, at[3], foot[2];
	struct cpu_span *span[2] = {ret_u, ret_v};
	int n[2] = {a->scan->n_u, a->scan->n_v};

	*ret_u = (struct cpu_span){0, n[0]};
	*ret_v = (struct cpu_span){0, n[1]};
	for (int corner = 0; corner < 8; corner++) {
		for (int c = 0; c < 3; c++)
			at[c] = g->lo[c] + (corner >> c & 1 ? box->end[c] : box->first[c]) * g->h[c];
		if (!(at[2] < view->src[2]) || !scan_foot(a->scan, view, at, foot))
			return; /* beside or above the source: no bound */
		for (int c = 0; c < 2; c++) {
			low[c] = fmin(low[c], foot[c]);
			high[c] = fmax(high[c], foot[c]);
		}
	}
	for (int c = 0; c < 2; c++) {
		span[c]->first = (int)fmin(fmax(low[c] - 1, 0), n[c]);
		span[c]->end = (int)fmin(fmax(high[c] + 2, span[c]->first), n[c]);
	}
}

/* Return the radial bins whose rays may cross the box (parallel rays). */
static struct cpu_span radii_through(const struct projection *a, const struct scan_view *view, const struct voxel_box *box)
{
	const struct grid *g = &a->grid;
	double low = HUGE_VAL, high = -HUGE_VAL;
	struct cpu_span span = {0, a->scan->n_v};

	for (int corner = 0; corner < 4; corner++) {
		double x = g->lo[0] + (corner & 1 ? box->end[0] : box->first[0]) * g->h[0];
		double y = g->lo[1] + (corner & 2 ? box->end[1] : box->first[1]) * g->h[1];
		double r = x * view->turn[0] + y * view->turn[1];

		low = fmin(low, r);
		high = fmax(high, r);
	}
	while (span.first < span.end && a->scan->radius[span.first] < low - EDGE)
		span.first++;
	while (span.end > span.first && a->scan->radius[span.end - 1] > high + EDGE)
		span.end--;
	return span;
}

static void clear_box(const struct projection *a, const struct voxel_box *box, float *x)
{
	const struct grid *g = &a->grid;
	int rows = g->z_fastest ? box->end[0] - box->first[0] : box->end[2] - box->first[2];
	size_t from = (size_t)box->first[0] * grid_step(g, 0), row = g->z_fastest ? grid_step(g, 0) : grid_step(g, 2);
	size_t n = g->z_fastest ? grid_column(g) : (size_t)(box->end[0] - box->first[0]);

	for (int k = 0; k < rows; k++)
		for (int j = box->first[1]; j < box->end[1]; j++)
			memset(x + (size_t)k * row + (size_t)j * grid_step(g, 1) + from, 0, n * sizeof(float));
}

/* Add one ray's TOF bins, which are `distance` floats apart. */
static void tof_back_ray(const struct projection *a, struct tof_walk *s, const float *q, size_t distance, float *x)
{
	struct tof_piece piece;
	struct window w;

	w.t = HUGE_VAL;
	while (tof_walk_next(s, &piece)) {
		double sum = 0;

		find_weights(&w, &a->scan->tof, piece.middle);
		for (int k = w.first; k < w.end; k++)
			sum += w.weight[k] * q[(size_t)k * distance];
		x[piece.voxel] += (float)(piece.length * sum);
	}
}

static void tof_back_tile(const struct projection *a, const struct voxel_box *box, double largest_rise, const struct cpu_back *b)
{
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v, n = (size_t)a->scan->tof.n;
	double from[3], to[3];
	struct tof_walk s;

	if (!b->add)
		clear_box(a, box, b->num);
	for (int view = 0; view < a->n_views; view++) {
		const struct scan_view *at = &a->scan->views[a->first + view];
		struct cpu_span vs = radii_through(a, at, box);

		for (int v = vs.first; v < vs.end; v++) {
			const float *q = b->q + ((size_t)view * n_v + (size_t)v) * n * n_u;

			for (size_t u = 0; u < n_u; u++)
				if (scan_ray(a->scan, at, (int)u, v, from, to) &&
				    tof_walk_start(&s, a->scan, v, largest_rise, &a->grid, box, from, to))
					tof_back_ray(a, &s, q + u, n_u, b->num);
		}
	}
}

/* Add both sums (q and d) in one walk along each ray. */
static void back_tile(const struct projection *a, const struct voxel_box *box, const struct cpu_back *b)
{
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v, voxel;
	double from[3], to[3], length;
	struct ray_walk w;

	if (!b->add) {
		clear_box(a, box, b->num);
		if (b->d)
			clear_box(a, box, b->den);
	}
	for (int view = 0; view < a->n_views; view++) {
		const struct scan_view *at = &a->scan->views[a->first + view];
		struct cpu_span us = {0, a->scan->n_u}, vs;

		if (a->scan->kind == SCAN_PARALLEL) {
			vs = radii_through(a, at, box);
		} else if (at->posed) {
			rays_through_posed(a, at, box, &us, &vs);
		} else {
			us = rays_through(a, at, 0, box->first[0], box->end[0]);
			vs = rays_through(a, at, 1, box->first[1], box->end[1]);
		}

		for (int v = vs.first; v < vs.end; v++) {
			for (int u = us.first; u < us.end; u++) {
				size_t bin = ((size_t)view * n_v + (size_t)v) * n_u + (size_t)u;
				float q, d;

				if (!counts_bin(a, bin))
					continue;
				q = b->q[bin];
				d = b->d ? b->d[bin] : 0;
				if (q == 0 && d == 0)
					continue;
				if (!scan_ray(a->scan, at, u, v, from, to) || !ray_walk_start(&w, &a->grid, box, from, to))
					continue;
				while (ray_walk_next(&w, &voxel, &length)) {
					b->num[voxel] += (float)(length * q);
					if (b->d)
						b->den[voxel] += (float)(length * d);
				}
			}
		}
	}
}

void cpu_exact_back(struct projection *a, const struct cpu_back *b)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1], threads = cpu_state(a->dev)->threads;
	int tiles_x = (n_x + a->tile_x - 1) / a->tile_x, tiles_y = (n_y + a->tile_y - 1) / a->tile_y;
	double rise = a->scan->tof.n ? planes_max_abs_rise(a->scan) : 0;

	(void)threads;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic)
	for (int ty = 0; ty < tiles_y; ty++) {
		for (int tx = 0; tx < tiles_x; tx++) {
			struct voxel_box box = {
				{tx * a->tile_x, ty * a->tile_y, 0},
				{cpu_min((tx + 1) * a->tile_x, n_x), cpu_min((ty + 1) * a->tile_y, n_y), a->grid.n[2]}};

			if (a->scan->tof.n)
				tof_back_tile(a, &box, rise, b);
			else
				back_tile(a, &box, b);
		}
	}
}
