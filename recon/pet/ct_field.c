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
static bool solve(double m[3][4])
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
	if (n < RIM_LEAST || !solve(m))
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

/* Whether tissue begins at (x, y) of a slice and goes on along a direction of length 1. */
static bool is_deep(const struct ct_field_source *ct, int slice, double x, double y, double along_x, double along_y, double depth)
{
	double step = 0.5 * fmin(ct->h[0], ct->h[1]);
	int n = (int)ceil(depth / step), tissue = 0;

	for (int s = 0; s < n; s++) {
		long i = lround((x + s * step * along_x) / ct->h[0] + 0.5 * (ct->n[0] - 1));
		long j = lround((y + s * step * along_y) / ct->h[1] + 0.5 * (ct->n[1] - 1));
		bool is_tissue =
			i >= 0 && i < ct->n[0] && j >= 0 && j < ct->n[1] &&
			ct->hu[((size_t)slice * (size_t)ct->n[1] + (size_t)j) * (size_t)ct->n[0] + (size_t)i] > CT_FIELD_TISSUE;

		if (s == 0 && !is_tissue)
			return false;
		tissue += is_tissue;
	}
	return tissue >= DEEP * n;
}

/* Return the longest run of tissue along the edge of the image in a slice, mm. */
static double edge_contact(const struct ct_field_source *ct, int slice, double depth)
{
	double longest = 0;

	for (int axis = 0; axis < 2; axis++) /* across the edge */
		for (int side = -1; side <= 1; side += 2) {
			double across = side * 0.5 * (ct->n[axis] - 1) * ct->h[axis], run = 0;

			for (int i = 0; i < ct->n[1 - axis]; i++) {
				double along = x_of(ct, 1 - axis, i);
				bool deep = axis == 0 ? is_deep(ct, slice, across, along, -side, 0, depth)
						      : is_deep(ct, slice, along, across, 0, -side, depth);

				run = deep ? run + ct->h[1 - axis] : 0;
				longest = fmax(longest, run);
			}
		}
	return longest;
}

/* The same along the circle, which is gone round twice: a run may lie across its beginning. */
static double circle_contact(const struct ct_field_source *ct, const struct ct_field *f, int slice, double depth)
{
	double pixel = fmax(ct->h[0], ct->h[1]), inside = f->radius - RIM_INSIDE * pixel, longest = 0, run = 0;
	int n = (int)ceil(4 * M_PI * f->radius / pixel);

	for (int k = 0; k < 2 * n; k++) {
		double phi = 2 * M_PI * k / n, x = cos(phi), y = sin(phi);
		bool deep = is_deep(ct, slice, f->centre[0] + inside * x, f->centre[1] + inside * y, -x, -y, depth);

		run = deep ? run + 2 * M_PI * f->radius / n : 0;
		longest = fmax(longest, run);
	}
	return longest;
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
	for (int k = 0; k < ct->n[2]; k++) {
		double contact = edge_contact(ct, k, depth);

		if (f.radius > 0)
			contact = fmax(contact, circle_contact(ct, &f, k, depth));
		found += contact > CT_FIELD_CONTACT;
	}
	f.truncated = (double)found / ct->n[2];
	*ret = f;
	return 0;
}
