/* SPDX-License-Identifier: Apache-2.0 */
/* cylinder.c - fit rings and angles to positions.
 *
 * The number of rings (of crystals) is the smallest one for which all positions are near multiples of the distance. A multiple of
 * the true distance cannot fit: half of the positions would be half of it away, which is more than a quarter. A small part of
 * the true distance fits nearly everything: at least half of the rings, and of the crystals, must have a detector. */
#include "recon/pet/cylinder.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"

#define CRYSTALS_MIN 4
#define PHASE_ERROR 1e-3 /* of the distance of two crystals: a scanner that starts at the negative y axis has crystal 0 there */

struct polar {
	double radius, angle, z; /* angle: in turns, 0 to 1, from the negative y axis */
};

static double limit_of(double tolerance, double distance)
{
	return tolerance < distance / 4 ? tolerance : distance / 4;
}

static void convert_positions(const float (*position)[3], size_t n, struct polar *ret)
{
	for (size_t i = 0; i < n; i++) {
		double x = (double)position[i][0], y = (double)position[i][1], turns = (atan2(y, x) + M_PI / 2) / (2 * M_PI);

		ret[i] = (struct polar){hypot(x, y), turns - floor(turns), (double)position[i][2]};
	}
}

static int check_radius(const struct polar *p, size_t n, double tolerance, double *ret_radius, struct err *err)
{
	double sum = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += p[i].radius;
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		if (!(fabs(p[i].radius - mean) <= tolerance))
			return err_set(
				err, ENOTSUP,
				"the detectors are not on one cylinder around the z axis: number %zu is at a radius of %.2f mm, "
				"their mean is %.2f mm",
				i, p[i].radius, mean);
	if (!(mean > 0))
		return err_set(err, ENOTSUP, "all detectors are on the z axis");
	*ret_radius = mean;
	return 0;
}

/* Compute the smallest and the largest distance of neighbouring values, without those below `same`; values are sorted. turn: also
 * from the last one to the first, this far on; 0: not. */
static void find_spacings(double *values, size_t n, double same, double turn, double *ret_least, double *ret_most)
{
	*ret_least = INFINITY;
	*ret_most = 0;
	qsort(values, n, sizeof(*values), order_doubles);
	for (size_t i = 1; i < n + (turn > 0); i++) {
		double d = (i < n ? values[i] : values[0] + turn) - values[i - 1];

		if (d < same)
			continue;
		*ret_least = d < *ret_least ? d : *ret_least;
		*ret_most = d > *ret_most ? d : *ret_most;
	}
}

/* ---- rings ---- */

static bool rings_fit(const struct polar *p, size_t n, double first, double spacing, int rings, double tolerance)
{
	bool used[MICHELOGRAM_RINGS_MAX] = {false};
	double most = limit_of(tolerance, spacing);
	int n_used = 0;

	for (size_t i = 0; i < n; i++) {
		double at = (p[i].z - first) / spacing;
		int ring = (int)lround(at);

		if (fabs(at - ring) * spacing > most)
			return false;
		n_used += !used[ring];
		used[ring] = true;
	}
	return 2 * n_used >= rings;
}

static int find_rings(const struct polar *p, size_t n, double tolerance, double *z, struct pet_cylinder *c, struct err *err)
{
	double first = p[0].z, last = p[0].z, least, most;

	for (size_t i = 0; i < n; i++) {
		first = p[i].z < first ? p[i].z : first;
		last = p[i].z > last ? p[i].z : last;
		z[i] = p[i].z;
	}
	c->centre = (first + last) / 2;
	c->scanner.rings = 1;
	if (last - first <= tolerance)
		return 0;
	for (int rings = 2; rings <= MICHELOGRAM_RINGS_MAX; rings++) {
		c->scanner.rings = rings;
		c->scanner.ring_spacing = (last - first) / (rings - 1);
		if (rings_fit(p, n, first, c->scanner.ring_spacing, rings, tolerance))
			return 0;
	}
	find_spacings(z, n, 1e-3, 0, &least, &most);
	return err_set(
		err, ENOTSUP,
		"the rings of detectors are not at equal distances: neighbours are %.2f to %.2f mm apart along z, over %.1f mm",
		least, most, last - first);
}

/* ---- crystals ---- */

/* Return the position of crystal 0 in turns of `crystals` crystals, -0.5 to 0.5: the mean of all detectors. */
static double phase_of(const struct polar *p, size_t n, int crystals)
{
	double c = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		c += cos(2 * M_PI * crystals * p[i].angle);
		s += sin(2 * M_PI * crystals * p[i].angle);
	}
	return atan2(s, c) / (2 * M_PI);
}

static bool crystals_fit(const struct polar *p, size_t n, int crystals, double radius, double tolerance, double *ret_phase)
{
	double distance = 2 * M_PI * radius / crystals, most = limit_of(tolerance, distance), phase;
	bool used[CYLINDER_CRYSTALS_MAX] = {false};
	int n_used = 0;

	for (size_t i = 1; i < n; i++) { /* compared with detector 0, both may deviate */
		double at = (p[i].angle - p[0].angle) * crystals;

		if (fabs(at - round(at)) * distance > 2 * most)
			return false;
	}
	phase = phase_of(p, n, crystals);
	for (size_t i = 0; i < n; i++) {
		double at = p[i].angle * crystals - phase;
		int crystal = ((int)lround(at) + crystals) % crystals;

		if (fabs(at - round(at)) * distance > most)
			return false;
		n_used += !used[crystal];
		used[crystal] = true;
	}
	*ret_phase = phase;
	return 2 * n_used >= crystals;
}

static int find_crystals(const struct polar *p, size_t n, double tolerance, double *arc, struct pet_cylinder *c, struct err *err)
{
	double phase = 0, radius = c->scanner.radius, least, most;
	int crystals = CRYSTALS_MIN;

	while (crystals <= CYLINDER_CRYSTALS_MAX && !crystals_fit(p, n, crystals, radius, tolerance, &phase))
		crystals += 2; /* a sinogram needs an even number */
	if (crystals <= CYLINDER_CRYSTALS_MAX) {
		phase += phase < -PHASE_ERROR ? 1 : 0;
		c->scanner.detectors = crystals;
		c->scanner.bin = 2 * M_PI * radius / crystals;
		c->angle_offset = phase * 360 / crystals;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		arc[i] = p[i].angle * 2 * M_PI * radius;
	find_spacings(arc, n, 1e-3, 2 * M_PI * radius, &least, &most);
	return err_set(
		err, ENOTSUP,
		"the detectors are not at equal angles, of an even number: neighbours are %.2f to %.2f mm apart on a circle of "
		"%.1f mm radius",
		least, most, radius);
}

/* ---- places ---- */

static double deviation_of(const struct pet_cylinder *c, const struct polar *p, double at)
{
	double arc = fabs(at - round(at)) * c->scanner.bin, radial = fabs(p->radius - c->scanner.radius);
	double ring = c->scanner.rings > 1 ? (p->z - c->centre) / c->scanner.ring_spacing + (c->scanner.rings - 1) / 2.0 : 0;
	double axial = fabs(ring - round(ring)) * c->scanner.ring_spacing;

	return fmax(fmax(arc, radial), axial);
}

static int place_detector(const struct polar *p, size_t i, struct pet_cylinder *c, struct err *err)
{
	int crystals = c->scanner.detectors, rings = c->scanner.rings, ring, crystal;
	double at = (p[i].angle - c->angle_offset / 360) * crystals, deviation = deviation_of(c, &p[i], at);
	int32_t *where;

	ring = rings > 1 ? (int)lround((p[i].z - c->centre) / c->scanner.ring_spacing + (rings - 1) / 2.0) : 0;
	crystal = (int)((lround(at) % crystals + crystals) % crystals);
	where = &c->detector[(size_t)ring * (size_t)crystals + (size_t)crystal];
	if (*where >= 0)
		return err_set(err, ENOTSUP, "detectors %d and %zu are at the same place of ring %d", (int)*where, i, ring);
	*where = (int32_t)i;
	c->place[i][0] = (uint16_t)ring;
	c->place[i][1] = (uint16_t)crystal;
	c->deviation = deviation > c->deviation ? deviation : c->deviation;
	return 0;
}

static int place_all(const struct polar *p, size_t n, struct pet_cylinder *c, struct err *err)
{
	size_t places = (size_t)c->scanner.rings * (size_t)c->scanner.detectors;
	int rc = 0;

	c->n = n;
	c->place = malloc(n * sizeof(*c->place));
	c->detector = malloc(places * sizeof(*c->detector));
	if (!c->place || !c->detector)
		return err_set(err, ENOMEM, "no memory for %zu detectors", n);
	memset(c->detector, 0xff, places * sizeof(*c->detector)); /* -1 */
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = place_detector(p, i, c, err);
	return rc;
}

int pet_cylinder_find(const float (*position)[3], size_t n, double tolerance, struct pet_cylinder *ret, struct err *err)
{
	struct pet_cylinder c = {0};
	struct polar *p;
	double *values;
	int rc;

	if (n < CRYSTALS_MIN || n > INT32_MAX || !(tolerance > 0))
		return err_set(err, ENOTSUP, "%zu detectors, and a tolerance of %g mm", n, tolerance);
	p = malloc(n * sizeof(*p));
	values = malloc(n * sizeof(*values));
	rc = p && values ? 0 : err_set(err, ENOMEM, "no memory for %zu detectors", n);
	if (rc == 0) {
		convert_positions(position, n, p);
		rc = check_radius(p, n, tolerance, &c.scanner.radius, err);
	}
	if (rc == 0)
		rc = find_rings(p, n, tolerance, values, &c, err);
	if (rc == 0)
		rc = find_crystals(p, n, tolerance, values, &c, err);
	if (rc == 0 && c.scanner.rings == 1)
		c.scanner.ring_spacing = c.scanner.bin;
	if (rc == 0)
		rc = place_all(p, n, &c, err);
	free(p);
	free(values);
	if (rc < 0)
		pet_cylinder_clear(&c);
	else
		*ret = c;
	return rc;
}

void pet_cylinder_clear(struct pet_cylinder *c)
{
	free(c->place);
	free(c->detector);
	*c = (struct pet_cylinder){0};
}
