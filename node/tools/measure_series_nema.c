/* SPDX-License-Identifier: Apache-2.0 */
/* measure_series_nema.c - the image quality phantom of NEMA NU 2 (2012 and 2018, section 7): contrast recovery, background
 * variability, residual in the lung insert. Circles as the standard has them: on each sphere, in the slice through its centre,
 * one of its own diameter; 12 circles of 37 mm in the background of that slice and of those at 10 and 20 mm to both sides, with
 * concentric circles of the other diameters: K = 60 of each; 30 mm on the lung insert in every slice that it fills.
 *
 * In the simulated phantom, whose body is an ellipse with less space than NEMA's, the background circles are 12 mm from the edge
 * instead of 15 mm, at the angles below. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/tools/measure_series_internal.h"

#define BACKGROUND_DIAMETER 37.0
#define LUNG_DIAMETER 30.0
#define EDGE 12.0 /* mm from a background circle to the edge of the body */
#define SPHERES_MAX 16
#define CIRCLES_MAX 64

static const double planes[] = {-20, -10, 0, 10, 20}; /* mm from the centres of the spheres */
static const double angles[] = {-90, -50, -25, 0, 25, 50, 90, 130, 155, 180, 205, 230};
#define N_PLANES (sizeof(planes) / sizeof(planes[0]))
#define N_ANGLES (sizeof(angles) / sizeof(angles[0]))

struct phantom_parts {
	const struct truth_shape *body, *lung, *sphere[SPHERES_MAX];
	size_t n_spheres, n_circles;
	double circle[CIRCLES_MAX][2]; /* centres in the background */
	double z;		       /* of the spheres */
};

static bool is_sphere(const struct truth_shape *s)
{
	return s->lesion && s->kind == TRUTH_ELLIPSOID && fabs(s->r[0] - s->r[1]) < 1e-6 && fabs(s->r[0] - s->r[2]) < 1e-6;
}

static int find_parts(const struct series_truth *t, struct phantom_parts *p, struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct truth_shape *s = &t->shapes[i];

		if (is_sphere(s) && p->n_spheres < SPHERES_MAX)
			p->sphere[p->n_spheres++] = s;
		else if (s->kind == TRUTH_CYLINDER && s->value > 0 && !p->body)
			p->body = s;
		else if (s->kind == TRUTH_CYLINDER && s->value < 0)
			p->lung = s;
	}
	if (!p->body || p->n_spheres == 0)
		return err_set(err, EBADMSG, "the image quality phantom of the truth has no %s",
			       p->body ? "spheres" : "body: a cylinder with a value above 0");
	p->z = p->sphere[0]->c[2];
	for (size_t i = 1; i < p->n_spheres; i++)
		if (fabs(p->sphere[i]->c[2] - p->z) > 1)
			return err_set(err, EBADMSG, "the spheres of the truth are not in one plane: z = %g and %g mm", p->z,
				       p->sphere[i]->c[2]);
	return 0;
}

static int place_circles(const struct series_truth *t, struct phantom_parts *p, struct err *err)
{
	double radius = BACKGROUND_DIAMETER / 2 * t->size;

	p->n_circles = t->background ? t->n_background : N_ANGLES;
	if (p->n_circles < 2 || p->n_circles > CIRCLES_MAX)
		return err_set(err, EBADMSG, "background_mm of the truth has %zu circles; allowed: 2 to %d", p->n_circles,
			       CIRCLES_MAX);
	for (size_t i = 0; i < p->n_circles; i++) {
		for (int c = 0; c < 2; c++) {
			double half = p->body->r[c] - radius - EDGE * t->size, angle = angles[i % N_ANGLES] * M_PI / 180;

			p->circle[i][c] =
				t->background ? t->background[i][c] : p->body->c[c] + half * (c ? sin(angle) : cos(angle));
		}
		for (size_t k = 0; k < p->n_spheres; k++) {
			const struct truth_shape *s = p->sphere[k];
			double gap = hypot(p->circle[i][0] - s->c[0], p->circle[i][1] - s->c[1]) - radius - s->r[0];

			if (gap < 0)
				return err_set(err, EBADMSG, "background circle %zu overlaps \"%s\" by %.1f mm", i + 1, s->name,
					       -gap);
		}
	}
	return 0;
}

/* Mean and standard deviation (n - 1) of the means of all background circles of a diameter. */
static int measure_background(const struct measured *m, const struct series_truth *t, const struct phantom_parts *p,
			      double diameter, struct region_sum *ret, struct err *err)
{
	for (size_t k = 0; k < N_PLANES; k++)
		for (size_t i = 0; i < p->n_circles; i++) {
			double scan[3] = {p->circle[i][0], p->circle[i][1], p->z + planes[k] * t->size}, at[3];
			struct region_sum sum = {0};
			char name[48];
			int slice, rc;

			snprintf(name, sizeof(name), "background circle %zu", k * p->n_circles + i + 1);
			series_truth_point(t, scan, at);
			rc = series_slice_at(m->s, at, name, &slice, err);
			if (rc == 0)
				rc = series_circle(m, at, slice, diameter, name, &sum, err);
			if (rc < 0)
				return rc;
			region_add(ret, 1, sum.mean);
		}
	return 0;
}

static int measure_sphere(const struct measured *m, const struct series_truth *t, const struct phantom_parts *p,
			  const struct truth_shape *s, json_t *list, struct err *err)
{
	double diameter = 2 * s->r[0], ratio = 1 + s->value / p->body->value, at[3], contrast;
	struct region_sum sum = {0}, back = {0};
	int slice, rc;

	series_truth_point(t, s->c, at);
	rc = series_slice_at(m->s, at, s->name, &slice, err);
	if (rc == 0)
		rc = series_circle(m, at, slice, diameter, s->name, &sum, err);
	if (rc == 0)
		rc = measure_background(m, t, p, diameter, &back, err);
	if (rc < 0)
		return rc;
	if (!(back.mean > 0))
		return err_set(err, EBADMSG,
			       "the mean of the background circles of %g mm is %g; contrast recovery needs a value above 0",
			       diameter, back.mean);
	contrast = (sum.mean / back.mean - 1) / (ratio - 1); /* for cold spheres ratio is 0: 1 - mean / background */
	json_array_append_new(list,
			      json_pack("{s:s, s:f, s:f, s:b, s:i, s:f, s:f, s:o, s:o}", "name", s->name, "diameter_mm", diameter,
					"true_ratio", ratio, "hot", ratio > 1, "slice", slice + 1, "mean", sum.mean, "background",
					back.mean, "recovery_percent", series_number(100 * contrast), "variability_percent",
					series_number(100 * region_sd(&back) / back.mean)));
	return 0;
}

/* Residual in every slice that the lung insert fills, over its whole thickness. */
static int measure_lung(const struct measured *m, const struct series_truth *t, const struct phantom_parts *p, double background,
			json_t **ret, struct err *err)
{
	double along = 0, place[3], at[3], percent;
	struct region_sum all = {0};
	json_t *slices;
	int rc = 0;

	if (!p->lung)
		return 0;
	for (int c = 0; c < 3; c++)
		along += t->axis[2][c] * m->s->normal[c];
	if (fabs(along) < 0.9) /* the insert would not be a circle in the slices */
		return 0;
	series_truth_point(t, p->lung->c, at);
	series_locate(m->s, at, place);
	slices = json_array();
	for (int k = 0; rc == 0 && k < m->s->n[2]; k++) {
		double z = (k - place[2]) * m->s->spacing[2] / along, scan[3] = {p->lung->c[0], p->lung->c[1], p->lung->c[2] + z};
		struct region_sum sum = {0};

		if (fabs(z) + m->s->spacing[2] / 2 > p->lung->r[2])
			continue;
		series_truth_point(t, scan, at);
		rc = series_circle(m, at, k, LUNG_DIAMETER * t->size, p->lung->name, &sum, err);
		percent = 100 * sum.mean / background;
		region_add(&all, 1, percent);
		json_array_append_new(slices,
				      json_pack("{s:i, s:o}", "slice", k + 1, "residual_percent", series_number(percent)));
	}
	if (rc < 0 || all.n == 0) {
		json_decref(slices);
		return rc;
	}
	*ret = json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "name", p->lung->name, "diameter_mm", LUNG_DIAMETER * t->size,
			 "residual_percent", all.mean, "min_percent", all.min, "max_percent", all.max, "slices", slices);
	return 0;
}

int series_nema(const struct measured *m, const struct series_truth *t, json_t **ret, struct err *err)
{
	struct phantom_parts p = {0};
	struct region_sum back = {0};
	json_t *spheres = NULL, *lung = NULL;
	int rc;

	*ret = NULL;
	if (strcmp(t->phantom, "nema-iq") != 0)
		return 0;
	rc = find_parts(t, &p, err);
	if (rc == 0)
		rc = place_circles(t, &p, err);
	spheres = json_array();
	for (size_t i = 0; rc == 0 && i < p.n_spheres; i++)
		rc = measure_sphere(m, t, &p, p.sphere[i], spheres, err);
	if (rc == 0)
		rc = measure_background(m, t, &p, BACKGROUND_DIAMETER * t->size, &back, err);
	if (rc == 0)
		rc = measure_lung(m, t, &p, back.mean, &lung, err);
	if (rc < 0) {
		json_decref(spheres);
		return rc;
	}
	*ret = json_pack("{s:s, s:I, s:f, s:o, s:o}", "standard", "NEMA NU 2-2018, section 7", "circles",
			 (json_int_t)(N_PLANES * p.n_circles), "background", back.mean, "spheres", spheres, "lung",
			 lung ? lung : json_null());
	return 0;
}
