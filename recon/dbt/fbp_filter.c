/* SPDX-License-Identifier: Apache-2.0 */
/* fbp_filter.c - weights of filtered backprojection, and filtering of rows (recon/core/ramp.h).
 *
 * - A row along v continues to infinity with its end values. The filter turns a constant into 0, so the first value is subtracted
 *   first; the rest of the continuation, a step at the end of the detector, is computed in closed form: step * (sum of the
 *   kernel's tail).
 * - v is the slow axis in memory: blocks of BLOCK neighbours in u are transposed into rows and back. */
#include "recon/dbt/fbp_filter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/ramp.h"

#define BLOCK 16 /* floats of a cache line */

/* The inputs of a view's weights. */
struct weights {
	double src[3], path[3];
	double first, h; /* x of bin 0 and pitch */
	double n_views;
	bool posed;		   /* any view */
	double *along_u, *along_v; /* mean over the views of (d_x / s_z)^2 and (d_y / s_z)^2 */
	double *d_y, *stretch;	   /* of row v: see find_row() */
	double *density;	   /* mean over the views of shadow_density() */
};

/* Find the part of the source's path that a view represents, between its neighbours in the order of y. */
static int find_source_path(const struct scan *scan, int view, double ret_path[3], struct err *err)
{
	const struct scan_view *at = &scan->views[view], *below = NULL, *above = NULL;

	for (int i = 0; i < scan->n_views; i++) {
		const struct scan_view *other = &scan->views[i];

		if (!(other->src[2] > 0))
			return err_set(err, EINVAL, "fbp: the source of view %d is %g mm above the detector", i, other->src[2]);
		if (i != view && other->src[1] == at->src[1])
			return err_set(err, EINVAL, "fbp: the sources of views %d and %d are both at y = %g mm", view, i,
				       at->src[1]);
		if (other->src[1] < at->src[1] && (!below || other->src[1] > below->src[1]))
			below = other;
		if (other->src[1] > at->src[1] && (!above || other->src[1] < above->src[1]))
			above = other;
	}
	if (!below && !above)
		return err_set(err, EINVAL, "fbp: the scan has one view; at least two are needed");
	for (int c = 0; c < 3; c++) {
		double up = above ? above->src[c] - at->src[c] : 0, down = below ? at->src[c] - below->src[c] : 0;

		ret_path[c] = !above ? down : !below ? up : (up + down) / 2;
	}
	return 0;
}

/* Find where the rays of row v meet the plane z = 0: d_y there, and the distance from the source divided by that of the bins. A
 * detector that turns is replaced by its shadow in that plane. The distances of the shadow's rows vary along v; that changes the
 * filtered values and the weights of A by inverse factors. Those along u change the weights of A only: store_block(). */
static void find_row(const struct scan *scan, const struct scan_view *view, int v, double *ret_d_y, double *ret_stretch)
{
	const struct scan_pose *p = &view->pose;

	*ret_d_y = scan->lo[1] + view->shift[1] + (v + 0.5) * scan->h[1] - view->src[1];
	*ret_stretch = 1;
	if (!view->posed)
		return;
	*ret_stretch = view->src[2] / (view->src[2] - p->origin[2] - v * p->step_v[2]);
	*ret_d_y = (p->origin[1] + v * p->step_v[1] - view->src[1]) * *ret_stretch;
}

/* Return how many bins of row v there are for each bin of the shadow's plane: the weights of A have this factor, also in A'1. */
static double shadow_density(const struct scan *scan, const struct scan_view *view, int v)
{
	const struct scan_pose *p = &view->pose;
	double above = view->src[2] - p->origin[2], d_y = p->origin[1] - view->src[1], stretch, slope;

	if (!view->posed)
		return 1;
	stretch = view->src[2] / (above - v * p->step_v[2]);
	slope = (p->step_v[1] * above + d_y * p->step_v[2]) * stretch * stretch / view->src[2]; /* of d_y in find_row() */
	return scan->h[1] / (slope * stretch);
}

static double bin_x(const struct scan *scan, const struct scan_view *view, int u)
{
	return view->posed ? view->pose.origin[0] + u * scan->h[0] : scan->lo[0] + view->shift[0] + (u + 0.5) * scan->h[0];
}

static int weights_make(const struct scan *scan, int view, struct weights *ret, struct err *err)
{
	const struct scan_view *at = &scan->views[view];
	struct weights w = {.n_views = scan->n_views};
	int r = find_source_path(scan, view, w.path, err);

	if (r < 0)
		return r;
	w.along_u = calloc((size_t)scan->n_u + 4 * (size_t)scan->n_v, sizeof(*w.along_u));
	if (!w.along_u)
		return err_set(err, ENOMEM, "fbp: no memory for the weights of %d + %d bins", scan->n_u, scan->n_v);
	w.along_v = w.along_u + scan->n_u;
	w.d_y = w.along_v + scan->n_v;
	w.stretch = w.d_y + scan->n_v;
	w.density = w.stretch + scan->n_v;
	w.h = scan->h[0];
	w.first = bin_x(scan, at, 0);
	for (int c = 0; c < 3; c++)
		w.src[c] = at->src[c];
	for (int v = 0; v < scan->n_v; v++) {
		find_row(scan, at, v, &w.d_y[v], &w.stretch[v]);
		if (!at->posed)
			w.d_y[v] = scan->lo[1] + at->shift[1] + 0.5 * scan->h[1] + v * scan->h[1] - w.src[1];
	}
	for (int i = 0; i < scan->n_views; i++) {
		const struct scan_view *other = &scan->views[i];
		double d, stretch, weight = other->src[2] * other->src[2] * scan->n_views;

		w.posed = w.posed || other->posed;
		for (int u = 0; u < scan->n_u; u++) {
			d = bin_x(scan, other, u) - other->src[0];
			w.along_u[u] += d * d / weight;
		}
		for (int v = 0; v < scan->n_v; v++) {
			find_row(scan, other, v, &d, &stretch);
			w.along_v[v] += d * d / weight;
			w.density[v] += shadow_density(scan, other, v) / scan->n_views;
		}
	}
	*ret = w;
	return 0;
}

static void weights_clear(struct weights *w)
{
	free(w->along_u);
}

static inline double weight_before(const struct weights *w, double d_x, double d_y)
{
	double flat = w->src[2] * w->src[2] + d_x * d_x;

	return (w->path[1] + w->path[2] * w->src[2] * d_y / flat) / sqrt(flat + d_y * d_y);
}

static inline double weight_after(const struct weights *w, double d_x, double d_y, double mean_u, double mean_v)
{
	double own = (d_x * d_x + d_y * d_y) / (w->src[2] * w->src[2]);

	return w->n_views * sqrt((1 + mean_u + mean_v) / (1 + own));
}

/* Load a block; NaN marks bins without data. */
static void load_block(const struct scan *scan, const struct weights *w, const float *line, const float *valid, int u0, int m,
		       float *tile)
{
	for (int v = 0; v < scan->n_v; v++) {
		size_t at = (size_t)v * (size_t)scan->n_u + (size_t)u0;
		double d_y = w->d_y[v], stretch = w->stretch[v];

		for (int c = 0; c < m; c++) {
			double d_x = (w->first + (u0 + c) * w->h - w->src[0]) * stretch;
			bool data = (valid[at + (size_t)c] > 0 || valid[at + (size_t)c] < 0) && isfinite(line[at + (size_t)c]);

			tile[(size_t)c * (size_t)scan->n_v + (size_t)v] =
				data ? (float)(line[at + (size_t)c] * weight_before(w, d_x, d_y)) : NAN;
		}
	}
}

static void store_block(const struct scan *scan, const struct weights *w, const float *tile, int u0, int m, float *line)
{
	for (int v = 0; v < scan->n_v; v++) {
		size_t at = (size_t)v * (size_t)scan->n_u + (size_t)u0;
		double d_y = w->d_y[v], stretch = w->stretch[v], factor = w->posed ? stretch * w->density[v] : 1;

		for (int c = 0; c < m; c++) {
			double d_x = (w->first + (u0 + c) * w->h - w->src[0]) * stretch;

			line[at + (size_t)c] = (float)(tile[(size_t)c * (size_t)scan->n_v + (size_t)v] *
						       weight_after(w, d_x, d_y, w->along_u[u0 + c], w->along_v[v]) * factor);
		}
	}
}

/* Fill the gaps of a row, subtract its first value, and return the resulting last value. */
static float close_row(float *row, int n)
{
	int last = -1;
	float first = 0;

	for (int v = 0; v < n; v++) {
		if (isnan(row[v]))
			continue;
		if (last < 0)
			first = row[v];
		for (int g = last + 1; g < v; g++)
			row[g] = last < 0 ? 0 : row[last] + (row[v] - first - row[last]) * (float)(g - last) / (float)(v - last);
		row[v] -= first;
		last = v;
	}
	for (int g = last + 1; g < n; g++)
		row[g] = last < 0 ? 0 : row[last];
	return row[n - 1];
}

/* Filter two rows in place; b may be NULL. */
static void filter_rows(const struct ramp *r, int n, float *a, float *b, void *work)
{
	float end_a = close_row(a, n), end_b = b ? close_row(b, n) : 0;

	ramp_rows(r, a, b, work);
	for (int v = 0; v < n; v++) {
		a[v] += end_a * ramp_tail(r, n - v);
		if (b)
			b[v] += end_b * ramp_tail(r, n - v);
	}
}

static int filter_view(const struct scan *scan, const struct ramp *r, const struct weights *w, float *line, const float *valid,
		       struct err *err)
{
	size_t n_v = (size_t)scan->n_v;
	int n_blocks = (scan->n_u + BLOCK - 1) / BLOCK;
	bool failed = false;

#pragma omp parallel
	{
		float *tile = malloc(BLOCK * n_v * sizeof(*tile));
		void *work = malloc(ramp_work(r));

		if (!tile || !work) {
#pragma omp atomic write
			failed = true;
		}
#pragma omp barrier /* all threads have their memory before any data are changed */
		if (!failed) {
#pragma omp for schedule(dynamic)
			for (int block = 0; block < n_blocks; block++) {
				int u0 = block * BLOCK, m = scan->n_u - u0 < BLOCK ? scan->n_u - u0 : BLOCK;

				load_block(scan, w, line, valid, u0, m, tile);
				for (int c = 0; c < m; c += 2)
					filter_rows(r, scan->n_v, tile + (size_t)c * n_v,
						    c + 1 < m ? tile + (size_t)(c + 1) * n_v : NULL, work);
				store_block(scan, w, tile, u0, m, line);
			}
		}
		free(tile);
		free(work);
	}
	return failed ? err_set(err, ENOMEM, "fbp: no memory to filter rows of %d bins", scan->n_v) : 0;
}

int fbp_filter_view(const struct scan *scan, int view, enum dbt_filter filter, double cut, float *line, const float *valid,
		    struct err *err)
{
	struct weights w = {.along_u = NULL};
	struct ramp *ramp = NULL;
	int r;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "fbp: scan of kind %d, not tomosynthesis", (int)scan->kind);
	if (view < 0 || view >= scan->n_views)
		return err_set(err, EINVAL, "fbp: view %d of %d; views are numbered from 0", view, scan->n_views);
	if (filter != DBT_FILTER_RAMP && filter != DBT_FILTER_HANN)
		return err_set(err, EINVAL, "fbp: filter %d, not in %d..%d", (int)filter, DBT_FILTER_RAMP, DBT_FILTER_HANN);
	r = weights_make(scan, view, &w, err);
	if (r < 0)
		return r;
	r = ramp_create(filter == DBT_FILTER_HANN ? RAMP_HANN : RAMP_PLAIN, cut, scan->h[1], scan->n_v, &ramp, err);
	if (r == 0)
		r = filter_view(scan, ramp, &w, line, valid, err);
	ramp_free(ramp);
	weights_clear(&w);
	return r;
}
