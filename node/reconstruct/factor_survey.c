/* SPDX-License-Identifier: Apache-2.0 */
#include "node/reconstruct/factor_survey.h"

#include <errno.h>
#include <math.h>

#include "node/base/plural.h"
#include "node/sinogram/sinogram.h"

/* Efficiencies are relative to a mean of 1: a fraction of the events is less than this, or the factors are upside down. */
#define FRACTION_MOST 2
/* A plane whose values begin above 1 begins at more than this. */
#define FRACTION_FROM 1.01f
/* Noise makes down and up alike, objects that attenuate only up. */
#define DOWN_MOST 2
/* In a single plane down may exceed this by chance, or by a drift of the transmission source, if the factors are nearly 1. */
#define PLANE_MARGIN 0.03 /* for each value */
#define PLANE_LEAST 100	  /* values */
/* Noise of a usable transmission scan makes no factor this small. */
#define ATTENUATION_FLOOR 0.3f

void factor_survey_begin(struct factor_survey *s)
{
	*s = (struct factor_survey){.least = INFINITY};
}

void factor_survey_add(struct factor_survey *s, size_t plane, const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float v = values[i];

		s->most = v > s->most ? v : s->most;
		if (v > 0 && v < s->least) {
			s->least = v;
			s->plane = plane;
			s->bin = i;
		}
		if (v > 1)
			s->up += (double)v - 1;
		s->above += v > FACTOR_SURVEY_WATER;
		if (!(v > 0 && v < 1))
			continue;
		s->down += 1 / (double)v - 1;
		s->below += v < FACTOR_SURVEY_LEAST;
	}
	s->n += n;
}

void factor_survey_end_plane(struct factor_survey *s, const struct michelogram *m, size_t plane)
{
	int pairs = michelogram_bin_pairs(m, plane);

	s->planes = s->n > 0;
	if (s->n >= PLANE_LEAST && s->down > DOWN_MOST * s->up + PLANE_MARGIN * (double)s->n) {
		s->low = 1;
		s->first_low = plane;
	}
	s->shared = pairs > 1 && isfinite(s->least);
	s->from_1 = s->shared && s->least <= FRACTION_FROM;
	s->per_pair = s->most / (float)pairs;
	s->per_pair_most = s->most;
	s->per_pair_plane = plane;
	s->per_pair_pairs = pairs;
}

void factor_survey_join(struct factor_survey *s, const struct factor_survey *other)
{
	if (other->least < s->least) {
		s->least = other->least;
		s->plane = other->plane;
		s->bin = other->bin;
	}
	s->most = fmaxf(s->most, other->most);
	s->up += other->up;
	s->down += other->down;
	s->n += other->n;
	s->below += other->below;
	s->above += other->above;
	s->planes += other->planes;
	s->first_low = s->low ? s->first_low : other->first_low;
	s->low += other->low;
	s->shared += other->shared;
	s->from_1 += other->from_1;
	if (other->per_pair > s->per_pair) {
		s->per_pair = other->per_pair;
		s->per_pair_most = other->per_pair_most;
		s->per_pair_plane = other->per_pair_plane;
		s->per_pair_pairs = other->per_pair_pairs;
	}
}

int factor_survey_attenuation(const struct factor_survey *s, const struct michelogram *m, struct err *err)
{
	const char *role = sinogram_role_name(SINOGRAM_ATTENUATION);
	int angle = (int)s->bin / m->n_radial, radial = (int)s->bin % m->n_radial;

	if (s->below > 0 && s->down > DOWN_MOST * s->up)
		return err_set(err, EBADMSG,
			       "%s: %zu of %zu values are below %g, the least %g, and too few above 1 to be noise: attenuation "
			       "correction factors are 1 or more, and these look like the fraction that survives: give 1 / "
			       "value, or --multiplicative if efficiencies are in it or not needed",
			       role, s->below, s->n, (double)FACTOR_SURVEY_LEAST, (double)s->least);
	if (s->low > 0)
		return err_set(
			err, EBADMSG,
			"%s: %zu of %zu planes, the first of them plane %zu, are below 1 as a whole; the least value, of plane "
			"%zu, angle %d, radial bin %d: %g: attenuation correction factors are 1 or more, and these planes look "
			"like the fraction that survives: give 1 / value in all planes",
			role, s->low, s->planes, s->first_low, s->plane, angle, radial, (double)s->least);
	if (s->least < ATTENUATION_FLOOR)
		return err_set(err, EBADMSG,
			       "%s: plane %zu, angle %d, radial bin %d: %g; allowed: at least %g, because attenuation correction "
			       "factors are 1 or more, and only a little less by noise",
			       role, s->plane, angle, radial, (double)s->least, (double)ATTENUATION_FLOOR);
	return 0;
}

int factor_survey_fraction(const struct factor_survey *s, struct err *err)
{
	bool follows = 2 * s->from_1 <= s->shared;

	if (!isfinite(s->least) || s->least < 1 || !((follows ? s->per_pair : s->most) > FRACTION_MOST))
		return 0;
	return err_set(
		err, EBADMSG,
		"%s: values from %g to %g, in plane %zu, with %d pair%s of detectors in a bin, up to %g; allowed: the fraction "
		"of events that is counted, below 1 somewhere or at most %d%s: these look like correction factors: give 1 / "
		"value, or the file as --attenuation or --normalisation",
		sinogram_role_name(SINOGRAM_MULTIPLICATIVE), (double)s->least, (double)s->most, s->per_pair_plane,
		s->per_pair_pairs, plural((size_t)s->per_pair_pairs), (double)s->per_pair_most, FRACTION_MOST,
		follows ? " for each pair" : ", because the values do not follow the pairs");
}
