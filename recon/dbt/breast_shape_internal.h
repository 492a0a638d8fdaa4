/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the shape of the breast: its outline on a plane parallel to the detector, thickness and height while they are found. */
#ifndef TOMONODE_RECON_BREAST_SHAPE_INTERNAL_H
#define TOMONODE_RECON_BREAST_SHAPE_INTERNAL_H

#include "recon/dbt/breast_shape.h"

#define SHAPE_SECTORS BREAST_SHAPE_SECTORS
#define SHAPE_CLASSES 45 /* classes of the distance to the skin, 1 mm each */

#define CENTRAL_MOST 5 /* central views that are used; three at least, whatever their angle */

enum shape_kind_of_point {
	POINT_NO_DATA = 0,
	POINT_AIR,
	POINT_INSIDE,
};

/* A plane of points `step` mm apart. Arrays of n[1] * n[0] values, x fastest. */
struct shape_outline {
	int n[2];
	double lo[2], step, z; /* mm */
	float *line;	       /* mean line integral of the central projections along z, of the air subtracted */
	unsigned char *kind;
	float *distance; /* of points inside to the skin line, mm; INFINITY: there is none */
	float *sector;	 /* of the nearest skin, 0 to SHAPE_SECTORS; of points inside with a distance */
	double air;	 /* line integral of the air */
};

struct shape_views {
	const struct scan *scan;
	const struct view_cells *cells;
	const float *mean;
	int *by_angle; /* all views, by the angle of their source */
	int *central;  /* the views at about 0 degrees */
	int n_central;
	double arc; /* angle from the first to the last view, degrees */
};

static inline const float *shape_view(const struct shape_views *v, int view)
{
	return v->mean + (size_t)view * (size_t)v->cells->n_u * (size_t)v->cells->n_v;
}

/* Interpolate a plane of values at a place given in steps; outside of the plane, at its edge. */
static inline float shape_interpolate(const struct shape_outline *o, const float *values, float u, float v)
{
	float most_u = (float)(o->n[0] - 1), most_v = (float)(o->n[1] - 1), a, b, p, q;
	int i, j;

	u = u > 0 ? u : 0;
	v = v > 0 ? v : 0;
	u = u < most_u ? u : most_u;
	v = v < most_v ? v : most_v;
	i = u < most_u - 1 ? (int)u : o->n[0] - 2;
	j = v < most_v - 1 ? (int)v : o->n[1] - 2;
	a = u - (float)i;
	b = v - (float)j;
	values += (size_t)j * (size_t)o->n[0] + (size_t)i;
	p = values[0] + a * (values[1] - values[0]);
	q = values[o->n[0]] + a * (values[o->n[0] + 1] - values[o->n[0]]);
	return p + b * (q - p);
}

/* Find the outline of the breast on the plane z. If there is none, *ret_reason (`size` bytes) says why, else it is "". */
int shape_outline_make(const struct shape_views *v, const struct grid *grid, double z, struct shape_outline *ret,
		       char *ret_reason, size_t size, struct err *err);
void shape_outline_release(struct shape_outline *o);

typedef float shape_table[SHAPE_SECTORS][SHAPE_CLASSES]; /* by sector along the skin and class of the distance from it */

/* The shape on the plane of the outline while it is found. */
struct shape_finding {
	const struct shape_views *views;
	const struct shape_outline *o;
	double bottom, thickness; /* of the space between the plates: least z, and H, mm */
	double side[2];		  /* y of the ends of the breast, mm */
	shape_table fitted, f;	  /* T / H as fitted to the profiles, and corrected */
	float *square, *line;	  /* of each point: (T / H)^2, and T */
};

/* Find the thickness: square and line. Return 1 if it is not that of a breast: report->reason says why. */
int shape_thickness_find(struct shape_finding *w, struct breast_shape_report *report, struct err *err);
/* Find the heights of the rim's middle: those of the report. */
int shape_height_find(const struct shape_finding *w, struct breast_shape_report *report, struct err *err);

/* Add up the lengths along z of a ray in the shape, for n heights of the rim's middle above that of the plates. The ray passes the
 * point (x, y) at height z. */
void shape_project(const struct shape_finding *w, const double src[3], const double point[3], const float *height, int n,
		   float *ret);

/* Return a percentile of values, which are sorted; 0 if there are none. */
double shape_percentile(float *values, size_t n, double share);

#endif
