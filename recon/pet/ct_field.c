/* SPDX-License-Identifier: Apache-2.0 */
/* ct_field.c - see recon/pet/ct_field.h. */
#include "recon/pet/ct_field.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define RIM_LEAST 16	   /* points of the edge that determine a circle */
#define RIM_TOLERANCE 0.75 /* pixels, root of the mean square distance of these points from the circle */
#define RIM_INSIDE 1.5	   /* pixels from the circle to the first value that is of the body alone */
#define NO_PADDING (-950)  /* HU: outside of the circle in the image, more is an image */
#define PAST 1.5	   /* pixels behind that circle */
#define DEEP 0.8	   /* part of the depth that is tissue */
#define PIXELS 2.5	   /* depth of what has a shape */
#define NARROW_AT 0.6	   /* part of the depth at which both ends of a run have no tissue any more */

struct point {
	double x, y; /* mm from the middle of the image */
};

static double x_of(const struct ct_field_source *ct, int axis, double index)
{
	return (index - 0.5 * (ct->n[axis] - 1)) * ct->h[axis];
}

/* Mark the pixels of which some slice has an image. */
static void find_image(const struct ct_field_source *ct, bool *ret)
{
	size_t pixels = (size_t)ct->n[0] * (size_t)ct->n[1];

	for (size_t i = 0; i < pixels; i++) {
		ret[i] = false;
		for (int k = 0; k < ct->n[2] && !ret[i]; k++) {
			int hu = ct->hu[(size_t)k * pixels + i];

			ret[i] = hu > CT_FIELD_PADDING && (hu != ct->padding || hu > CT_FIELD_TISSUE);
		}
	}
}

/* Write the first and last pixel of the field in each row and column, unless the image ends there. ret: room for 2 points of
 * each. Return their number. */
static int find_rim(const struct ct_field_source *ct, const bool *image, struct point *ret)
{
	int found = 0;

	for (int axis = 0; axis < 2; axis++)
		for (int line = 0; line < ct->n[1 - axis]; line++) {
			size_t first = axis == 0 ? (size_t)line * (size_t)ct->n[0] : (size_t)line;
			size_t step = axis == 0 ? 1 : (size_t)ct->n[0];
			int ends[2] = {-1, -1}, n = ct->n[axis];

			for (int i = 0; i < n; i++)
				if (image[first + (size_t)i * step]) {
					ends[0] = ends[0] < 0 ? i : ends[0];
					ends[1] = i;
				}
			for (int e = 0; e < 2; e++)
				if (ends[e] > 0 && ends[e] < n - 1)
					ret[found++] = axis == 0 ? (struct point){x_of(ct, 0, ends[e]), x_of(ct, 1, line)}
								 : (struct point){x_of(ct, 0, line), x_of(ct, 1, ends[e])};
		}
	return found;
}

/* Solve the three equations, in place. false: they have no single solution. */
static bool solve_three(double m[3][4])
{
	for (int c = 0; c < 3; c++) {
		int best = c;

		for (int r = c + 1; r < 3; r++)
			best = fabs(m[r][c]) > fabs(m[best][c]) ? r : best;
		if (!(fabs(m[best][c]) > 1e-9))
			return false;
		for (int k = 0; k < 4; k++) {
			double was = m[c][k];

			m[c][k] = m[best][k];
			m[best][k] = was;
		}
		for (int r = 0; r < 3; r++) {
			double factor = r == c ? 0 : m[r][c] / m[c][c];

			for (int k = 0; k < 4; k++)
				m[r][k] -= factor * m[c][k];
		}
	}
	for (int r = 0; r < 3; r++)
		m[r][3] /= m[r][r];
	return true;
}

/* Set the circle through the points, by least squares of x^2 + y^2 = a x + b y + c (Kasa); radius 0: they are on none. */
static void fit_circle(const struct point *points, int n, double pixel, struct ct_field *f)
{
	double m[3][4] = {{0}}, square, sum = 0;

	for (int i = 0; i < n; i++) {
		const double p[3] = {points[i].x, points[i].y, 1};

		for (int r = 0; r < 3; r++) {
			for (int c = 0; c < 3; c++)
				m[r][c] += p[r] * p[c];
			m[r][3] += p[r] * (p[0] * p[0] + p[1] * p[1]);
		}
	}
	if (n < RIM_LEAST || !solve_three(m))
		return;
	f->centre[0] = 0.5 * m[0][3];
	f->centre[1] = 0.5 * m[1][3];
	square = m[2][3] + f->centre[0] * f->centre[0] + f->centre[1] * f->centre[1];
	for (int i = 0; i < n; i++) {
		double d = hypot(points[i].x - f->centre[0], points[i].y - f->centre[1]) - sqrt(fmax(square, 0));

		sum += d * d;
	}
	if (sqrt(sum / n) < RIM_TOLERANCE * pixel)
		f->radius = sqrt(square) + 0.5 * pixel; /* the points are centres of pixels inside */
}

/* Whether nothing but air or padding is outside of the circle that the image contains. */
static bool is_round(const struct ct_field_source *ct, double radius)
{
	for (int j = 0; j < ct->n[1]; j++)
		for (int i = 0; i < ct->n[0]; i++)
			for (int k = 0; k < ct->n[2] && hypot(x_of(ct, 0, i), x_of(ct, 1, j)) > radius; k++)
				if (ct->hu[((size_t)k * (size_t)ct->n[1] + (size_t)j) * (size_t)ct->n[0] + (size_t)i] >
				    NO_PADDING)
					return false;
	return true;
}

/* A side of the image in a slice, or the circle of the field. */
struct edge {
	const struct ct_field_source *ct;
	int slice;
	int axis, side;		  /* a side: across it, and at which end of this axis: -1 or 1 */
	const struct ct_field *f; /* the circle; NULL: a side */
	int n;			  /* points */
	double step;		  /* mm from point to point */
};

/* Whether tissue is at a point of the edge, or this many mm inwards of it. */
static bool is_tissue(const struct edge *e, int point, double inwards)
{
	const struct ct_field_source *ct = e->ct;
	double at[2];
	long i, j;

	if (e->f) {
		double phi = 2 * M_PI * point / e->n, r = e->f->radius - RIM_INSIDE * fmax(ct->h[0], ct->h[1]) - inwards;

		at[0] = e->f->centre[0] + r * cos(phi);
		at[1] = e->f->centre[1] + r * sin(phi);
	} else {
		at[e->axis] = e->side * (0.5 * (ct->n[e->axis] - 1) * ct->h[e->axis] - inwards);
		at[1 - e->axis] = x_of(ct, 1 - e->axis, point);
	}
	i = lround(at[0] / ct->h[0] + 0.5 * (ct->n[0] - 1));
	j = lround(at[1] / ct->h[1] + 0.5 * (ct->n[1] - 1));
	return i >= 0 && i < ct->n[0] && j >= 0 && j < ct->n[1] &&
	       ct->hu[((size_t)e->slice * (size_t)ct->n[1] + (size_t)j) * (size_t)ct->n[0] + (size_t)i] > CT_FIELD_TISSUE;
}

/* Whether tissue begins at a point of the edge and goes on inwards. */
static bool is_deep(const struct edge *e, int point, double depth)
{
	double step = 0.5 * fmin(e->ct->h[0], e->ct->h[1]);
	int n = (int)ceil(depth / step), tissue = 0;

	if (!is_tissue(e, point, 0))
		return false;
	for (int s = 0; s < n; s++)
		tissue += is_tissue(e, point, s * step);
	return tissue >= DEEP * n;
}

/* Return how far tissue goes inwards from a point of the edge without a gap, at most `most` mm. */
static double depth_at(const struct edge *e, int point, double most)
{
	double step = 0.5 * fmin(e->ct->h[0], e->ct->h[1]), depth = 0;

	while (depth < most && is_tissue(e, point, depth))
		depth += step;
	return depth;
}

/* Whether a run of tissue along the edge is the end of a round part whose middle is outside. */
static bool is_end(const struct edge *e, int first, int last, double most)
{
	double width = (last - first + 1) * e->step, depth = 0;
	double least = fmax(CT_FIELD_SHALLOW, PIXELS * fmax(e->ct->h[0], e->ct->h[1]));

	for (int i = first; i <= last; i++)
		depth = fmax(depth, depth_at(e, i, most));
	return depth >= least && width * width < 8 * depth / (1 / CT_FIELD_ROUND + (e->f ? 1 / e->f->radius : 0)) &&
	       !is_tissue(e, first, NARROW_AT * depth) && !is_tissue(e, last, NARROW_AT * depth);
}

/* Whether the edge cuts a body. The circle is gone round twice: a run may lie across its beginning. */
static bool is_cut(const struct edge *e, double depth)
{
	int rounds = e->f ? 2 : 1, run = 0, deep = 0;

	for (int i = 0; i <= rounds * e->n; i++) {
		bool goes_on = i < rounds * e->n;

		deep = goes_on && is_deep(e, i, depth) ? deep + 1 : 0;
		if (deep * e->step > CT_FIELD_CONTACT)
			return true;
		if (goes_on && is_tissue(e, i, 0)) {
			run++;
			continue;
		}
		if (run * e->step > CT_FIELD_CONTACT && is_end(e, i - run, i - 1, depth))
			return true;
		run = 0;
	}
	return false;
}

/* Whether a body is cut in a slice. */
static bool is_cut_in(const struct ct_field_source *ct, const struct ct_field *f, int slice, double depth)
{
	struct edge e = {.ct = ct, .slice = slice};

	for (e.axis = 0; e.axis < 2; e.axis++)
		for (e.side = -1; e.side <= 1; e.side += 2) {
			e.n = ct->n[1 - e.axis];
			e.step = ct->h[1 - e.axis];
			if (is_cut(&e, depth))
				return true;
		}
	if (!(f->radius > 0))
		return false;
	e.f = f;
	e.n = (int)ceil(4 * M_PI * f->radius / fmax(ct->h[0], ct->h[1]));
	e.step = 2 * M_PI * f->radius / e.n;
	return is_cut(&e, depth);
}

int ct_field_find(const struct ct_field_source *ct, struct ct_field *ret, struct err *err)
{
	bool *image = malloc((size_t)ct->n[0] * (size_t)ct->n[1] * sizeof(*image));
	struct point *rim = malloc(2 * ((size_t)ct->n[0] + (size_t)ct->n[1]) * sizeof(*rim));
	struct ct_field f = {.radius = 0};
	double radius, depth, pixel = fmax(ct->h[0], ct->h[1]);
	int found = 0;

	if (!image || !rim) {
		free(image);
		free(rim);
		return err_set(err, ENOMEM, "CT: no memory for %d x %d pixels", ct->n[0], ct->n[1]);
	}
	find_image(ct, image);
	fit_circle(rim, find_rim(ct, image, rim), pixel, &f);
	free(image);
	free(rim);
	radius = 0.5 * fmin(ct->n[0] * ct->h[0], ct->n[1] * ct->h[1]);
	if (!(f.radius > 0)) /* padding that is like air */
		f = (struct ct_field){.radius = is_round(ct, radius + PAST * pixel) ? radius : 0};
	depth = fmin(CT_FIELD_DEPTH, 0.25 * (f.radius > 0 ? f.radius : radius));
	for (int k = 0; k < ct->n[2]; k++)
		found += is_cut_in(ct, &f, k, depth);
	f.truncated = (double)found / ct->n[2];
	*ret = f;
	return 0;
}
