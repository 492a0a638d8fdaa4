/* SPDX-License-Identifier: Apache-2.0 */
/* The walk along a ray with time of flight, for PROJECTION_EXACT. C11, C++17 and CUDA C++. It returns the parts of the ray inside
 * one voxel and one step of the transaxial path (kernels/paths.h), and the middle of that step, where the weights of the TOF bins
 * are taken (kernels/tof.h). */
#ifndef TOMONODE_KERNELS_TOF_WALK_H
#define TOMONODE_KERNELS_TOF_WALK_H

#include "kernels/paths.h"
#include "kernels/tof.h"

#define TOF_ROUNDING 1e-9 /* steps: a piece that begins this close to the end of a step belongs to the next one */

/* A part of a ray inside one voxel and one step of its transaxial path. */
struct tof_piece {
	size_t voxel;
	double length; /* mm */
	double middle; /* of the step: mm along the ray from its middle */
};

/* A walk along a ray with time of flight; positions in units of w.t. */
struct tof_walk {
	const struct grid *grid;
	struct ray_walk w;
	double longest; /* length of a step */
	size_t voxel;
	double from, to;   /* the rest of the piece inside the voxel */
	double first, cut; /* beginning of the voxel's column; length of the column's steps */
	double cuts;	   /* their number */
};

static inline TOMONODE_HD bool tof_walk_start(struct tof_walk *s, const struct scan *scan, int v, double largest_rise,
					      const struct grid *g, const struct voxel_box *box, const double from[3],
					      const double to[3])
{
	s->grid = g;
	s->longest = g->h[2] / (path_steepest(scan, largest_rise, v) * 2 * scan_reach(scan, v));
	s->from = s->to = s->first = 0;
	s->cut = s->cuts = 1;
	s->voxel = 0;
	return ray_walk_start(&s->w, g, box, from, to);
}

/* Restrict [*first, *end] to voxel i of one axis. */
static inline TOMONODE_HD void tof_clip(double origin, double h, double inverse, size_t i, double *first, double *end)
{
	double lower = (origin + (double)i * h) * inverse, upper = (origin + (double)(i + 1) * h) * inverse;

	if (inverse == 0)
		return;
	*first = fmax(*first, fmin(lower, upper));
	*end = fmin(*end, fmax(lower, upper));
}

/* Compute the steps of the column that contains the voxel. */
static inline TOMONODE_HD void tof_walk_column(struct tof_walk *s)
{
	const struct ray_walk *w = &s->w;
	size_t n_x = (size_t)s->grid->n[0], row = s->voxel / grid_step(s->grid, 0);
	double end = 1;

	s->first = 0;
	tof_clip(w->x0, w->hx, w->ix, row % n_x, &s->first, &end);
	tof_clip(w->y0, w->hy, w->iy, row / n_x % (size_t)s->grid->n[1], &s->first, &end);
	s->cuts = fmax(1.0, ceil((end - s->first) / s->longest));
	s->cut = (end - s->first) / s->cuts;
}

/* Return the next piece. False: the walk is over. */
static inline TOMONODE_HD bool tof_walk_next(struct tof_walk *s, struct tof_piece *ret)
{
	double length, step, end;

	if (!(s->from < s->to)) {
		s->from = s->w.t;
		if (!ray_walk_next(&s->w, &s->voxel, &length))
			return false;
		s->to = s->from + length / s->w.span;
		tof_walk_column(s);
	}
	step = fmin(fmax(floor((s->from - s->first) / s->cut + TOF_ROUNDING), 0.0), s->cuts - 1);
	end = step < s->cuts - 1 ? fmin(s->first + (step + 1) * s->cut, s->to) : s->to;
	ret->voxel = s->voxel;
	ret->length = (end - s->from) * s->w.span;
	ret->middle = (s->first + (step + 0.5) * s->cut - 0.5) * s->w.span;
	s->from = end;
	return true;
}

#endif
