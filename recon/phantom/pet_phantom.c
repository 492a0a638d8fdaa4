/* SPDX-License-Identifier: Apache-2.0 */
/* pet_phantom.c - PET phantoms: shapes, line integrals of a plane, counts. */
#include "recon/phantom/pet_phantom.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/tof.h"
#include "recon/phantom/phantom_body.h"
#include "recon/phantom/poisson.h"

#define SHAPES_MAX 16
#define CYLINDER_ACTIVITY 10000.0 /* Bq/ml */
#define IQ_ACTIVITY 5300.0	  /* background, NEMA NU 2: 5.3 kBq/ml */
#define F_ACTIVITY 10000.0
#define F_BODY 500.0
#define LUNG 0.3 /* fraction of the attenuation of water */

static void add_shape(struct phantom *p, enum shape_kind kind, enum shape_role role, const double c[3], const double r[3],
		      double value)
{
	p->shapes[p->n++] = (struct shape){kind, role, {c[0], c[1], c[2]}, {r[0], r[1], r[2]}, value};
}

/* Add a cylinder of water with activity. */
static void add_body(struct pet_phantom *p, const double c[3], const double r[3], double activity)
{
	add_shape(p->activity, SHAPE_CYLINDER_Z, ROLE_BODY, c, r, activity);
	add_shape(p->attenuation, SHAPE_CYLINDER_Z, ROLE_BODY, c, r, PET_WATER);
}

static void add_iq(struct pet_phantom *p)
{
	static const double c[3] = {0, 0, 22}, body[3] = {147, 115, 90}, insert[3] = {25, 25, 90};
	static const double diameter[] = {10, 13, 17, 22, 28, 37};

	add_body(p, c, body, IQ_ACTIVITY);
	add_shape(p->activity, SHAPE_CYLINDER_Z, ROLE_BODY, c, insert, -IQ_ACTIVITY);
	add_shape(p->attenuation, SHAPE_CYLINDER_Z, ROLE_BODY, c, insert, (LUNG - 1) * PET_WATER);
	for (int i = 0; i < 6; i++) {
		double angle = (i - 2) * M_PI / 3, r = diameter[i] / 2;

		add_shape(p->activity, SHAPE_ELLIPSOID, ROLE_LESION, (double[]){57.2 * cos(angle), 57.2 * sin(angle), 0},
			  (double[]){r, r, r}, i < 4 ? 3 * IQ_ACTIVITY : -IQ_ACTIVITY);
	}
}

static void add_f(struct pet_phantom *p)
{
	static const struct {
		double c[3], r[3], activity;
	} parts[] = {
		{{-30, 0, 0}, {10, 70, 16}, F_ACTIVITY},    /* stem */
		{{28, -58, 11}, {48, 10, 9}, F_ACTIVITY},   /* long arm */
		{{11, -4, -11}, {31, 10, 9}, F_ACTIVITY},   /* short arm */
		{{-62, 52, 12}, {9, 9, 9}, 2 * F_ACTIVITY}, /* ball */
	};

	add_body(p, (double[]){0, 0, 0}, (double[]){110, 110, 60}, F_BODY);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		add_shape(p->activity, SHAPE_ELLIPSOID, ROLE_LESION, parts[i].c, parts[i].r, parts[i].activity);
}

const char *const pet_phantom_names[] = {"cylinder", "nema-iq", "f-shape", NULL};

const char *pet_phantom_name(enum pet_phantom_kind kind)
{
	return kind >= PET_PHANTOM_CYLINDER && kind <= PET_PHANTOM_F ? pet_phantom_names[kind - 1] : NULL;
}

static struct phantom *new_phantom(const char *name)
{
	struct phantom *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->shapes = calloc(SHAPES_MAX, sizeof(*p->shapes));
	return p->shapes ? p : phantom_free(p);
}

int pet_phantom_create(enum pet_phantom_kind kind, double radius, double length, struct pet_phantom **ret_phantom,
		       struct err *err)
{
	const char *name = pet_phantom_name(kind);
	struct pet_phantom *p;

	if (!name)
		return err_set(err, EINVAL, "PET phantom: kind %d", (int)kind);
	if (kind == PET_PHANTOM_CYLINDER && !(radius > 0 && radius <= 1000))
		return err_set(err, EINVAL, "PET phantom: cylinder of %g mm radius, not in (0, 1000]", radius);
	if (kind == PET_PHANTOM_CYLINDER && !(length > 0 && length <= 5000))
		return err_set(err, EINVAL, "PET phantom: cylinder of %g mm length, not in (0, 5000]", length);
	p = calloc(1, sizeof(*p));
	if (p) {
		p->activity = new_phantom(name);
		p->attenuation = new_phantom(name);
	}
	if (!p || !p->activity || !p->attenuation) {
		pet_phantom_free(p);
		return err_set(err, ENOMEM, "PET phantom: no memory for %d shapes", SHAPES_MAX);
	}
	if (kind == PET_PHANTOM_CYLINDER)
		add_body(p, (double[]){0, 0, 0}, (double[]){radius, radius, length / 2}, CYLINDER_ACTIVITY);
	else if (kind == PET_PHANTOM_NEMA_IQ)
		add_iq(p);
	else
		add_f(p);
	*ret_phantom = p;
	return 0;
}

struct pet_phantom *pet_phantom_free(struct pet_phantom *p)
{
	if (p) {
		phantom_free(p->activity);
		phantom_free(p->attenuation);
	}
	free(p);
	return NULL;
}

static void scale_shapes(struct phantom *p, double factor)
{
	for (size_t k = 0; k < p->n; k++)
		for (int i = 0; i < 3; i++) {
			p->shapes[k].c[i] *= factor;
			p->shapes[k].r[i] *= factor;
		}
}

void pet_phantom_scale(struct pet_phantom *p, double factor)
{
	scale_shapes(p->activity, factor);
	scale_shapes(p->attenuation, factor);
}

double pet_phantom_reach(const struct pet_phantom *p)
{
	double reach = 0;

	for (size_t k = 0; k < p->attenuation->n; k++) { /* all activity is in the water */
		const struct shape *s = &p->attenuation->shapes[k];

		reach = larger_of(reach, hypot(s->c[0], s->c[1]) + larger_of(s->r[0], s->r[1]));
	}
	return reach;
}

/* Return the integral of the phantom over its volume. Only for cylinders and ellipsoids. */
static double integral_of(const struct phantom *p)
{
	double sum = 0;

	for (size_t k = 0; k < p->n; k++) {
		const struct shape *s = &p->shapes[k];

		sum += s->mu * s->r[0] * s->r[1] * s->r[2] * M_PI * (s->kind == SHAPE_CYLINDER_Z ? 2 : 4.0 / 3);
	}
	return sum;
}

double pet_phantom_becquerel(const struct pet_phantom *p)
{
	return integral_of(p->activity) / 1000; /* mm^3 in a ml */
}

double pet_phantom_grams(const struct pet_phantom *p)
{
	return integral_of(p->attenuation) / PET_WATER / 1000;
}

/* Find the radial bins whose rays may meet the body at this angle: from *ret_first up to *ret_end. One bin more on each side, so
 * that rounding cannot remove a ray. */
static void find_shadow(const struct body *s, const struct shape *shape, const struct scan *scan, const struct scan_view *view,
			int *ret_first, int *ret_end)
{
	double at = s->c[0] * view->turn[0] + s->c[1] * view->turn[1];
	double half =
		hypot(shape->r[0] * view->turn[0], shape->r[1] * view->turn[1]); /* half width of an ellipse along the radius */
	int first = 0, end = scan->n_v;

	while (first < end && scan->radius[first] < at - half)
		first++;
	while (end > first && scan->radius[end - 1] > at + half)
		end--;
	*ret_first = first > 0 ? first - 1 : 0;
	*ret_end = end < scan->n_v ? end + 1 : end;
}

/* Return the integral of the weight of a TOF bin over the part of the ray inside the body, as a fraction of the ray. */
static double chord_weighted(const struct body *s, const struct scan_tof *tof, int bin, const double a[3], const double d[3])
{
	double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), t0, t1;

	body_interval(s, a, d, &t0, &t1);
	if (!(t1 > t0 && length > 0))
		return 0;
	return tof_weight_integral(tof, bin, (t0 - 0.5) * length, (t1 - 0.5) * length) / length;
}

/* Compute one angle of a plane. Arrays over all radial bins, so that the loop over them vectorises. */
static void project_row(const struct phantom *p, const struct body *bodies, const struct scan *scan, const struct scan_view *view,
			int plane, int tof_bin, double *scratch, float *ret_line)
{
	size_t n = (size_t)scan->n_v;
	double *ax = scratch, *ay = ax + n, *az = ay + n, *dx = az + n, *dy = dx + n, *dz = dy + n, *sum = dz + n;

	for (int v = 0; v < scan->n_v; v++) {
		double a[3], b[3];

		scan_ray(scan, view, plane, v, a, b);
		ax[v] = a[0], ay[v] = a[1], az[v] = a[2];
		dx[v] = b[0] - a[0], dy[v] = b[1] - a[1], dz[v] = b[2] - a[2];
		sum[v] = 0;
	}
	for (size_t k = 0; k < p->n; k++) {
		const struct body s = bodies[k];
		int first, end;

		find_shadow(&s, &p->shapes[k], scan, view, &first, &end);
		for (int v = first; v < end && tof_bin < 0; v++) {
			double a[3] = {ax[v], ay[v], az[v]}, d[3] = {dx[v], dy[v], dz[v]};

			sum[v] += s.mu * chord_length(&s, a, d);
		}
		for (int v = first; v < end && tof_bin >= 0; v++) {
			double a[3] = {ax[v], ay[v], az[v]}, d[3] = {dx[v], dy[v], dz[v]};

			sum[v] += s.mu * chord_weighted(&s, &scan->tof, tof_bin, a, d);
		}
	}
	/* For a bin without a ray the distance from a to b is 0. Where a shape with a negative value cancels another, rounding
	 * can leave -1e-13; it is replaced by 0. */
	for (int v = 0; v < scan->n_v; v++)
		ret_line[v] = (float)(larger_of(0, sum[v]) * sqrt(dx[v] * dx[v] + dy[v] * dy[v] + dz[v] * dz[v]));
}

int pet_phantom_project(const struct phantom *p, const struct scan *scan, const int *planes, int n, int tof_bin, float *ret_line,
			struct err *err)
{
	struct body bodies[SHAPES_MAX];
	size_t n_rows = (size_t)n * (size_t)scan->n_views, n_v = (size_t)scan->n_v, n_views = (size_t)scan->n_views;
	int without = 0;

	if (scan->kind != SCAN_PARALLEL)
		return err_set(err, EINVAL, "PET phantom: rays of scan kind %d are not parallel", (int)scan->kind);
	for (int i = 0; i < n; i++)
		if (planes[i] < 0 || planes[i] >= scan->n_u)
			return err_set(err, EINVAL, "PET phantom: plane %d does not exist; the scan has %d planes", planes[i],
				       scan->n_u);
	if (tof_bin >= 0 && tof_bin >= scan->tof.n)
		return err_set(err, EINVAL, "PET phantom: TOF bin %d does not exist; the scan has %d", tof_bin, scan->tof.n);
	if (p->n > SHAPES_MAX)
		return err_set(err, EINVAL, "PET phantom: %zu shapes; allowed: at most %d", p->n, SHAPES_MAX);
	for (size_t k = 0; k < p->n; k++) {
		if (p->shapes[k].kind != SHAPE_CYLINDER_Z && p->shapes[k].kind != SHAPE_ELLIPSOID)
			return err_set(err, EINVAL, "PET phantom: shape %zu is of kind %d", k, (int)p->shapes[k].kind);
		body_set(&p->shapes[k], &bodies[k]);
	}
#pragma omp parallel reduction(+ : without)
	{
		double *scratch = malloc(7 * n_v * sizeof(*scratch));

		without += !scratch;
#pragma omp for schedule(dynamic, 16)
		for (size_t i = 0; i < n_rows; i++)
			if (scratch)
				project_row(p, bodies, scan, &scan->views[i % n_views], planes[i / n_views], tof_bin, scratch,
					    ret_line + i * n_v);
		free(scratch);
	}
	if (without)
		return err_set(err, ENOMEM, "PET phantom: no memory for %d radial bins", scan->n_v);
	return 0;
}

int pet_phantom_noise(float *counts, size_t n, size_t first, uint64_t seed, struct err *err)
{
	size_t bad = SIZE_MAX;

#pragma omp parallel for schedule(dynamic, 4096) reduction(min : bad)
	for (size_t i = 0; i < n; i++) {
		if (!(counts[i] >= 0))
			bad = i < bad ? i : bad;
		else
			counts[i] = (float)poisson_draw(counts[i], poisson_stream(seed, first + i));
	}
	if (bad != SIZE_MAX)
		return err_set(err, EINVAL, "PET phantom: %g expected counts in bin %zu", (double)counts[bad], first + bad);
	return 0;
}
