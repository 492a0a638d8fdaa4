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
 * on. */
#ifndef TOMONODE_KERNELS_SLICE_MAP_H
#define TOMONODE_KERNELS_SLICE_MAP_H

#include <math.h>
#include <stdbool.h>

#include "kernels/geometry.h"

struct slice_map {
	double scale[2], shift[2];
	double inverse[2]; /* 1 / scale */
};

/* The model is valid if every slice is between detector and source. */
static inline TOMONODE_HD bool slice_map_valid(const struct scan_view *view, const struct grid *g)
{
	return !view->posed && g->lo[2] >= 0 && g->lo[2] + g->n[2] * g->h[2] < view->src[2];
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

/* Return one part of the length, mm, of the ray of bin (u, v) in a slice: h_z |source - bin| / source_z = sqrt(slice_length_u +
 * slice_length_v). */
static inline TOMONODE_HD double slice_length_u(const struct scan *s, const struct scan_view *view, const struct grid *g, int u)
{
	double d = (s->lo[0] + view->shift[0] + (u + 0.5) * s->h[0] - view->src[0]) * g->h[2] / view->src[2];

	return d * d;
}

static inline TOMONODE_HD double slice_length_v(const struct scan *s, const struct scan_view *view, const struct grid *g, int v)
{
	double d = (s->lo[1] + view->shift[1] + (v + 0.5) * s->h[1] - view->src[1]) * g->h[2] / view->src[2];

	return d * d + g->h[2] * g->h[2];
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
