/* SPDX-License-Identifier: Apache-2.0 */
/* scanner.c - crystals, bins, rays, Interfile. */
#include "tests/pet_mc/scanner.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scanner of the head that has a body in it: the phantom of 180 mm is within its 24 rings of 8 mm. */
static const struct mc_scanner small = {.rings = 24,
					.columns = 384,
					.n_radial = 209,
					.difference = 10,
					.radius = 300,
					.ring_spacing = 8,
					.kev_low = 435,
					.kev_high = 650,
					.resolution = 0.12};
/* Siemens Biograph mMR: crystals at 328 mm, interaction 6.7 mm in them; gaps are crystals without efficiency. */
static const struct mc_scanner mmr = {.rings = 64,
				      .columns = 504,
				      .n_radial = 344,
				      .difference = 60,
				      .radius = 334.7,
				      .ring_spacing = 4.0625,
				      .kev_low = 430,
				      .kev_high = 610,
				      .resolution = 0.145};

static void add_segment(struct mc_scanner *s, int lo, int hi)
{
	int least = lo > 0 ? lo : hi < 0 ? -hi : 0, planes = 2 * (s->rings - least) - 1;

	for (int d = lo; d <= hi; d++)
		s->base[d + s->rings - 1] = s->n_planes - least;
	s->segment[s->n_segments][0] = lo;
	s->segment[s->n_segments][1] = hi;
	s->segment[s->n_segments++][2] = planes;
	s->n_planes += planes;
}

/* Copy a scanner without its crystals' efficiencies. -1: no memory for them. */
static int copy_scanner(struct mc_scanner *s, const struct mc_scanner *of)
{
	*s = *of;
	s->efficiency = malloc((size_t)s->rings * (size_t)s->columns * sizeof(*s->efficiency));
	return s->efficiency ? 0 : -1;
}

int mc_scanner_init(struct mc_scanner *s, double spread, uint64_t seed)
{
	struct rng g = rng_stream(seed, UINT64_MAX);

	if (copy_scanner(s, &small) < 0)
		return -1;
	s->n_angles = s->columns / 2 / SCANNER_MASH;
	for (int d = 0; d < 2 * s->rings - 1; d++)
		s->base[d] = INT_MIN;
	add_segment(s, -(SCANNER_SPAN / 2), SCANNER_SPAN / 2);
	for (int lo = SCANNER_SPAN / 2 + 1; lo + SCANNER_SPAN - 1 <= s->difference; lo += SCANNER_SPAN) {
		add_segment(s, lo, lo + SCANNER_SPAN - 1);
		add_segment(s, -(lo + SCANNER_SPAN - 1), -lo);
	}
	for (int i = 0; i < s->rings * s->columns; i++)
		s->efficiency[i] = (1 + spread * (2 * rng_uniform(&g) - 1)) / (1 + spread);
	return 0;
}

int mc_scanner_mmr(struct mc_scanner *s, const char *efficiencies)
{
	FILE *f = fopen(efficiencies, "rb");
	bool ok = f && copy_scanner(s, &mmr) == 0;
	float value;

	for (int i = 0; ok && i < s->rings * s->columns; i++) {
		ok = fread(&value, sizeof(value), 1, f) == 1 && value >= 0 && value <= 1;
		s->efficiency[i] = value;
	}
	if (f)
		fclose(f);
	return ok ? 0 : -1;
}

void mc_scanner_free(struct mc_scanner *s)
{
	free(s->efficiency);
	s->efficiency = NULL;
}

size_t mc_scanner_bins(const struct mc_scanner *s)
{
	return (size_t)s->n_planes * (size_t)s->n_angles * (size_t)s->n_radial;
}

long mc_scanner_bin(const struct mc_scanner *s, int p, int q)
{
	int n = s->columns, a = p % n, b = q % n, ring_a = p / n, ring_b = q / n;
	int t = n / 2 - (a - b + n) % n, view = (2 * b + (a - b + n) % n + 1) / 2 % n; /* of the order a, b */

	if (a == b)
		return -1;
	if (view >= n / 2) { /* the other order has the view that is half a turn less */
		int ring = ring_a;

		ring_a = ring_b;
		ring_b = ring;
		view -= n / 2;
		t = -t;
	}
	t += s->n_radial / 2;
	if (t < 0 || t >= s->n_radial || s->base[ring_a - ring_b + s->rings - 1] == INT_MIN)
		return -1;
	return ((long)(s->base[ring_a - ring_b + s->rings - 1] + ring_a + ring_b) * s->n_angles + view / SCANNER_MASH) *
		       s->n_radial +
	       t;
}

static double deviation(const struct mc_scanner *s, double kev)
{
	return s->resolution * sqrt(ELECTRON_KEV * kev) / 2.354820045;
}

double mc_scanner_window(const struct mc_scanner *s, double kev)
{
	double u = deviation(s, kev) * sqrt(2);

	return 0.5 * (erf((s->kev_high - kev) / u) - erf((s->kev_low - kev) / u));
}

int mc_scanner_find(const struct mc_scanner *s, const struct photon *f, struct rng *g)
{
	double dd = f->d[0] * f->d[0] + f->d[1] * f->d[1], da = f->d[0] * f->at[0] + f->d[1] * f->at[1];
	double rr = s->radius * s->radius - f->at[0] * f->at[0] - f->at[1] * f->at[1];
	double t = dd > 0 ? (sqrt(da * da + dd * rr) - da) / dd : INFINITY, z = f->at[2] + t * f->d[2], kev, angle;
	int ring, column;

	z = z / s->ring_spacing + 0.5 * s->rings;
	if (!(z >= 0 && z < s->rings))
		return -1;
	ring = (int)z;
	angle = atan2(f->at[1] + t * f->d[1], f->at[0] + t * f->d[0]) / (2 * M_PI) * s->columns;
	column = (int)floor(angle + 0.5);
	column = (column + s->columns) % s->columns;
	if (rng_uniform(g) >= s->efficiency[ring * s->columns + column])
		return -1;
	kev = f->kev + deviation(s, f->kev) * rng_normal(g);
	return kev >= s->kev_low && kev < s->kev_high ? ring * s->columns + column : -1;
}

double mc_scanner_share(const struct mc_scanner *s, int p, int q)
{
	int n = s->columns;
	double step = 2 * M_PI / n, half = 0.5 * step * ((p - q) % n), z = (p / n - q / n) * s->ring_spacing;
	double chord = 2 * s->radius * sin(half), rr = chord * chord + z * z; /* of the centres */
	double surface = s->radius * step * s->ring_spacing;
	double cosine = fabs(chord * sin(half)) / sqrt(rr); /* the normals are radial: the same at both ends */

	return surface * surface * cosine * cosine / rr / (2 * M_PI) * s->efficiency[p] * s->efficiency[q];
}

void mc_scanner_ray(const struct mc_scanner *s, size_t bin, double ret_first[3], double ret_second[3])
{
	int t = (int)(bin % (size_t)s->n_radial) - s->n_radial / 2,
	    angle = (int)(bin / (size_t)s->n_radial % (size_t)s->n_angles);
	int plane = (int)(bin / (size_t)s->n_radial / (size_t)s->n_angles), k = 0, least, sum, lo, hi;
	double phi = (angle * SCANNER_MASH + 0.5 * (SCANNER_MASH - 1)) * 2 * M_PI / s->columns;
	double r = s->radius * sin(t * M_PI / s->columns), w = sqrt(s->radius * s->radius - r * r), z, rise;

	while (plane >= s->segment[k][2])
		plane -= s->segment[k++][2];
	lo = s->segment[k][0];
	hi = s->segment[k][1];
	least = lo > 0 ? lo : hi < 0 ? -hi : 0;
	sum = plane + least;
	lo += (lo ^ sum) & 1; /* the mean of the differences with the parity of the sum */
	hi -= (hi ^ sum) & 1;
	z = 0.5 * (sum - (s->rings - 1)) * s->ring_spacing;
	rise = 0.25 * (lo + hi) * s->ring_spacing;
	ret_first[0] = r * cos(phi) - w * sin(phi);
	ret_first[1] = r * sin(phi) + w * cos(phi);
	ret_first[2] = z + rise;
	ret_second[0] = r * cos(phi) + w * sin(phi);
	ret_second[1] = r * sin(phi) - w * cos(phi);
	ret_second[2] = z - rise;
}

static void write_list(FILE *f, const char *key, const struct mc_scanner *s, int which)
{
	fprintf(f, "%s := {", key);
	for (int i = 0; i < s->n_segments; i++)
		fprintf(f, "%s%d", i ? "," : "", which == 2 ? s->segment[i][2] : -s->segment[i][1 - which]);
	fprintf(f, "}\n");
}

static int write_header(const struct mc_scanner *s, const char *path, const char *name, bool whole)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fprintf(f,
		"!INTERFILE :=\nname of data file := %s.s\nimagedata byte order := LITTLEENDIAN\n!type of data := PET\n"
		"!PET data type := Emission\n!number format := %s\n!number of bytes per pixel := %d\nnumber of dimensions := 4\n"
		"matrix axis label [4] := segment\n!matrix size [4] := %d\nmatrix axis label [3] := axial coordinate\n",
		name, whole ? "unsigned integer" : "float", whole ? 2 : 4, s->n_segments);
	write_list(f, "!matrix size [3]", s, 2);
	fprintf(f,
		"matrix axis label [2] := view\n!matrix size [2] := %d\nmatrix axis label [1] := tangential coordinate\n"
		"!matrix size [1] := %d\n",
		s->n_angles, s->n_radial);
	write_list(f, "minimum ring difference per segment", s, 0);
	write_list(f, "maximum ring difference per segment", s, 1);
	fprintf(f,
		"Number of rings := %d\nNumber of detectors per ring := %d\nInner ring diameter (cm) := %g\n"
		"Average depth of interaction (cm) := 0\nDistance between rings (cm) := %g\nDefault bin size (cm) := %.9g\n"
		"View offset (degrees) := %.9g\nMaximum number of non-arc-corrected bins := %d\n"
		"Energy resolution := %g\nReference energy (in keV) := 511\nnumber of energy windows := 1\n"
		"energy window lower level[1] := %g\nenergy window upper level[1] := %g\nnumber of time frames := 1\n"
		"!END OF INTERFILE :=\n",
		s->rings, s->columns, 2 * s->radius / 10, s->ring_spacing / 10, s->radius * M_PI / s->columns / 10,
		0.5 * (SCANNER_MASH - 1) * 360 / s->columns, s->n_radial, s->resolution, s->kev_low, s->kev_high);
	return fclose(f) ? -1 : 0;
}

int mc_scanner_write(const struct mc_scanner *s, const char *folder, const char *name, const unsigned *counts,
		     const float *values)
{
	size_t bins = (size_t)s->n_angles * (size_t)s->n_radial, size = counts ? sizeof(uint16_t) : sizeof(float);
	char path[4096];
	bool ok = true;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.hs", folder, name);
	if (write_header(s, path, name, counts) < 0)
		return -1;
	path[strlen(path) - 2] = 's', path[strlen(path) - 1] = '\0';
	f = fopen(path, "wb");
	if (!f)
		return -1;
	for (int i = 0, first = 0; i < s->n_segments; first += s->segment[i++][2])
		for (int plane = s->segment[i][2] - 1; ok && plane >= 0; plane--) /* rings from the depth of the gantry */
			for (size_t k = 0, at = (size_t)(first + plane) * bins; ok && k < bins; k++, at++) {
				uint16_t count = counts ? (uint16_t)counts[at] : 0;

				ok = (!counts || counts[at] <= UINT16_MAX) &&
				     fwrite(counts ? (const void *)&count : &values[at], size, 1, f) == 1;
			}
	return fclose(f) || !ok ? -1 : 0;
}
