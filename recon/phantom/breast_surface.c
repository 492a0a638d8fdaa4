/* SPDX-License-Identifier: Apache-2.0 */
/* breast_surface.c - the surface of the breast phantom.
 *
 * - Outline, seen along z: (x/L)^p + (|y - y0|/S)^q = 1, with S, p and q of its own on either side, and a slight wave. It goes on
 *   behind the chest wall as its mirror image, so that distances from it are right there too.
 * - Rim: at the distance d from the outline the breast is T sqrt(a t - (a - 1) t^2) thick, t = min(d/w, 1): a quadric that the
 *   plates cut. Its middle is a little lower at the skin (as in the breasts of Graff 2016).
 * - Depth below the surface: the distance from the rim's profile in the plane of d and z, from a table. This neglects that the
 *   outline is curved.
 * - Nipple: an ellipsoid, joined smoothly. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/phantom/breast_internal.h"
#include "recon/phantom/poisson.h"

#define OUTLINE 1200 /* points of the outline */
#define PROFILE 400  /* points of one half of the rim's profile */
#define BEYOND 4.0   /* mm outside of the outline for which there are depths */
#define LOWER 0.04   /* of the height: how much lower the rim's middle is at the skin */
#define JOIN 2.5     /* mm over which nipple and breast are joined */

static const double nipple_radius[3] = {8, 5, 5}; /* mm */

/* Return true if the point at `r` from (0, middle_y), in the direction `angle` from x towards y, is inside the outline. */
static bool is_inside(const struct breast_surface *s, double angle, double r, const double wave[3])
{
	int end = angle > 0;
	double factor = 1;

	for (int k = 0; k < 3; k++)
		factor += 0.012 * wave[k] * cos((k + 2) * angle + 3 * wave[(k + 1) % 3]) * pow(cos(angle), 2);
	return pow(r / factor * fabs(cos(angle)) / s->length, s->power[end][0]) +
		       pow(r / factor * fabs(sin(angle)) / s->side[end], s->power[end][1]) <
	       1;
}

static double outline_radius(const struct breast_surface *s, double angle, const double wave[3])
{
	double lo = 0, hi = 1000;

	for (int i = 0; i < 40; i++) {
		double r = (lo + hi) / 2;

		if (is_inside(s, angle, r, wave))
			lo = r;
		else
			hi = r;
	}
	return lo;
}

static int fill_edge(struct breast_surface *s, const double wave[3], struct err *err)
{
	double(*point)[2] = malloc(OUTLINE * sizeof(*point));

	s->edge = malloc((size_t)s->n[0] * (size_t)s->n[1] * sizeof(*s->edge));
	if (!point || !s->edge) {
		free(point);
		return err_set(err, ENOMEM, "no memory for the outline of a breast");
	}
	for (int i = 0; i < OUTLINE; i++) {
		double angle = 2 * M_PI * (i + 0.5) / OUTLINE, r = outline_radius(s, asin(sin(angle)), wave);

		point[i][0] = r * cos(angle);
		point[i][1] = s->middle_y + r * sin(angle);
	}
#pragma omp parallel for schedule(static)
	for (int j = 0; j < s->n[1]; j++)
		for (int i = 0; i < s->n[0]; i++) {
			double x = (i + 0.5) * BREAST_VOXEL, y = (j + 0.5 - s->n[1] / 2.0) * BREAST_VOXEL, least = INFINITY;

			for (int p = 0; p < OUTLINE; p++) {
				double dx = point[p][0] - x, dy = point[p][1] - y, q = dx * dx + dy * dy;

				least = q < least ? q : least;
			}
			least = sqrt(least);
			if (!is_inside(s, atan2(y - s->middle_y, x), hypot(x, y - s->middle_y), wave))
				least = -least;
			s->edge[(size_t)j * (size_t)s->n[0] + (size_t)i] = (float)least;
		}
	free(point);
	return 0;
}

/* Compute the lower and the upper surface at the distance d from the outline. */
static void profile_at(const struct breast_surface *s, double d, double ret[2])
{
	double t = fmin(fmax(d / s->rim, 0), 1);
	double thickness = s->height * sqrt(fmax(BREAST_RIM_CUT * t - (BREAST_RIM_CUT - 1) * t * t, 0));
	double middle = s->height / 2 - LOWER * s->height * (1 - t);

	ret[0] = fmax(middle - thickness / 2, 0);
	ret[1] = fmin(middle + thickness / 2, s->height);
}

static int fill_depth(struct breast_surface *s, struct err *err)
{
	double profile[PROFILE + 1][3]; /* distance from the outline, lower and upper surface */

	for (int p = 0; p <= PROFILE; p++) {
		profile[p][0] = s->rim * pow((double)p / PROFILE, 2);
		profile_at(s, profile[p][0], profile[p] + 1);
	}
	s->n_depth = (int)ceil((BEYOND + s->rim + s->height / 2) / BREAST_VOXEL) + 2;
	s->depth = malloc((size_t)s->n_depth * (size_t)s->n[2] * sizeof(*s->depth));
	if (!s->depth)
		return err_set(err, ENOMEM, "no memory for the depths of a breast");
#pragma omp parallel for schedule(static)
	for (int k = 0; k < s->n[2]; k++)
		for (int i = 0; i < s->n_depth; i++) {
			double z = (k + 0.5) * s->hz, d = i * BREAST_VOXEL - BEYOND, at[2], least = 1e9;

			for (int p = 0; p <= PROFILE; p++)
				for (int c = 1; c <= 2; c++) {
					double dd = profile[p][0] - d, dz = profile[p][c] - z, q = dd * dd + dz * dz;

					least = q < least ? q : least;
				}
			least = sqrt(least);
			if (d > s->rim)
				least = fmin(least, fmin(z, s->height - z));
			profile_at(s, d, at);
			s->depth[(size_t)k * (size_t)s->n_depth + (size_t)i] =
				(float)(d > 0 && z > at[0] && z < at[1] ? least : -least);
		}
	return 0;
}

int breast_surface_create(const struct breast_options *o, struct breast_surface *ret, struct err *err)
{
	uint64_t stream = poisson_stream(o->seed, 1);
	/* Thicker breasts are larger. The shadow in slanted views must stay on the detector. */
	double length = 58 + 0.6 * o->thickness, width = o->muscle ? 2.0 * length : 1.75 * length, wave[3], varied;
	double fits = fmin(1, fmin(0.8 * o->room[0] / length, 0.72 * o->room[1] / width));
	struct breast_surface *s = ret;
	int rc;

	varied = 1 + 0.06 * (2 * poisson_uniform(&stream) - 1);
	*s = (struct breast_surface){.length = fits * length * varied,
				     .height = o->thickness,
				     .rim = fmin(0.45 * o->thickness, 0.4 * fits * length),
				     .power = {{1.9, 2.4}, {1.9, 2.2}}};
	s->side[0] = fits * width * 0.475;
	s->side[1] = fits * width * 0.525;
	if (o->muscle) { /* the axilla is flat and long, the lower half is full */
		s->side[0] = fits * width * 0.40;
		s->side[1] = fits * width * 0.60;
		s->power[0][1] = 2.6;
		s->power[1][0] = 1.45;
		s->power[1][1] = 2.0;
	}
	s->middle_y = (s->side[0] - s->side[1]) / 2 + 2 * fits;
	for (int k = 0; k < 3; k++)
		wave[k] = 2 * poisson_uniform(&stream) - 1;
	s->nipple[0] = outline_radius(s, 0, wave) - 1;
	s->nipple[1] = s->middle_y;
	s->nipple[2] = 0.46 * s->height;
	s->n[0] = (int)ceil((s->nipple[0] + nipple_radius[0] + 2) / BREAST_VOXEL);
	s->n[1] = 2 * (int)ceil((fabs(s->middle_y) + 1.05 * fmax(s->side[0], s->side[1]) + 1) / BREAST_VOXEL);
	s->n[2] = (int)round(s->height / BREAST_VOXEL);
	s->hz = s->height / s->n[2];
	rc = fill_edge(s, wave, err);
	if (rc == 0)
		rc = fill_depth(s, err);
	if (rc < 0)
		breast_surface_clear(s);
	return rc;
}

void breast_surface_clear(struct breast_surface *s)
{
	free(s->edge);
	free(s->depth);
	s->edge = s->depth = NULL;
}

double breast_surface_depth(const struct breast_surface *s, int i, int j, int k)
{
	const float *row = s->depth + (size_t)k * (size_t)s->n_depth;
	double edge = (double)s->edge[(size_t)j * (size_t)s->n[0] + (size_t)i], at = (edge + BEYOND) / BREAST_VOXEL, q = 0, depth,
	       part;
	double from[3] = {(i + 0.5) * BREAST_VOXEL, (j + 0.5 - s->n[1] / 2.0) * BREAST_VOXEL, (k + 0.5) * s->hz};
	int low;

	at = fmin(at, s->n_depth - 1.001);
	low = at > 0 ? (int)at : 0;
	depth = at > 0 ? (double)row[low] + (at - low) * (double)(row[low + 1] - row[low]) : edge;
	if (from[0] < s->nipple[0] - 2 * nipple_radius[0])
		return depth;
	for (int c = 0; c < 3; c++)
		q += pow((from[c] - s->nipple[c]) / nipple_radius[c], 2);
	q = (1 - sqrt(q)) * nipple_radius[1];
	part = fmin(fmax(0.5 + (q - depth) / (2 * JOIN), 0), 1);
	return depth + part * (q - depth) + JOIN * part * (1 - part);
}
