/* SPDX-License-Identifier: Apache-2.0 */
/* field_edges.c - weights of bins at the sides of a view's field; see field_edges.h.
 *
 * The weight rises as (1 - cos) / 2 over the margin, so that the image has neither a step nor a bend. It depends only on the
 * distance from the edge: if a part of a side cuts the object, the weights of the whole side are reduced, because a weight that
 * changed along the side would make another edge. */
#include "recon/dbt/field_edges.h"

#include <math.h>

#define PI 3.14159265358979
#define SIDES 4 /* side s: axis s / 2; s % 2: the side of the last index */

/* The bins of one view. Axis 0: columns u; axis 1: rows v. */
struct field {
	const struct scan *scan;
	const struct scan_view *view;
	const struct grid *grid;
	float *line, *valid;
	int n[2];
	size_t step[2];
};

static size_t bin_of(const struct field *f, int axis, int along, int across)
{
	return (size_t)along * f->step[axis] + (size_t)across * f->step[1 - axis];
}

/* Count the bins of a row (axis 1) or column (axis 0): those with a line integral of at least `least`, or, if it is negative,
 * those with a datum or air. */
static int count_bins(const struct field *f, int axis, int at, double least)
{
	int n = 0;

	for (int i = 0; i < f->n[1 - axis]; i++) {
		size_t bin = bin_of(f, axis, at, i);

		n += least < 0 ? f->valid[bin] != 0 : f->valid[bin] > 0 && f->line[bin] >= least;
	}
	return n;
}

/* Find the last row or column at a side that has data in at least half of its bins; -1: none. up: the side of the last index. */
static int find_edge(const struct field *f, int axis, bool up)
{
	int at = up ? f->n[axis] - 1 : 0, step = up ? -1 : 1;

	while (at >= 0 && at < f->n[axis] && 2 * count_bins(f, axis, at, -1) < f->n[1 - axis])
		at += step;
	return at < f->n[axis] ? at : -1;
}

/* Compute where the ray of the middle of row v (axis 1) or column u (axis 0) passes the height z. */
static double ray_at(const struct field *f, int axis, int at, double z)
{
	double middle = 0.5 * (f->n[1 - axis] - 1), p[3];
	const double *s = f->view->src;

	scan_bin_at(f->scan, f->view, axis ? middle : at, axis ? at : middle, p);
	return s[axis] + (p[axis] - s[axis]) * (s[2] - z) / (s[2] - p[2]);
}

/* Return whether the field's edge crosses the volume: always along y; along x only if its rays lean inwards. */
static bool crosses_volume(const struct field *f, int axis, bool up, int edge)
{
	const struct grid *g = f->grid;
	double low = ray_at(f, axis, edge, g->lo[2]), high = ray_at(f, axis, edge, g->lo[2] + g->n[2] * g->h[2]);

	return axis == 1 || (up ? low - high : high - low) > g->h[axis];
}

/* Return the part of a ray that is inside the volume's sides along y. */
static double part_inside(const struct field *f, int v)
{
	const struct grid *g = f->grid;
	double a = ray_at(f, 1, v, g->lo[2]), b = ray_at(f, 1, v, g->lo[2] + g->n[2] * g->h[2]);
	double lo = fmax(fmin(a, b), g->lo[1]), hi = fmin(fmax(a, b), g->lo[1] + g->n[1] * g->h[1]);

	return a == b ? 1 : fmax(0, hi - lo) / fabs(b - a);
}

/* Multiply the weights, and the line integrals, of a row or column. */
static void weigh_bins(const struct field *f, int axis, int at, double weight, double scale)
{
	for (int i = 0; i < f->n[1 - axis]; i++) {
		size_t bin = bin_of(f, axis, at, i);

		f->valid[bin] *= f->valid[bin] > 0 ? (float)weight : 1;
		f->line[bin] *= f->valid[bin] > 0 ? (float)scale : 1;
	}
}

/* Return the weight of a bin whose centre is at this distance from the edge, mm. */
static double weight_at(double distance, double width)
{
	return distance < width ? 0.5 * (1 - cos(PI * distance / width)) : 1;
}

/* Weigh the rows (or columns) of the half of the view that is at this side. */
static void weigh_side(const struct field *f, int axis, bool up, int edge, double width, bool scale)
{
	for (int i = 0; i < f->n[axis] / 2; i++) {
		int at = up ? f->n[axis] - 1 - i : i;
		double distance = (fmax(up ? edge - at : at - edge, 0) + 0.5) * f->scan->h[axis];
		double weight = weight_at(distance, width), part = scale && axis == 1 ? part_inside(f, at) : 1;

		if (weight < 1 || part < 1)
			weigh_bins(f, axis, at, weight, part);
	}
}

/* Return whether a side whose last row or column with data is `edge` cuts the object. */
static bool cuts_object(const struct field *f, int axis, bool up, int edge, double tissue)
{
	return edge >= 0 && crosses_volume(f, axis, up, edge) &&
	       count_bins(f, axis, edge, tissue) * f->scan->h[1 - axis] > FIELD_EDGES_LEAST;
}

bool field_edges_weigh(const struct scan *scan, int view, const struct grid *grid, double width, double typical, bool scale,
		       float *line, float *valid)
{
	struct field f = {scan, &scan->views[view], grid, line, valid, {scan->n_u, scan->n_v}, {1, (size_t)scan->n_u}};
	bool cut[SIDES], any = false;
	int edge[SIDES];

	for (int side = 0; side < SIDES; side++) {
		edge[side] = find_edge(&f, side / 2, side % 2);
		cut[side] = cuts_object(&f, side / 2, side % 2, edge[side], FIELD_EDGES_TISSUE * typical);
		any |= cut[side];
	}
	for (int side = 0; side < SIDES; side++)
		if (cut[side])
			weigh_side(&f, side / 2, side % 2, edge[side], width, scale);
	return any;
}
