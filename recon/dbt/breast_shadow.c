/* SPDX-License-Identifier: Apache-2.0 */
/* breast_shadow.c - projections of the shape of the breast, and from those of the outermost views the height of the rim's middle. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/dbt/breast_shape_internal.h"

#define OUTER 3		/* views at each end of the arc that show the height of the rim */
#define ARC_LEAST 30.0	/* degrees: of shorter arcs the height is not seen well enough */
#define SHIFTS 7	/* heights of the rim: -6, -4, ... 6 mm */
#define SHIFT_STEP 2.0f /* mm */
#define SHIFT_MOST 5.0	/* mm */
#define SURFACE 1.0	/* mm: width of the surface in projections of the shape */
#define STEP_Z 2.0	/* mm, along a ray */
#define EDGE_LEAST 0.1	/* line integrals that show the edge of the breast */
#define EDGE_MOST 1.3
#define EDGE_REACH 6 /* cells beside the edge that are compared, too */
#define INNER 1.5    /* line integrals that show the attenuation of the tissue */
#define THIN 2.0 /* L, the line integral of the full thickness, below which EDGE_MOST and INNER are less in proportion to it */

void shape_project(const struct shape_finding *w, const double src[3], const double point[3], const float *height, int n,
		   float *ret)
{
	const struct shape_outline *o = w->o;
	int steps = (int)fmax(1, ceil(w->thickness / STEP_Z));
	float dz = (float)(w->thickness / steps), full = 0.4975f * (float)w->thickness, per_mm = 1 / fmaxf(SURFACE, dz);
	double at[2], step[2];

	for (int c = 0; c < 2; c++) { /* from point to point along the ray, in steps of the plane */
		double slope = (point[c] - src[c]) / (src[2] - point[2]) / o->step;

		at[c] = (src[c] - o->lo[c]) / o->step + slope * (src[2] - w->bottom - 0.5 * (double)dz);
		step[c] = -slope * (double)dz;
	}
	for (int k = 0; k < n; k++)
		ret[k] = 0;
	for (int s = 0; s < steps; s++, at[0] += step[0], at[1] += step[1]) {
		float half = 0.5f * shape_interpolate(o, w->line, (float)at[0], (float)at[1]),
		      z = (float)(s - steps / 2.0 + 0.5) * dz;

		if (half <= 0)
			continue;
		for (int k = 0; k < n; k++) {
			float inside = (half - fabsf(z - height[k])) * per_mm + 0.5f;

			inside = half >= full || inside > 1 ? 1 : inside;
			ret[k] += inside > 0 ? dz * inside : 0;
		}
	}
}

/* Mark the cells of a view at the edge of the breast: 1, to be compared. most: the largest line integral of an edge. */
static void mark_edge(const struct view_cells *c, const float *mean, double air, double most, unsigned char *edge)
{
	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			int at = j * c->n_u + i;
			bool near = false;

			edge[at] = 0;
			if ((i + j) % 2 || mean[at] < 0 || (double)mean[at] - air > most)
				continue;
			for (int v = -1; v <= 1 && !near; v++)
				for (int u = -1; u <= 1 && !near; u++) {
					int x = i + u * EDGE_REACH, y = j + v * EDGE_REACH;

					near = x >= 0 && x < c->n_u && y >= 0 && y < c->n_v &&
					       (double)mean[y * c->n_u + x] - air > EDGE_LEAST;
				}
			edge[at] = near;
		}
}

static void cell_point(const struct shape_views *v, int view, int i, int j, double ret[3])
{
	const struct view_cells *c = v->cells;

	scan_bin_at(v->scan, &v->scan->views[view], (i + 0.5) * c->bins_u - 0.5, (j + 0.5) * c->bins_v - 0.5, ret);
}

/* Return the ratio of a ray's length in the shape to its length along z. */
static double ray_obliquity(const double src[3], const double point[3])
{
	double z = src[2] - point[2];

	return hypot(hypot(src[0] - point[0], src[1] - point[1]), z) / z;
}

/* Return how far along y, from the middle of the breast to its end, the ray of a cell crosses the plane of the outline; 1: at an end. */
static double place_along(const struct shape_finding *w, const double src[3], const double point[3])
{
	double part = (src[2] - w->o->z) / (src[2] - point[2]), y = src[1] + part * (point[1] - src[1]);

	return fmin(fmax((2 * y - w->side[0] - w->side[1]) / (w->side[1] - w->side[0]), -1), 1);
}

/* Add up the deviations of a view from the shadow of the shape, for each height, at either end of the breast. Views along y see the
 * height best where the skin's normal is along y. scale: of EDGE_MOST and INNER. */
static void compare_shadow(const struct shape_finding *w, int view, double scale, const float height[SHIFTS], unsigned char *edge,
			   float *work, double ret[2][SHIFTS])
{
	const struct view_cells *c = w->views->cells;
	const float *mean = shape_view(w->views, view);
	const double *src = w->views->scan->views[view].src, air = w->o->air;
	static const float middle[1] = {0};
	double mu, along, point[3];
	float length[SHIFTS];
	size_t n = 0;

	for (int at = 0; at < c->n_u * c->n_v; at += 16)
		if ((double)mean[at] - air > INNER * scale) {
			cell_point(w->views, view, at % c->n_u, at / c->n_u, point);
			shape_project(w, src, point, middle, 1, length);
			if (length[0] > 10)
				work[n++] = (float)(((double)mean[at] - air) / (double)length[0] / ray_obliquity(src, point));
		}
	mu = n ? shape_percentile(work, n, 0.5) : 0;
	mark_edge(c, mean, air, EDGE_MOST * scale, edge);
	for (int at = 0; at < c->n_u * c->n_v; at++) {
		if (!edge[at])
			continue;
		cell_point(w->views, view, at % c->n_u, at / c->n_u, point);
		shape_project(w, src, point, height, SHIFTS, length);
		along = place_along(w, src, point);
		for (int k = 0; k < SHIFTS; k++)
			ret[along > 0][k] +=
				fabs(along) * fabs((double)mean[at] - air - mu * ray_obliquity(src, point) * (double)length[k]);
	}
}

/* Return the height with the least deviation, by a parabola through it and its neighbours. */
static double choose_height(const double e[SHIFTS])
{
	double curve, height;
	int best = SHIFTS / 2; /* if all deviate as much */

	for (int k = 1; k < SHIFTS - 1; k++)
		best = e[k] < e[best] ? k : best;
	curve = e[best - 1] - 2 * e[best] + e[best + 1];
	height = (best - SHIFTS / 2 + (curve > 0 ? 0.5 * (e[best - 1] - e[best + 1]) / curve : 0)) * (double)SHIFT_STEP;
	return fmin(fmax(height, -SHIFT_MOST), SHIFT_MOST);
}

int shape_height_find(const struct shape_finding *w, struct breast_shape_report *report, struct err *err)
{
	const struct shape_views *v = w->views;
	size_t cells = (size_t)v->cells->n_u * (size_t)v->cells->n_v;
	double errors[2 * OUTER][2][SHIFTS] = {{{0}}};
	double scale = fmin(1, report->line / THIN);
	float height[SHIFTS];
	int n = v->scan->n_views, failed = 0;

	report->height_seen = v->arc >= ARC_LEAST && n >= 2 * OUTER;
	if (!report->height_seen)
		return 0;
	for (int k = 0; k < SHIFTS; k++)
		height[k] = (float)(k - SHIFTS / 2) * SHIFT_STEP;
#pragma omp parallel for schedule(dynamic) reduction(+ : failed)
	for (int i = 0; i < 2 * OUTER; i++) {
		float *work = malloc(cells * (sizeof(*work) + 1));

		failed += !work;
		if (work)
			compare_shadow(w, v->by_angle[i < OUTER ? i : n - 1 - (i - OUTER)], scale, height,
				       (unsigned char *)(work + cells), work, errors[i]);
		free(work);
	}
	if (failed)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu cells", cells);
	for (int side = 0; side < 2; side++) {
		double e[SHIFTS] = {0};

		for (int i = 0; i < 2 * OUTER; i++)
			for (int k = 0; k < SHIFTS; k++)
				e[k] += errors[i][side][k];
		report->height[side] = choose_height(e);
	}
	return 0;
}
