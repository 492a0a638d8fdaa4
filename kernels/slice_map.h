/* SPDX-License-Identifier: Apache-2.0 */
/* Map between one slice of the volume and the bins of a DBT view. C11, C++17 and CUDA C++.
 *
 * Slices are parallel to the detector, so the rays of a view meet the middle plane of slice k, z = lo_z + (k + 1/2) h_z, in a
 * copy of the detector's raster that is shrunk by m = 1 - z / source_z toward the source. In units of voxels, with the centre of
 * voxel 0 at 0,
 *
 *   voxel index along axis c = scale[c] * bin index + shift[c],   scale = m h_bin / h_voxel > 0
 *
 * and the axes are separable. The operator's entry for bin (u, v) and voxel (i, j, k) is
 *
 *   slice_weight(scale[0] u + shift[0] - i) * slice_weight(scale[1] v + shift[1] - j) * slice_length(u, v)
 *
 * which is bilinear interpolation times the ray's length in a slice, in mm. Forward: gather over the four voxels around a point.
 * Exact adjoint: gather over the bins whose points are within one voxel: at most slice_taps() per axis, from slice_first_bin()
 * on.
 *
 * A detector that is tilted around a line parallel to x (scan_view.posed) has another height in each row v of bins. With P(u, v)
 * the bin's centre and S the source, its ray meets the height z at
 *
 *   y = S_y + (P_y - S_y) t,   x = S_x + (P_x - S_x) t,   t(v) = (S_z - z) / (S_z - P_z)
 *
 * so y depends on v alone, and x on u linearly, but with another scale in each row. The detector is divided into strips of a few
 * rows (slice_strip_rows()), each with a map of its own: along x that of its middle, along y the straight line between its ends.
 * Its error is at most SLICE_STRIP_ERROR bins. A detector that stands still is one strip. The length of the ray in a slice is
 * that of the formula below times slice_stretch(v). */
#ifndef TOMONODE_KERNELS_SLICE_MAP_H
#define TOMONODE_KERNELS_SLICE_MAP_H

#include <math.h>
#include <stdbool.h>

#include "kernels/geometry.h"

struct slice_map {
	double scale[2], shift[2];
	double inverse[2]; /* 1 / scale */
};

#define SLICE_STRIP_MOST 8	     /* rows of a strip, at most */
#define SLICE_STRIP_ERROR (1.0 / 16) /* largest error of a strip's map along x, bins */

/* The model is valid if every slice is between detector and source, and the detector's columns are parallel to x. */
static inline TOMONODE_HD bool slice_map_valid(const struct scan *s, const struct scan_view *view, const struct grid *g)
{
	const struct scan_pose *p = &view->pose;
	double top = 0;

	if (view->posed) {
		double first = p->origin[2] - 0.5 * p->step_v[2], last = p->origin[2] + (s->n_v - 0.5) * p->step_v[2];

		top = first > last ? first : last;
		if (s->n_v < 2 || p->step_u[1] != 0 || p->step_u[2] != 0 || p->step_v[0] != 0 || !(p->step_u[0] > 0) ||
		    !(p->step_v[1] > 0))
			return false;
		/* rows of bins must meet a slice in the order of y */
		if (!(p->step_v[1] * (view->src[2] - p->origin[2]) + p->step_v[2] * (p->origin[1] - view->src[1]) > 0))
			return false;
	}
	return g->lo[2] >= top && g->lo[2] + g->n[2] * g->h[2] < view->src[2];
}

static inline TOMONODE_HD struct slice_map slice_map_make(const struct scan *s, const struct scan_view *view,
							  const struct grid *g, int k)
{
	double m = 1 - (g->lo[2] + (k + 0.5) * g->h[2]) / view->src[2];
	struct slice_map map;
	int c;

	for (c = 0; c < 2; c++) {
		double first = s->lo[c] + view->shift[c] + 0.5 * s->h[c]; /* centre of bin 0 */

		map.scale[c] = m * s->h[c] / g->h[c];
		map.inverse[c] = 1 / map.scale[c];
		map.shift[c] = (first * m + view->src[c] * (1 - m) - g->lo[c]) / g->h[c] - 0.5;
	}
	return map;
}

/* Return the number of rows of a strip, the same for all views: a power of two up to SLICE_STRIP_MOST and below n_v; n_v: no view
 * is posed. Reads s->views. */
static inline int slice_strip_rows(const struct scan *s)
{
	double shift = 0; /* largest change of x from row to row, bins */
	bool posed = false;
	int rows = SLICE_STRIP_MOST, i, end;

	for (i = 0; i < s->n_views; i++) {
		const struct scan_view *w = &s->views[i];

		posed = posed || w->posed;
		for (end = 0; w->posed && end < 4; end++) {
			double x = w->pose.origin[0] + (end & 1 ? s->n_u - 1 : 0) * w->pose.step_u[0] - w->src[0];
			double z = w->src[2] - w->pose.origin[2] - (end & 2 ? s->n_v - 1 : 0) * w->pose.step_v[2];

			shift = fmax(shift, fabs(x * w->pose.step_v[2] / (z * w->pose.step_u[0])));
		}
	}
	while (rows > 1 && (0.5 * rows * shift > SLICE_STRIP_ERROR || rows >= s->n_v))
		rows /= 2;
	return posed ? rows : s->n_v;
}

/* Return (S_z - z) / (S_z - P_z) in row v. Posed views only. */
static inline TOMONODE_HD double slice_shrink(const struct scan_view *view, double z, double v)
{
	return (view->src[2] - z) / (view->src[2] - view->pose.origin[2] - v * view->pose.step_v[2]);
}

/* Return the position along y, in voxels, where the rays of row v meet height z. Posed views only. */
static inline TOMONODE_HD double slice_row_position(const struct scan_view *view, const struct grid *g, double z, double v)
{
	double y = view->pose.origin[1] + v * view->pose.step_v[1] - view->src[1];

	return (view->src[1] + y * slice_shrink(view, z, v) - g->lo[1]) / g->h[1] - 0.5;
}

/* Return the row v, not rounded, whose rays meet slice k at voxel position j along y: the inverse of slice_row_position(). */
static inline TOMONODE_HD double slice_row_at(const struct scan_view *view, const struct grid *g, int k, double j)
{
	const struct scan_pose *p = &view->pose;
	double y = g->lo[1] + (j + 0.5) * g->h[1] - view->src[1], z = g->lo[2] + (k + 0.5) * g->h[2] - view->src[2];

	return ((p->origin[2] - view->src[2]) * y - (p->origin[1] - view->src[1]) * z) / (p->step_v[1] * z - p->step_v[2] * y);
}

/* Return the map of the strip of `rows` rows from v on. */
static inline TOMONODE_HD struct slice_map slice_map_strip(const struct scan *s, const struct scan_view *view,
							   const struct grid *g, int k, int v, int rows)
{
	double z = g->lo[2] + (k + 0.5) * g->h[2], t, first, next;
	struct slice_map map;

	if (!view->posed)
		return slice_map_make(s, view, g, k);
	t = slice_shrink(view, z, v + 0.5 * (rows - 1));
	first = slice_row_position(view, g, z, v);
	next = slice_row_position(view, g, z, v + rows);
	map.scale[0] = t * view->pose.step_u[0] / g->h[0];
	map.shift[0] = (view->src[0] + (view->pose.origin[0] - view->src[0]) * t - g->lo[0]) / g->h[0] - 0.5;
	map.scale[1] = (next - first) / rows;
	map.shift[1] = first - map.scale[1] * v;
	map.inverse[0] = 1 / map.scale[0];
	map.inverse[1] = 1 / map.scale[1];
	return map;
}

/* Return the factor of sqrt(slice_length_u + slice_length_v) in row v: source_z / (source_z - height of the row). */
static inline TOMONODE_HD double slice_stretch(const struct scan_view *view, int v)
{
	return view->posed ? slice_shrink(view, 0, v) : 1;
}

/* Return one part of the length, mm, of the ray of bin (u, v) in a slice: h_z |source - bin| / source_z = sqrt(slice_length_u +
 * slice_length_v). */
static inline TOMONODE_HD double slice_length_u(const struct scan *s, const struct scan_view *view, const struct grid *g, int u)
{
	double d = (s->lo[0] + view->shift[0] + (u + 0.5) * s->h[0] - view->src[0]) * g->h[2] / view->src[2];

	if (view->posed)
		d = (view->pose.origin[0] + u * view->pose.step_u[0] - view->src[0]) * g->h[2] / view->src[2];
	return d * d;
}

static inline TOMONODE_HD double slice_length_v(const struct scan *s, const struct scan_view *view, const struct grid *g, int v)
{
	double d = (s->lo[1] + view->shift[1] + (v + 0.5) * s->h[1] - view->src[1]) * g->h[2] / view->src[2], up = g->h[2];

	if (view->posed) {
		d = (view->pose.origin[1] + v * view->pose.step_v[1] - view->src[1]) * g->h[2] / view->src[2];
		up = (view->src[2] - view->pose.origin[2] - v * view->pose.step_v[2]) * g->h[2] / view->src[2];
	}
	return d * d + up * up;
}

/* Return the bilinear weight for a distance in voxels. */
static inline TOMONODE_HD double slice_weight(double distance)
{
	double w = 1 - fabs(distance);

	return w > 0 ? w : 0;
}

/* Return the first bin of an axis that touches voxel i; it may be outside the detector. slice_taps() returns how many bins touch
 * a voxel at most. */
static inline TOMONODE_HD double slice_first_bin(const struct slice_map *map, int axis, double i)
{
	return ceil((i - 1 - map->shift[axis]) * map->inverse[axis]);
}

/* Return the bin nearest to the centre of voxel i; it may be outside the detector. */
static inline TOMONODE_HD long long slice_nearest_bin(const struct slice_map *map, int axis, double i)
{
	return (long long)floor((i - map->shift[axis]) * map->inverse[axis] + 0.5);
}

static inline TOMONODE_HD int slice_taps(double scale)
{
	return (int)floor(2 / scale) + 1;
}

#endif
