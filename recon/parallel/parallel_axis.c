/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_axis.c - do the data agree with the axis of rotation?
 *
 * The sum of a view is the mass of the object, the same in all views, and its centre is the projection of the centre of mass: the
 * first two consistency conditions (Helgason 1965; Ludwig 1966; Natterer, The Mathematics of Computerized Tomography, II.4). So
 * the centres of all views are x cos + y sin + e, where e is how far the real axis is from that of the header. */
#include <math.h>
#include <stdlib.h>

#include "recon/parallel/parallel.h"

#define MASS_SPREAD 0.02 /* relative standard deviation of the masses of the views: with more the object leaves the field */
#define ANGLES_LEAST 8

struct view_mass {
	double mass, centre, u[2]; /* u: cos and sin */
};

static struct view_mass mass_of(const struct parallel_scan *s, const float *lines, int a)
{
	double angle = parallel_angle(s, a) * M_PI / 180, mass = 0, moment = 0;

	for (int k = 0; k < s->n_slices; k++) {
		const float *line = lines + ((size_t)k * (size_t)s->n_angles + (size_t)a) * (size_t)s->n_radial;

		for (int t = 0; t < s->n_radial; t++) {
			mass += (double)line[t];
			moment += (double)line[t] * parallel_radius(s, t);
		}
	}
	return (struct view_mass){mass, moment / mass, {cos(angle), sin(angle)}};
}

static struct view_mass mean_of(const struct view_mass *v, int n)
{
	struct view_mass m = {0};

	for (int a = 0; a < n; a++) {
		m.mass += v[a].mass / n;
		m.centre += v[a].centre / n;
		m.u[0] += v[a].u[0] / n;
		m.u[1] += v[a].u[1] / n;
	}
	return m;
}

/* Fit centre = x cos + y sin + e by least squares. False: the angles are too near each other. */
static bool fit(const struct view_mass *v, int n, const struct view_mass *m, struct parallel_axis *ret)
{
	double s[3] = {0}, b[2] = {0}, xy[2], det, rest = 0, c, d;

	for (int a = 0; a < n; a++) {
		c = v[a].u[0] - m->u[0];
		d = v[a].u[1] - m->u[1];

		s[0] += c * c;
		s[1] += c * d;
		s[2] += d * d;
		b[0] += c * (v[a].centre - m->centre);
		b[1] += d * (v[a].centre - m->centre);
	}
	det = s[0] * s[2] - s[1] * s[1];
	if (!(det > 1e-9 * n * n))
		return false;
	xy[0] = (s[2] * b[0] - s[1] * b[1]) / det;
	xy[1] = (s[0] * b[1] - s[1] * b[0]) / det;
	c = m->u[0];
	d = m->u[1];
	ret->error = m->centre - xy[0] * c - xy[1] * d;
	for (int a = 0; a < n; a++)
		rest += pow(v[a].centre - xy[0] * v[a].u[0] - xy[1] * v[a].u[1] - ret->error, 2);
	ret->sigma = sqrt(rest / (n - 3) * (1.0 / n + (s[2] * c * c - 2 * s[1] * c * d + s[0] * d * d) / det));
	return true;
}

bool parallel_axis_of(const struct parallel_scan *s, const float *lines, struct parallel_axis *ret)
{
	struct view_mass *v = s->n_angles >= ANGLES_LEAST ? calloc((size_t)s->n_angles, sizeof(*v)) : NULL;
	struct view_mass m;
	double spread = 0;
	bool known;

	if (!v)
		return false;
#pragma omp parallel for schedule(static)
	for (int a = 0; a < s->n_angles; a++)
		v[a] = mass_of(s, lines, a);
	m = mean_of(v, s->n_angles);
	for (int a = 0; a < s->n_angles; a++)
		spread += (v[a].mass - m.mass) * (v[a].mass - m.mass) / s->n_angles;
	known = m.mass > 0 && sqrt(spread) <= MASS_SPREAD * m.mass && fit(v, s->n_angles, &m, ret); /* false for NaN, too */
	free(v);
	return known;
}
