/* SPDX-License-Identifier: Apache-2.0 */
/* additive_sense.c - compare how background and factors change from radial bin to radial bin.
 *
 * Of three neighbouring bins of a view, D(v) = ln v - (ln v before + ln v behind) / 2. Least squares give D(b) = k D(1 / m'), m'
 * being the factors without NORMALISATION, those of the object, beside a term for NORMALISATION: k = 0 if b are expected counts,
 * which are smooth where the object ends (randoms, scatter) but for the efficiencies of the detectors; 1 if they were divided by
 * m; -1 if they were multiplied by m once too often.
 *
 * Without factors of the object only the exponent of NORMALISATION is there: -1 of counts of real detectors, 0 of these divided
 * by m or of a background that does not follow the detectors, 1 of such a background that was divided by m. */
#include "node/reconstruct/additive_sense.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/reconstruct/direct_sample.h"
#include "node/sinogram/sinogram.h"

#define PLANES_MOST 8
#define STEP_MOST 1.0	 /* of D: beyond are gaps */
#define ROUGH_LEAST 2e-3 /* root mean square of D of factors */
#define NEAR 0.25	 /* to an exponent */
#define ERRORS 8	 /* standard errors */
#define ERROR_MOST 0.05	 /* standard error of an exponent that says something */

struct additive_sense {
	const struct michelogram *m;
	struct direct_sample planes;
	float *factors, *normalisation, *background; /* [planes.n][angle][radial]; 0: not given */
};

size_t additive_sense_bytes(const struct michelogram *m)
{
	return sizeof(struct additive_sense) + 3 * PLANES_MOST * michelogram_plane_bins(m) * sizeof(float);
}

int additive_sense_create(const struct michelogram *m, struct additive_sense **ret, struct err *err)
{
	struct additive_sense *s = calloc(1, sizeof(*s));

	*ret = NULL;
	if (!s)
		return err_set(err, ENOMEM, "no memory to compare ADDITIVE with the factors");
	s->m = m;
	s->planes = direct_sample_of(m, PLANES_MOST);
	s->factors = calloc(3 * s->planes.n * michelogram_plane_bins(m), sizeof(float));
	if (!s->factors) {
		free(s);
		return err_set(err, ENOMEM, "no memory to compare the planes of ADDITIVE with the factors");
	}
	s->normalisation = s->factors + s->planes.n * michelogram_plane_bins(m);
	s->background = s->normalisation + s->planes.n * michelogram_plane_bins(m);
	*ret = s;
	return 0;
}

void additive_sense_free(struct additive_sense *s)
{
	if (s)
		free(s->factors);
	free(s);
}

static void add_plane(const struct additive_sense *s, float *to, size_t plane, const float *values)
{
	size_t k = direct_sample_find(&s->planes, plane), bins = michelogram_plane_bins(s->m);

	for (size_t i = 0; k < s->planes.n && i < bins; i++)
		to[k * bins + i] += values[i];
}

void additive_sense_normalisation(struct additive_sense *s, size_t plane, const float *values)
{
	if (s)
		add_plane(s, s->normalisation, plane, values);
}

void additive_sense_factors(struct additive_sense *s, size_t plane, const float *m)
{
	if (s)
		add_plane(s, s->factors, plane, m);
}

void additive_sense_background(struct additive_sense *s, size_t plane, const float *b)
{
	if (s)
		add_plane(s, s->background, plane, b);
}

/* Compute D of three values; NAN: one of them has no logarithm. */
static double step_of(const float *v)
{
	if (!(v[0] > 0 && v[1] > 0 && v[2] > 0 && isfinite(v[0]) && isfinite(v[1]) && isfinite(v[2])))
		return NAN;
	return 0.5 * (log((double)v[1] / (double)v[0]) + log((double)v[1] / (double)v[2]));
}

/* Sums over all bins: o of the object's factors, d of the detectors', b of the background. */
struct sums {
	double oo, dd, od, ob, db, bb, n;
};

static struct sums sum_steps(const struct additive_sense *s)
{
	size_t n_radial = (size_t)s->m->n_radial, rows = s->planes.n * (size_t)s->m->n_angles;
	struct sums sum = {0};

	for (size_t i = 0; i < rows * n_radial; i++) {
		double all, d, b, o;

		if (i % n_radial + 2 >= n_radial)
			continue;
		all = -step_of(s->factors + i);
		d = s->normalisation[i] != 0 ? step_of(s->normalisation + i) : 0;
		b = step_of(s->background + i);
		o = all - d;
		if (!(fabs(o) <= STEP_MOST && fabs(d) <= STEP_MOST && fabs(b) <= 2 * STEP_MOST))
			continue;
		sum.oo += o * o;
		sum.dd += d * d;
		sum.od += o * d;
		sum.ob += o * b;
		sum.db += d * b;
		sum.bb += b * b;
		sum.n++;
	}
	return sum;
}

struct exponent {
	double value, error; /* NAN: the factors say nothing */
	bool of_object;	     /* else of NORMALISATION */
};

static struct exponent find_exponent(const struct sums *s)
{
	struct exponent e = {NAN, NAN, s->oo > ROUGH_LEAST * ROUGH_LEAST * s->n};
	bool detectors = s->dd > ROUGH_LEAST * ROUGH_LEAST * s->n;
	double det = s->oo * s->dd - s->od * s->od, left, other = 0;

	if (!(s->n > 2) || !(e.of_object || detectors))
		return e;
	if (e.of_object && detectors) {
		if (!(det > 1e-3 * s->oo * s->dd))
			return e;
		e.value = (s->ob * s->dd - s->db * s->od) / det;
		other = (s->db * s->oo - s->ob * s->od) / det;
		left = s->bb - e.value * s->ob - other * s->db;
		e.error = sqrt(fmax(left, 0) / s->n * s->dd / det);
		return e;
	}
	e.value = e.of_object ? s->ob / s->oo : s->db / s->dd;
	left = s->bb - e.value * (e.of_object ? s->ob : s->db);
	e.error = sqrt(fmax(left, 0) / s->n / (e.of_object ? s->oo : s->dd));
	return e;
}

int additive_sense_check(const struct additive_sense *s, bool multiplied, char *ret_sentence, struct err *err)
{
	struct sums sums = sum_steps(s);
	struct exponent e = find_exponent(&sums);
	/* of what was given; without factors of the object the background of real detectors is in proportion to 1 / NORMALISATION
	 */
	double given = e.value + multiplied;
	const char *of = e.of_object ? "the factors of the object, 1 / m" : "NORMALISATION";

	ret_sentence[0] = '\0';
	if (isnan(e.value) || !(e.error <= ERROR_MOST))
		return 0;
	if (!multiplied && fabs(given - 1) <= NEAR && given > ERRORS * e.error)
		return err_set(err, EBADMSG,
			       "%s: its values follow %s, from bin to bin (exponent %.2f, standard error %.2g; 0 is expected of "
			       "counts): they look like b / m, the additive sinogram of STIR and SIRF: write \"applied "
			       "corrections := {attenuation, normalisation}\" into its header (with what is there), or multiply "
			       "them by m",
			       sinogram_role_name(SINOGRAM_ADDITIVE), of, given, e.error);
	if (multiplied && fabs(given - (e.of_object ? 0 : -1)) <= NEAR && 1 - given > ERRORS * e.error)
		return err_set(
			err, EBADMSG,
			"%s: its header lists attenuation and normalisation as applied corrections, as of b / m, but its "
			"values do not follow %s (exponent %.2f, standard error %.2g; 1 is expected): they look like counts "
			"b: remove both words from its header",
			sinogram_role_name(SINOGRAM_ADDITIVE), of, given, e.error);
	if (e.of_object ? fabs(e.value) > NEAR : !multiplied && fabs(given) <= NEAR)
		snprintf(ret_sentence, ADDITIVE_SENSE_TEXT,
			 "ADDITIVE: whether its values are counts b or b / m (STIR, SIRF) is doubtful: from bin to bin they have "
			 "the exponent %.2f (standard error %.2g) of %s; of %s it is %s. They were taken as %s.",
			 given, e.error, of, e.of_object ? "b" : "counts of real detectors", e.of_object ? "0, of b / m 1" : "-1",
			 multiplied ? "b / m" : "b");
	return 0;
}
