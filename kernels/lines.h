/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of 2-D parallel beams: a SCAN_PARALLEL without time of flight whose plane u has rise 0 and the z of the middle of slice
 * u. C11, C++17, CUDA C++. Every slice has the same rays. So one list of (column of voxels, weight in mm) describes a ray in all
 * slices; this list is called a line. The loops that use lines are the same for every model (PATHS, JOSEPH, SAMPLED): y[u] = sum
 * of w x[column][u].
 *
 * - The volume is stored z fastest. A single slice may also be stored x fastest: the order of its voxels is the same, only
 *   without padding.
 * - SAMPLED: points at t = (k + 1/2) step, k an integer, inside the field of view; bilinear interpolation between the centres of
 *   pixels, 0 outside the grid. Every point has the weight of `step` mm of the ray, so the sum of a line's weights is a whole
 *   number of steps. */
#ifndef TOMONODE_KERNELS_LINES_H
#define TOMONODE_KERNELS_LINES_H

#include <string.h>

#include "kernels/device.h"
#include "kernels/paths.h"

/* Tolerance in bins: a position up to this far outside the first or last bin counts as that bin in back_interpolated(). At angles
 * of 0 and 90 degrees the centres of pixels often project exactly onto the first or last bin, and without a tolerance rounding
 * would decide whether they are inside. */
#define LINE_EDGE 1e-4

struct line_entry {
	int32_t column; /* y n_x + x */
	float weight;	/* mm */
};

struct line {
	size_t at; /* index of the first entry */
	int n;
	float norm; /* sum of the squares of the weights */
};

/* Is this geometry a stack? */
static inline bool lines_fit(const struct scan *s, const struct grid *g)
{
	if (s->kind != SCAN_PARALLEL || s->tof.n || s->n_u != g->n[2] || (!g->z_fastest && g->n[2] != 1))
		return false;
	for (int u = 0; u < s->n_u; u++)
		if (s->planes[u].rise != 0 || fabs(s->planes[u].z - (g->lo[2] + (u + 0.5) * g->h[2])) > 1e-6 * g->h[2])
			return false;
	return true;
}

/* Does a projection of this model and geometry use lines? */
static inline bool lines_needed(const struct projection_spec *spec)
{
	return spec->model >= PROJECTION_PATHS && lines_fit(spec->scan, spec->grid);
}

/* Return the distance from one column to the next, floats. */
static inline TOMONODE_HD size_t lines_column(const struct grid *g)
{
	return g->z_fastest ? grid_column(g) : 1;
}

/* Return the distance, in radial bins, between the lines of one pass of row_sweep(), so large that no two of these lines share a
 * pixel. The centres of a line's pixels are at most half a pixel diagonal from it with PATHS, less than one diagonal with JOSEPH
 * and SAMPLED. */
static inline int lines_stride(enum projection_model model, const struct scan *s, const struct grid *g)
{
	double diagonal = sqrt(g->h[0] * g->h[0] + g->h[1] * g->h[1]),
	       reach = model == PROJECTION_PATHS ? diagonal : 2 * diagonal;
	int stride = 1;

	for (int v = 0; v + 1 < s->n_v; v++)
		while (v + stride < s->n_v && s->radius[v + stride] - s->radius[v] <= reach * (1 + 1e-9))
			stride++;
	return stride;
}

/* Restrict [*from, *to], mm along a ray whose position is first + t per_mm pixels, to the part that is less than a pixel from the
 * centre of a pixel. */
static inline TOMONODE_HD void line_clip_axis(double first, double per_mm, int n, double *from, double *to)
{
	if (per_mm != 0) {
		double a = (-1 - first) / per_mm, b = (n - first) / per_mm;

		*from = fmax(*from, fmin(a, b));
		*to = fmin(*to, fmax(a, b));
	} else if (!(first > -1 && first < n)) {
		*to = *from;
	}
}

/* Return an upper bound of a line's number of entries. Uses a largest_rise of 0, as in every stack. */
static inline TOMONODE_HD int line_bound(enum projection_model model, const struct scan *s, const struct scan_view *view, int v,
					 const struct grid *g)
{
	int cells = path_bound(s, view, v, g, 0);

	if (model == PROJECTION_PATHS || !cells)
		return cells;
	if (model == PROJECTION_SAMPLED) { /* four pixels, and two for each line of centres that the ray crosses */
		double r = s->radius[v], c = view->turn[0], d = view->turn[1], to = scan_reach(s, v), from = -to;
		double per_mm[2] = {-d / g->h[0], c / g->h[1]};

		line_clip_axis((r * c - g->lo[0]) / g->h[0] - 0.5, per_mm[0], g->n[0], &from, &to);
		line_clip_axis((r * d - g->lo[1]) / g->h[1] - 0.5, per_mm[1], g->n[1], &from, &to);
		return to > from ? 2 * (int)((to - from) * (fabs(per_mm[0]) + fabs(per_mm[1]))) + 10 : 0;
	}
	return 2 * cells + 8; /* two entries per step */
}

/* How a device stores the entries: for all views if they fit into `keep` bytes; else for a batch of views at a time, as many as
 * fit into `batch` bytes but at least one, and it computes each batch again whenever it is needed. */
struct lines_table {
	size_t entries; /* size of the table, entries */
	int batch;	/* views stored at a time */
};

static inline struct lines_table lines_table(enum projection_model model, const struct scan *s, int first, int n_views,
					     const struct grid *g, size_t keep, size_t batch)
{
	struct lines_table t = {0, n_views};
	size_t largest = 1;

	for (int view = first; view < first + n_views; view++) {
		size_t n = 0;

		for (int v = 0; v < s->n_v; v++)
			n += (size_t)line_bound(model, s, s->views + view, v, g);
		t.entries += n;
		largest = n > largest ? n : largest;
	}
	if (t.entries > keep / sizeof(struct line_entry)) {
		size_t fit = batch / sizeof(struct line_entry) / largest;

		t.batch = fit < 1 ? 1 : fit < (size_t)n_views ? (int)fit : n_views;
		t.entries = largest * (size_t)t.batch;
	}
	return t;
}

/* Return the step that is stored in the memory of entry e; both types have the same size. */
static inline TOMONODE_HD struct path_step line_step(const struct line_entry *e)
{
	struct path_step step;

	memcpy(&step, e, sizeof(step));
	return step;
}

/* Compute the entries of a PATHS line. Return their number. */
static inline TOMONODE_HD int line_paths(const struct scan *s, const struct scan_view *view, int v, const struct grid *g,
					 struct line_entry *ret_entry)
{
	float begin;
	int n = path_walk(s, view, v, g, 0, (struct path_step *)ret_entry, &begin);

	for (int k = 0; k < n; k++) {
		struct path_step at = line_step(ret_entry + k);

		ret_entry[k].column = at.column;
		ret_entry[k].weight = at.t - begin;
		begin = at.t;
	}
	return n;
}

/* Compute the entries of a JOSEPH line; return their number. Entries of weight 0 are dropped: at the edge of the grid such a
 * pixel can be further from the line than lines_stride() assumes. */
static inline TOMONODE_HD int line_joseph(const struct scan *s, const struct scan_view *view, int v, const struct grid *g,
					  struct line_entry *ret_entry)
{
	struct path path;
	int n = path_joseph(s, view, v, g, (struct path_step *)ret_entry, &path), kept = 0;
	float len = fabsf(path.dt);

	for (int k = n - 1; k >= 0; k--) { /* replace each step by two entries, in place, so from the last step to the first */
		struct path_step at = line_step(ret_entry + k);

		ret_entry[2 * k + 1].column = at.column + path.neighbour;
		ret_entry[2 * k + 1].weight = at.t * len;
		ret_entry[2 * k].column = at.column;
		ret_entry[2 * k].weight = (1 - at.t) * len;
	}
	for (int k = 0; k < 2 * n; k++)
		if (ret_entry[k].weight != 0)
			ret_entry[kept++] = ret_entry[k];
	return kept;
}

#define LINE_LEAST 1e-9 /* of a step: smaller weights of SAMPLED are there by rounding */

/* The pixels that the points of a SAMPLED line are between: (x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1), and their weights so
 * far, in steps. */
struct line_window {
	int x, y;
	double weight[4];
};

/* Append a pixel to the entries if it is in the grid and has a weight. Return the number of entries. */
static inline TOMONODE_HD int line_append(int x, int y, double weight, const struct grid *g, double sampling, int room, int n,
					  struct line_entry *ret_entry)
{
	if (weight > LINE_LEAST && x >= 0 && y >= 0 && x < g->n[0] && y < g->n[1] && n < room) {
		ret_entry[n].column = y * g->n[0] + x;
		ret_entry[n++].weight = (float)(weight * sampling);
	}
	return n;
}

/* Move the window to (x, y). Append the pixels that are no longer in it to the entries; the line does not come back to them.
 * Return the number of entries. */
static inline TOMONODE_HD int line_window_move(struct line_window *w, int x, int y, const struct grid *g, double sampling,
					       int room, int n, struct line_entry *ret_entry)
{
	double *at = w->weight;
	int far = x < w->x - 1 || x > w->x + 1 || y < w->y - 1 || y > w->y + 1;

	if (x != w->x || far) { /* the pixels of one x stay, at the other end of the window */
		int up = x > w->x;
		double low = up ? at[1] : at[0], high = up ? at[3] : at[2];

		n = line_append(w->x + !up, w->y, up ? at[0] : at[1], g, sampling, room, n, ret_entry);
		n = line_append(w->x + !up, w->y + 1, up ? at[2] : at[3], g, sampling, room, n, ret_entry);
		if (far) {
			n = line_append(w->x + up, w->y, low, g, sampling, room, n, ret_entry);
			n = line_append(w->x + up, w->y + 1, high, g, sampling, room, n, ret_entry);
			low = high = 0;
		}
		at[0] = up ? low : 0;
		at[1] = up ? 0 : low;
		at[2] = up ? high : 0;
		at[3] = up ? 0 : high;
		w->x = x;
	}
	if (y != w->y && !far) {
		int up = y > w->y;
		double low = up ? at[2] : at[0], high = up ? at[3] : at[1];

		n = line_append(w->x, w->y + !up, up ? at[0] : at[2], g, sampling, room, n, ret_entry);
		n = line_append(w->x + 1, w->y + !up, up ? at[1] : at[3], g, sampling, room, n, ret_entry);
		at[0] = up ? low : 0;
		at[2] = up ? 0 : low;
		at[1] = up ? high : 0;
		at[3] = up ? 0 : high;
	}
	w->y = y;
	return n;
}

/* Restrict the points [*begin, *end) to those with -1 < first + k step < n: only these are near a pixel. */
static inline TOMONODE_HD void line_clip(double first, double step, int n, int *begin, int *end)
{
	if (fabs(step) * (*end - *begin) > 1e-6) {
		double a = (-1 - first) / step, b = (n - first) / step, from = *begin, to = *end;

		*begin = (int)fmax(from, fmin(fmin(a, b) - 1, to));
		*end = (int)fmin(to, fmax(fmax(a, b) + 2, (double)*begin));
	}
	while (*begin < *end && !(first + *begin * step > -1 && first + *begin * step < n))
		++*begin;
	while (*begin < *end && !(first + (*end - 1) * step > -1 && first + (*end - 1) * step < n))
		--*end;
}

/* Compute the entries of a SAMPLED line. Return their number. The weights of all points between the same four centres are
 * polynomials in the index of the point, whose sums have closed forms. */
static inline TOMONODE_HD int line_sampled(const struct scan *s, const struct scan_view *view, int v, const struct grid *g,
					   double sampling, int room, struct line_entry *ret_entry)
{
	double r = s->radius[v], c = view->turn[0], d = view->turn[1], reach = scan_reach(s, v);
	double step[2] = {-d * sampling / g->h[0], c * sampling / g->h[1]}; /* from point to point, pixels */
	double first[2] = {(r * c - g->lo[0]) / g->h[0] - 0.5 + 0.5 * step[0],
			   (r * d - g->lo[1]) / g->h[1] - 0.5 + 0.5 * step[1]};
	double inverse[2] = {fmin(1 / fabs(step[0]), 1e9), fmin(1 / fabs(step[1]), 1e9)};
	struct line_window w = {-4, -4, {0, 0, 0, 0}};
	int half = (int)ceil(reach / sampling), begin, end, n = 0;

	while (half > 0 && (half - 0.5) * sampling > reach)
		half--;
	begin = -half;
	end = half;
	line_clip(first[0], step[0], g->n[0], &begin, &end);
	line_clip(first[1], step[1], g->n[1], &begin, &end);
	for (int k = begin, m; k < end; k += m) {
		double x = first[0] + k * step[0], y = first[1] + k * step[1];
		int i = (int)(x + 1) - 1, j = (int)(y + 1) - 1, most; /* floor(): x and y are above -1 */
		double a = x - i, b = y - j, index, square, sum_a, sum_b, product;

		/* m points are between these centres. The last one may be beyond by rounding; the weights are continuous. */
		m = (int)((step[0] > 0 ? 1 - a : a) * inverse[0]) + 1;
		most = (int)((step[1] > 0 ? 1 - b : b) * inverse[1]) + 1;
		m = m < most ? m : most;
		m = m < end - k ? m : end - k;
		index = 0.5 * m * (m - 1.0); /* sums of l and of l^2, l = 0..m - 1 */
		square = index * (2.0 * m - 1) * (1.0 / 3);
		sum_a = m * a + index * step[0];
		sum_b = m * b + index * step[1];
		product = m * a * b + index * (a * step[1] + b * step[0]) + square * step[0] * step[1];
		if (i != w.x || j != w.y)
			n = line_window_move(&w, i, j, g, sampling, room, n, ret_entry);
		w.weight[0] += m - sum_a - sum_b + product;
		w.weight[1] += sum_a - product;
		w.weight[2] += sum_b - product;
		w.weight[3] += product;
	}
	return line_window_move(&w, -4, -4, g, sampling, room, n, ret_entry);
}

/* Compute a line's entries and all members of *ret_line except `at`. */
static inline TOMONODE_HD void line_make(enum projection_model model, const struct scan *s, const struct scan_view *view, int v,
					 const struct grid *g, double sampling, struct line_entry *ret_entry,
					 struct line *ret_line)
{
	int n = model == PROJECTION_PATHS    ? line_paths(s, view, v, g, ret_entry)
		: model == PROJECTION_JOSEPH ? line_joseph(s, view, v, g, ret_entry)
					     : line_sampled(s, view, v, g, sampling, line_bound(model, s, view, v, g), ret_entry);
	double norm = 0;

	for (int k = 0; k < n; k++)
		norm += (double)ret_entry[k].weight * ret_entry[k].weight;
	ret_line->n = n;
	ret_line->norm = (float)norm;
}

#endif
