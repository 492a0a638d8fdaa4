/* SPDX-License-Identifier: Apache-2.0 */
/* A single slice of parallel beams without a table: the entries of a ray (PATHS, JOSEPH) from closed formulas, row by row along
 * its leading axis. C11, C++17, CUDA C++.
 *
 * - A row is a row of pixels across the leading axis: of x if the ray is steeper than a pixel's diagonal (lead = 1), else a
 * column (lead = 0). In a row, a ray has entries in at most two neighbouring pixels.
 * - Position: along the row, in pixels from the face of the first pixel. At coordinate m along the leading axis (in rows from the
 *   face of row 0) the ray of radial bin v is at start + pitch v + slope m. The point (r c - t s, r s + t c) of a ray with
 *   direction (-s, c) gives it: with lead = 1, x = r / c - y s / c.
 * - PATHS: the lengths of PROJECTION_EXACT (Siddon 1985). In a row the ray goes from low to low + |slope|, |slope| <= 1, and the
 *   part of it in pixel i is the overlap with [i, i + 1]. A ray in a face belongs to the pixel above it.
 * - JOSEPH: the ray is at u = position - 1/2 at the middle of the row; pixel i has the weight 1 - |i - u|. In the outer half of
 * the outermost pixels u counts as their centre (kernels/paths.h).
 * - Both are one formula: w = max(0, min(1, (d + 1) / s) - max(0, d / s)) with d = i - low; PATHS: s = |slope|; JOSEPH: s = 1 and
 *   low = u. */
#ifndef TOMONODE_KERNELS_LINE_ROWS_H
#define TOMONODE_KERNELS_LINE_ROWS_H

#include "kernels/lines.h"

#define ROWS_INVERSE_MAX 1e30f /* of 1 / s */

/* The rays of one view. */
struct row_view {
	enum projection_model model;
	int lead;
	int n, width;		    /* number of rows, and of pixels in one */
	double start, pitch, slope; /* of the lower end in a whole row (PATHS), or of u (JOSEPH): at start + pitch v + slope k */
	double along;		    /* = slope; PATHS: added to `start` where it is negative, because a row ends lower then */
	double c, beside, pixel,
		shift; /* start + pitch v = (radius[v] / c - beside) / pixel + shift, without rounding along an axis */
	float inverse; /* 1 / s */
	float length;  /* mm of a ray in a row */
};

/* Can the projection do without a table? The distances of rays must be equal. */
static inline bool line_rows_fit(const struct projection_spec *spec)
{
	const struct scan *s = spec->scan;
	double pitch;

	if (!lines_needed(spec) || spec->model == PROJECTION_SAMPLED || spec->grid->n[0] < 2 || spec->grid->n[1] < 2)
		return false;
	pitch = s->n_v > 1 ? (s->radius[s->n_v - 1] - s->radius[0]) / (s->n_v - 1) : 1;
	if (!(pitch > 0))
		return false;
	for (int v = 0; v < s->n_v; v++)
		if (fabs(s->radius[v] - s->radius[0] - v * pitch) > 1e-9 * pitch)
			return false;
	return true;
}

static inline TOMONODE_HD struct row_view row_view_make(enum projection_model model, const struct scan *s,
							const struct scan_view *view, const struct grid *g)
{
	double turn[2] = {view->turn[0], view->turn[1]};
	double x = fabs(turn[1]), y = fabs(turn[0]),
	       pitch = s->n_v > 1 ? (s->radius[s->n_v - 1] - s->radius[0]) / (s->n_v - 1) : 1;
	bool paths = model == PROJECTION_PATHS;
	int lead = paths ? !(x / g->h[0] > y / g->h[1]) : !(x > y), cross = 1 - lead;
	double c = turn[cross], d = turn[lead];
	struct row_view w;

	w.model = model;
	w.lead = lead;
	w.n = g->n[lead];
	w.width = g->n[cross];
	w.pitch = pitch / (c * g->h[cross]);
	w.along = -(g->h[lead] * d) / (c * g->h[cross]);
	w.slope = w.along;
	w.c = c;
	w.beside = g->lo[lead] * d / c + g->lo[cross];
	w.pixel = g->h[cross];
	w.shift = !paths ? 0.5 * w.along - 0.5 : w.along < 0 ? w.along : 0;
	w.start = (s->radius[0] / c - w.beside) / w.pixel + w.shift;
	w.inverse = !paths ? 1 : fabs(w.along) > 1 / ROWS_INVERSE_MAX ? (float)(1 / fabs(w.along)) : ROWS_INVERSE_MAX;
	w.length = (float)(g->h[lead] / fabs(c));
	return w;
}

/* The weight of a pixel whose lower face is d pixels from the ray's lower end, in units of `length`. */
static inline TOMONODE_HD float row_weight(float d, float inverse)
{
	float w = fminf(1, (d + 1) * inverse) - fmaxf(0, d * inverse);

	return fmaxf(w, 0);
}

/* The rows of a ray, as far as the field of view and the grid go: PATHS: coordinates m; JOSEPH: whole rows. begin >= end: none.
 */
struct row_range {
	double begin, end;
};

static inline TOMONODE_HD struct row_range row_range_of(const struct row_view *w, const struct scan *s,
							const struct scan_view *view, int v, const struct grid *g)
{
	double r = s->radius[v], c = view->turn[1 - w->lead], d = view->turn[w->lead], reach = scan_reach(s, v);
	struct row_range range = {0, 0};
	double middle, half;

	if (!(reach > 0))
		return range;
	/* the point at t has the leading coordinate r d + t c (lead = 1), r d - t c (lead = 0) */
	middle = (r * d - g->lo[w->lead]) / g->h[w->lead];
	half = reach * fabs(c) / g->h[w->lead];
	range.begin = middle - half;
	range.end = middle + half;
	if (w->model == PROJECTION_JOSEPH) {
		range.begin = ceil(range.begin - 0.5); /* row k counts if its middle, k + 1/2, is in the field of view */
		range.end = floor(range.end - 0.5) + 1;
	}
	range.begin = range.begin > 0 ? range.begin : 0;
	range.end = range.end < w->n ? range.end : w->n;
	return range;
}

/* Return the lower end (PATHS), or u (JOSEPH), of a ray in row 0. */
static inline TOMONODE_HD double row_low(const struct row_view *w, double radius)
{
	return (radius / w->c - w->beside) / w->pixel + w->shift;
}

/* The two entries of a ray in row k: pixels first and first + 1, which may be outside the row with a weight that does not count.
 * Return false if there are none. */
static inline TOMONODE_HD bool row_entries(const struct row_view *w, const struct row_range *range, double radius, int k,
					   int *ret_first, float ret_weight[2])
{
	double low = row_low(w, radius) + w->slope * k, first, from;

	if (w->model == PROJECTION_JOSEPH) {
		if (k < range->begin || k >= range->end || low < -0.5 || low >= w->width - 0.5)
			return false;
		first = floor(low);
		first = first < 0 ? 0 : first > w->width - 2 ? w->width - 2 : first;
		from = low - first;
		from = from < 0 ? 0 : from > 1 ? 1 : from;
		ret_weight[0] = (float)(1 - from) * w->length;
		ret_weight[1] = (float)from * w->length;
	} else {
		double a = range->begin > k ? range->begin - k : 0, b = range->end < k + 1 ? range->end - k : 1;
		double part = b - a;

		if (a >= b)
			return false;
		low += w->along < 0 ? (b - 1) * w->along : a * w->along; /* the lower end of the part [a, b] of the row */
		first = floor(low);
		from = w->along == 0 ? part : fmin(part, (first + 1 - low) / fabs(w->along));
		ret_weight[0] = (float)from * w->length;
		ret_weight[1] = (float)(part - from) * w->length;
	}
	*ret_first = (int)first;
	return first > -2 && first < w->width;
}

#endif
