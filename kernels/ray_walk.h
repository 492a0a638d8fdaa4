/* SPDX-License-Identifier: Apache-2.0 */
/* The ray walk: iterate over the voxels that a line segment crosses, with its length in each. C11, C++17 and CUDA C++.
 *
 *   struct ray_walk w;
 *   size_t voxel;
 *   double length;
 *   if (ray_walk_start(&w, grid, &box, a, b))
 *           while (ray_walk_next(&w, &voxel, &length))
 *                   sum += length * x[voxel];
 *
 * This is the reference for every geometry (Siddon 1985; the incremental form is Jacobs 1998). Lengths are true lengths in mm.
 *
 * - A point of the segment is a + t (b - a), 0 <= t <= 1. The plane p of an axis is crossed at t = (lo + p h - a) / (b - a),
 *   computed from the integer p at every crossing, so rounding errors do not accumulate along a ray.
 * - Voxels are half-open, [lo + i h, lo + (i+1) h): a ray exactly in a plane belongs to the voxel above it, and one in the upper
 *   face of the grid misses the grid.
 * - `box` restricts the walk to a range of voxels. The planes keep their numbers, so the length in a voxel does not depend on the
 *   box (to the last bit, except at corners hit exactly): the sums over tiles equal the sum over the whole.
 * - Pieces of length zero (edges, corners) are not reported.
 * - The state is scalar and not indexed dynamically, so a GPU keeps it in registers. */
#ifndef TOMONODE_KERNELS_RAY_WALK_H
#define TOMONODE_KERNELS_RAY_WALK_H

#include <math.h>
#include <stdbool.h>

#include "kernels/geometry.h"

/* The voxels first <= i < end of each axis. */
struct voxel_box {
	int first[3], end[3];
};

struct ray_walk {
	double t, t_end;	    /* current t; t where the segment leaves the box */
	double span;		    /* |b - a|, mm per unit of t */
	double x0, y0, z0;	    /* position of plane 0 relative to a: lo - a, mm */
	double hx, hy, hz;	    /* distance of the planes, mm */
	double ix, iy, iz;	    /* 1 / (b - a); 0 where the ray is parallel to the planes */
	double tx, ty, tz;	    /* t of the next plane of each axis; RAY_NEVER: there is none */
	int px, py, pz;		    /* number of that plane */
	int sx, sy, sz;		    /* direction: +1 or -1; 0: parallel to the planes */
	int left_x, left_y, left_z; /* number of planes still to cross up to the end of the box, including the next one */
	size_t voxel, step_x, step_y, step_z; /* index of the current voxel; distances of neighbours in the array, floats */
};

#define RAY_NEVER 1e300

static inline TOMONODE_HD struct voxel_box voxel_box_whole(const struct grid *g)
{
	struct voxel_box box = {{0, 0, 0}, {g->n[0], g->n[1], g->n[2]}};

	return box;
}

/* Restrict [*t0, *t1] to the slab of one axis. Return false if nothing remains. */
static inline TOMONODE_HD bool ray_clip(double o, double h, double d, double inv, int first, int end, double *t0, double *t1)
{
	double near_plane = o + first * h, far_plane = o + end * h, swap;

	if (d == 0)
		return near_plane <= 0 && far_plane > 0;
	near_plane *= inv;
	far_plane *= inv;
	if (d < 0) {
		swap = near_plane;
		near_plane = far_plane;
		far_plane = swap;
	}
	if (near_plane > *t0)
		*t0 = near_plane;
	if (far_plane < *t1)
		*t1 = far_plane;
	return *t0 < *t1;
}

/* Return the voxel index of one axis at t; compute the plane through which the ray leaves that voxel. */
static inline TOMONODE_HD int ray_enter(double o, double h, double d, double inv, int first, int end, double t, int *ret_plane,
					int *ret_step, int *ret_left, double *ret_t)
{
	double at = floor((t * d - o) / h);
	int i = at < first ? first : at > end - 1 ? end - 1 : (int)at;

	if (d == 0) {
		*ret_plane = 0;
		*ret_step = 0;
		*ret_left = 0;
		*ret_t = RAY_NEVER;
		return i;
	}
	*ret_step = d > 0 ? 1 : -1;
	*ret_plane = d > 0 ? i + 1 : i;
	*ret_left = d > 0 ? end - i : i - first + 1;
	*ret_t = (o + *ret_plane * h) * inv;
	return i;
}

/* Start a walk along the segment from a to b through the voxels of `box`. Return false if the segment does not cross the box, or
 * if a or b is not finite. */
static inline TOMONODE_HD bool ray_walk_start(struct ray_walk *w, const struct grid *g, const struct voxel_box *box,
					      const double a[3], const double b[3])
{
	double dx = b[0] - a[0], dy = b[1] - a[1], dz = b[2] - a[2];
	double t0 = 0, t1 = 1;
	int i, j, k;

	w->span = sqrt(dx * dx + dy * dy + dz * dz);
	if (!(w->span > 0) || !(w->span < RAY_NEVER)) /* false for NaN and inf as well */
		return false;
	w->x0 = g->lo[0] - a[0];
	w->y0 = g->lo[1] - a[1];
	w->z0 = g->lo[2] - a[2];
	w->hx = g->h[0];
	w->hy = g->h[1];
	w->hz = g->h[2];
	w->ix = dx != 0 ? 1 / dx : 0;
	w->iy = dy != 0 ? 1 / dy : 0;
	w->iz = dz != 0 ? 1 / dz : 0;
	if (!ray_clip(w->x0, w->hx, dx, w->ix, box->first[0], box->end[0], &t0, &t1) ||
	    !ray_clip(w->y0, w->hy, dy, w->iy, box->first[1], box->end[1], &t0, &t1) ||
	    !ray_clip(w->z0, w->hz, dz, w->iz, box->first[2], box->end[2], &t0, &t1))
		return false;
	i = ray_enter(w->x0, w->hx, dx, w->ix, box->first[0], box->end[0], t0, &w->px, &w->sx, &w->left_x, &w->tx);
	j = ray_enter(w->y0, w->hy, dy, w->iy, box->first[1], box->end[1], t0, &w->py, &w->sy, &w->left_y, &w->ty);
	k = ray_enter(w->z0, w->hz, dz, w->iz, box->first[2], box->end[2], t0, &w->pz, &w->sz, &w->left_z, &w->tz);
	w->step_x = grid_step(g, 0);
	w->step_y = grid_step(g, 1);
	w->step_z = grid_step(g, 2);
	w->voxel = (size_t)i * w->step_x + (size_t)j * w->step_y + (size_t)k * w->step_z;
	w->t = t0;
	w->t_end = t1;
	return true;
}

/* Return the next voxel and the length in it, mm. False: the walk is over. A step of -1 wraps around in size_t, as intended. */
static inline TOMONODE_HD bool ray_walk_next(struct ray_walk *w, size_t *ret_voxel, double *ret_length)
{
	while (w->t < w->t_end) {
		double from = w->t, to;
		size_t here = w->voxel;

		if (w->tx <= w->ty && w->tx <= w->tz) {
			to = w->tx;
			w->voxel += (size_t)(ptrdiff_t)w->sx * w->step_x;
			w->px += w->sx;
			w->tx = (w->x0 + w->px * w->hx) * w->ix;
			w->left_x--;
			if (w->left_x <= 0)
				w->t = w->t_end;
		} else if (w->ty <= w->tz) {
			to = w->ty;
			w->voxel += (size_t)(ptrdiff_t)w->sy * w->step_y;
			w->py += w->sy;
			w->ty = (w->y0 + w->py * w->hy) * w->iy;
			w->left_y--;
			if (w->left_y <= 0)
				w->t = w->t_end;
		} else {
			to = w->tz;
			w->voxel += (size_t)(ptrdiff_t)w->sz * w->step_z;
			w->pz += w->sz;
			w->tz = (w->z0 + w->pz * w->hz) * w->iz;
			w->left_z--;
			if (w->left_z <= 0)
				w->t = w->t_end;
		}
		if (w->t < w->t_end && to > w->t)
			w->t = to;
		if (to > w->t_end)
			to = w->t_end;
		if (to > from) {
			*ret_voxel = here;
			*ret_length = (to - from) * w->span;
			return true;
		}
	}
	return false;
}

#endif
