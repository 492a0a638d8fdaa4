/* SPDX-License-Identifier: Apache-2.0 */
/* The transaxial paths of SCAN_PARALLEL. C11, C++17 and CUDA C++. The rays of all planes at one angle and radial bin cross the
 * same sequence of voxel columns (x, y); this sequence is called a path, and a step is the part of it in one column. The planes
 * differ only in the axial position of the ray in each step. So a path is computed once, stored, and used for every plane.
 *
 * - PROJECTION_PATHS: the ray walk (kernels/ray_walk.h) on a grid of one layer gives the steps. The entries are those of
 *   PROJECTION_EXACT, but for t rounded to float. Long steps are divided so that no ray of the bin passes through more than two
 *   slices in one step.
 * - In a step from t0 to t1 (mm along the transaxial path from its middle), a ray with slope s >= 0 ends in the slice of z1 = z +
 *   s t1. It has min(t1 - t0, (z1 - lower face of that slice) / s) of the step in that slice and the rest in the slice below; for
 *   s < 0, use t0 in place of t1. The length of the ray itself is sqrt(1 + s^2) times as much.
 * - PROJECTION_JOSEPH: one step per pixel along the axis to which the path is more nearly parallel. The value is linear between
 *   the two pixels of the other axis and between the two slices around z + s t. Beyond the centre of the outermost pixel, as long
 *   as the path is over the grid, the value is that of the outermost pixel. */
#ifndef TOMONODE_KERNELS_PATHS_H
#define TOMONODE_KERNELS_PATHS_H

#include <stdint.h>

#include "kernels/ray_walk.h"

struct path {
	size_t at;     /* index of the first step */
	int n;	       /* number of steps; 0: the path misses the grid or does not exist */
	float t;       /* PATHS: beginning of the first step; JOSEPH: its middle; mm */
	float dt;      /* JOSEPH: t from one step to the next, mm; its absolute value is the length of a step */
	int neighbour; /* JOSEPH: offset from a step's column to the second one, columns */
};

struct path_step {
	int32_t column; /* y n_x + x */
	float t; /* PATHS: end of the step, mm. JOSEPH: weight of the second column (column + neighbour); the weight of `column`
		    is 1 - t */
};

/* Planes of equal rise and equal distance. */
struct plane_group {
	int first, n;
	double z, pitch; /* z of the first plane; distance to the next, mm */
	double rise;
};

/* Return the largest |slope| of the rays of radial bin v. */
static inline TOMONODE_HD double path_steepest(const struct scan *scan, double largest_rise, int v)
{
	return largest_rise == 0 ? 0 : scan_slope(scan, largest_rise, v);
}

/* Return an upper bound of the number of steps of a path of radial bin v: crossings of planes of both axes, divisions, and both
 * ends. */
static inline TOMONODE_HD int path_bound(const struct scan *scan, const struct scan_view *view, int v, const struct grid *g,
					 double largest_rise)
{
	double length = 2 * scan_reach(scan, v);
	double crossings = length * (fabs(view->turn[0]) / g->h[1] + fabs(view->turn[1]) / g->h[0]);
	double most = g->n[0] + g->n[1] + 1.0;

	if (length == 0)
		return 0;
	crossings = crossings + 3 < most ? crossings + 3 : most;
	return (int)(crossings + length * path_steepest(scan, largest_rise, v) / g->h[2] + 1);
}

/* Compute the steps of a PROJECTION_PATHS path, at most path_bound(). Return their number; *ret_t: beginning of the first one. */
static inline TOMONODE_HD int path_walk(const struct scan *scan, const struct scan_view *view, int v, const struct grid *g,
					double largest_rise, struct path_step *ret_step, float *ret_t)
{
	struct grid layer = {{g->n[0], g->n[1], 1}, {g->h[0], g->h[1], 2}, {g->lo[0], g->lo[1], -1}, false};
	struct voxel_box box = voxel_box_whole(&layer);
	double r = scan->radius[v], c = view->turn[0], s = view->turn[1], reach = scan_reach(scan, v);
	double a[3] = {r * c + reach * s, r * s - reach * c, 0}, b[3] = {r * c - reach * s, r * s + reach * c, 0};
	double length, t, longest = g->h[2] / path_steepest(scan, largest_rise, v);
	struct ray_walk w;
	size_t voxel;
	int n = 0;

	*ret_t = 0;
	if (!(reach > 0) || !ray_walk_start(&w, &layer, &box, a, b))
		return 0;
	t = w.t * w.span - reach;
	*ret_t = (float)t;
	while (ray_walk_next(&w, &voxel, &length)) {
		int cuts = length > longest ? (int)ceil(length / longest) : 1;

		for (int i = 1; i <= cuts; i++, n++) {
			ret_step[n].column = (int32_t)voxel;
			ret_step[n].t = (float)(t + length * i / cuts);
		}
		t += length;
	}
	return n;
}

/* Compute the steps of a PROJECTION_JOSEPH path and all members of *ret_path except `at` and `n`. Return the number of steps. */
static inline TOMONODE_HD int path_joseph(const struct scan *scan, const struct scan_view *view, int v, const struct grid *g,
					  struct path_step *ret_step, struct path *ret_path)
{
	double r = scan->radius[v], c = view->turn[0], s = view->turn[1], reach = scan_reach(scan, v);
	int main_axis = fabs(s) > fabs(c) ? 0 : 1, cross_axis = 1 - main_axis; /* the path has the direction (-s, c) */
	double along = main_axis ? c : -s, across = main_axis ? -s : c;
	double dt = g->h[main_axis] / along, from = main_axis ? r * s : r * c, beside = main_axis ? r * c : r * s;
	double t0 = (g->lo[main_axis] + 0.5 * g->h[main_axis] - from) / along;
	int n = 0, first = 0;

	ret_path->dt = (float)dt;
	ret_path->neighbour = cross_axis == 0 ? 1 : g->n[0];
	ret_path->t = 0;
	if (!(reach > 0))
		return 0;
	for (int k = 0; k < g->n[main_axis]; k++) {
		double t = t0 + k * dt, u = (beside + t * across - g->lo[cross_axis]) / g->h[cross_axis] - 0.5;
		int i;

		if (fabs(t) > reach || u < -0.5 || u >= g->n[cross_axis] - 0.5) {
			if (n)
				break;
			continue;
		}
		if (n == 0)
			first = k;
		i = (int)floor(u);
		i = i < 0 ? 0 : i > g->n[cross_axis] - 2 ? g->n[cross_axis] - 2 : i;
		u -= i;
		ret_step[n].column = main_axis ? k * g->n[0] + i : i * g->n[0] + k;
		ret_step[n].t = (float)(u < 0 ? 0 : u > 1 ? 1 : u);
		n++;
	}
	ret_path->t = (float)(t0 + first * dt);
	return n;
}

#endif
