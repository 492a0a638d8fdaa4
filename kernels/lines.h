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

/* Return an upper bound of a line's number of entries. Uses a largest_rise of 0, as in every stack. */
static inline TOMONODE_HD int line_bound(enum projection_model model, const struct scan *s, const struct scan_view *view, int v,
					 const struct grid *g)
{
	int cells = path_bound(s, view, v, g, 0);

	if (model == PROJECTION_PATHS || !cells)
		return cells;
	return 2 * cells + 8; /* SAMPLED: two more corners for each cell between centres; JOSEPH: two entries per step */
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

#define LINE_LOOK_BACK 16 /* entries searched for the same column; the points of a column are close together */

static inline TOMONODE_HD int line_sampled(const struct scan *s, const struct scan_view *view, int v, const struct grid *g,
					   double sampling, int room, struct line_entry *ret_entry)
{
	double r = s->radius[v], c = view->turn[0], d = view->turn[1], reach = scan_reach(s, v);
	int half = (int)ceil(reach / sampling), n = 0;

	for (int k = -half; k < half; k++) {
		double t = (k + 0.5) * sampling;
		double x = (r * c - t * d - g->lo[0]) / g->h[0] - 0.5, y = (r * d + t * c - g->lo[1]) / g->h[1] - 0.5;
		double from_x = x - floor(x), from_y = y - floor(y);

		if (fabs(t) > reach)
			continue;
		for (int corner = 0; corner < 4; corner++) {
			double w = (corner & 1 ? from_x : 1 - from_x) * (corner & 2 ? from_y : 1 - from_y) * sampling;
			double at_x = floor(x) + (corner & 1), at_y = floor(y) + (corner >> 1);
			int column, same;

			if (w == 0 || at_x < 0 || at_y < 0 || at_x >= g->n[0] || at_y >= g->n[1])
				continue;
			column = (int)at_y * g->n[0] + (int)at_x;
			for (same = n - 1; same >= 0 && same >= n - LINE_LOOK_BACK; same--)
				if (ret_entry[same].column == column)
					break;
			if (same >= 0 && same >= n - LINE_LOOK_BACK) {
				ret_entry[same].weight += (float)w;
			} else if (n < room) {
				ret_entry[n].column = column;
				ret_entry[n++].weight = (float)w;
			}
		}
	}
	return n;
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
