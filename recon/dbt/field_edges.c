/* SPDX-License-Identifier: Apache-2.0 */
/* field_edges.c - weights of bins at the ends of a view's field; see field_edges.h.
 *
 * The weight rises as (1 - cos) / 2 over the margin, so that the image has neither a step nor a bend. It depends only on the
 * distance from the edge: if a part of an end cuts the object, the weights of the whole end are reduced, because a weight that
 * changed along it would make another edge. */
#include "recon/dbt/field_edges.h"

#include <math.h>

#define PI 3.14159265358979

/* The bins of one view. */
struct field {
	const struct scan *scan;
	const struct scan_view *view;
	const struct grid *grid;
	float *line, *valid;
	size_t n_u;
	int n_v;
};

/* Count the bins of a row: those with a line integral of at least `least`, or, if it is negative, those with a datum or air. */
static int count_bins(const struct field *f, int v, double least)
{
	const float *line = f->line + (size_t)v * f->n_u, *valid = f->valid + (size_t)v * f->n_u;
	int n = 0;

	for (size_t u = 0; u < f->n_u; u++)
		n += least < 0 ? valid[u] != 0 : valid[u] > 0 && line[u] >= least;
	return n;
}

/* Find the last row at a side that has data in at least half of its bins; -1: none. up: the side of the last row. */
static int find_edge(const struct field *f, bool up)
{
	int v = up ? f->n_v - 1 : 0, step = up ? -1 : 1;

	while (v >= 0 && v < f->n_v && 2 * (size_t)count_bins(f, v, -1) < f->n_u)
		v += step;
	return v < f->n_v ? v : -1;
}

/* Compute where the ray of a bin passes the height z, along an axis. */
static double ray_at(const struct field *f, double u, int v, int axis, double z)
{
	double p[3];
	const double *s = f->view->src;

	scan_bin_at(f->scan, f->view, u, v, p);
	return s[axis] + (p[axis] - s[axis]) * (s[2] - z) / (s[2] - p[2]);
}

/* Return the part of a ray that is inside the volume's sides along an axis. */
static double part_inside(const struct field *f, double u, int v, int axis)
{
	const struct grid *g = f->grid;
	double a = ray_at(f, u, v, axis, g->lo[2]), b = ray_at(f, u, v, axis, g->lo[2] + g->n[2] * g->h[2]);
	double lo = fmax(fmin(a, b), g->lo[axis]), hi = fmin(fmax(a, b), g->lo[axis] + g->n[axis] * g->h[axis]);

	return a == b ? 1 : fmax(0, hi - lo) / fabs(b - a);
}

static double middle_column(const struct field *f)
{
	return 0.5 * ((double)f->n_u - 1);
}

/* Return how far the ray of a row passes beside an end of the volume in y, within its height, mm. */
static double distance_beside(const struct field *f, int v, bool up)
{
	const struct grid *g = f->grid;
	double end = g->lo[1] + (up ? g->n[1] * g->h[1] : 0);
	double a = ray_at(f, middle_column(f), v, 1, g->lo[2]),
	       b = ray_at(f, middle_column(f), v, 1, g->lo[2] + g->n[2] * g->h[2]);

	return fmax(fabs(a - end), fabs(b - end));
}

/* Return the weight of a bin whose centre is at this distance from the edge, mm. */
static double weight_at(double distance, double width)
{
	return distance < width ? 0.5 * (1 - cos(PI * distance / width)) : 1;
}

/* Weigh the rows of the half of the view that is at this side. */
static void weigh_side(const struct field *f, bool up, int edge, double width)
{
	for (int i = 0; i < f->n_v / 2; i++) {
		int v = up ? f->n_v - 1 - i : i;
		double distance = (fmax(up ? edge - v : v - edge, 0) + 0.5) * f->scan->h[1];
		float weight = (float)weight_at(distance, width), *valid = f->valid + (size_t)v * f->n_u;

		for (size_t u = 0; weight < 1 && u < f->n_u; u++)
			valid[u] *= valid[u] > 0 ? weight : 1;
	}
}

/* Weigh the bins at the chest wall whose rays leave the volume there. Return whether there are any. */
static bool weigh_chest_wall(const struct field *f)
{
	bool any = false;

	for (int v = 0; v < f->n_v; v++) {
		float *line = f->line + (size_t)v * f->n_u, *valid = f->valid + (size_t)v * f->n_u;

		for (size_t u = 0; u < f->n_u; u++) {
			double part = part_inside(f, (double)u, v, 0);

			if (part >= 1)
				break;
			any = true;
			line[u] *= valid[u] > 0 ? (float)part : 1;
			valid[u] *= valid[u] > 0 ? (float)part : 1;
		}
	}
	return any;
}

bool field_edges_weigh(const struct scan *scan, int view, const struct grid *grid, double width, double typical, bool scale,
		       float *line, float *valid, struct field_ends *ret_ends)
{
	struct field f = {scan, &scan->views[view], grid, line, valid, (size_t)scan->n_u, scan->n_v};
	double tissue = FIELD_EDGES_TISSUE * typical;
	struct field_ends ends;
	int edge[2];

	for (int up = 0; up < 2; up++) {
		edge[up] = find_edge(&f, up);
		ends.cut[up] = edge[up] >= 0 && count_bins(&f, edge[up], tissue) * scan->h[0] > FIELD_EDGES_LEAST;
		ends.beside[up] = edge[up] >= 0 ? distance_beside(&f, edge[up], up) : INFINITY;
	}
	for (int up = 0; up < 2; up++)
		if (ends.cut[up])
			weigh_side(&f, up, edge[up], width);
	*ret_ends = ends;
	if (scale && weigh_chest_wall(&f))
		return true;
	return ends.cut[0] || ends.cut[1];
}

void field_edges_continue(const struct field_ends *ends, int n_views, bool ret_continues[2])
{
	for (int up = 0; up < 2; up++) {
		double least = INFINITY;

		ret_continues[up] = false;
		for (int i = 0; i < n_views; i++)
			if (ends[i].beside[up] < least) {
				least = ends[i].beside[up];
				ret_continues[up] = ends[i].cut[up];
			}
	}
}

bool field_edges_parts(const struct scan *scan, int view, const struct grid *grid, const struct field_ends *ends,
		       const bool continues[2], float *ret_part)
{
	struct field f = {.scan = scan, .view = &scan->views[view], .grid = grid, .n_u = (size_t)scan->n_u, .n_v = scan->n_v};
	bool any = false;

	for (int v = 0; v < f.n_v; v++) {
		bool up = v >= f.n_v - f.n_v / 2, own = up || v < f.n_v / 2;

		ret_part[v] = own && ends->cut[up] && continues[up] ? (float)part_inside(&f, middle_column(&f), v, 1) : 1;
		any |= ret_part[v] < 1;
	}
	return any;
}
