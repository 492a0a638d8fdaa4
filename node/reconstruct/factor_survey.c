/* SPDX-License-Identifier: Apache-2.0 */
#include "node/reconstruct/factor_survey.h"

#include <errno.h>
#include <math.h>

#include "node/sinogram/sinogram.h"

/* Efficiencies are relative to a mean of 1: a fraction of the events is less than this, or the factors are upside down. */
#define FRACTION_MOST 2
/* Noise makes down and up alike, objects that attenuate only up. */
#define DOWN_MOST 2

void factor_survey_begin(struct factor_survey *s)
{
	*s = (struct factor_survey){.least = INFINITY};
}

void factor_survey_add(struct factor_survey *s, const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float v = values[i];

		s->most = v > s->most ? v : s->most;
		if (v > 1)
			s->up += (double)v - 1;
		if (!(v > 0 && v < 1)) {
			s->least = v >= 1 && v < s->least ? v : s->least;
			continue;
		}
		s->least = v < s->least ? v : s->least;
		s->down += 1 / (double)v - 1;
		s->below += v < FACTOR_SURVEY_LEAST;
	}
	s->n += n;
}

void factor_survey_join(struct factor_survey *s, const struct factor_survey *other)
{
	s->least = fminf(s->least, other->least);
	s->most = fmaxf(s->most, other->most);
	s->up += other->up;
	s->down += other->down;
	s->n += other->n;
	s->below += other->below;
}

int factor_survey_attenuation(const struct factor_survey *s, struct err *err)
{
	if (s->below == 0 || !(s->down > DOWN_MOST * s->up))
		return 0;
	return err_set(
		err, EBADMSG,
		"%s: %zu of %zu values are below %g, the least %g, and too few above 1 to be noise: attenuation correction "
		"factors are 1 or more, and these look like the fraction that survives: give 1 / value, or "
		"--multiplicative if efficiencies are in it or not needed",
		sinogram_role_name(SINOGRAM_ATTENUATION), s->below, s->n, (double)FACTOR_SURVEY_LEAST, (double)s->least);
}

/* Return the most pairs of detectors that are added in a bin. */
static int most_pairs(const struct michelogram *m)
{
	int most = 1, views = m->arc_corrected ? 1 : m->scanner.detectors / (2 * m->n_angles);

	for (int s = 0; s < m->n_segments; s++)
		for (int a = 0; a < m->segments[s].n_planes; a++) {
			int pairs = michelogram_pairs(m, s, a);

			most = pairs > most ? pairs : most;
		}
	return most * (views > 1 ? views : 1);
}

int factor_survey_fraction(const struct factor_survey *s, const struct michelogram *m, struct err *err)
{
	int pairs = most_pairs(m);

	if (!isfinite(s->least) || !(s->least >= 1 && s->most > (float)(FRACTION_MOST * pairs)))
		return 0;
	return err_set(
		err, EBADMSG,
		"%s: values from %g to %g; allowed: the fraction of events that is counted, below 1 somewhere or at most %d "
		"everywhere (%d for each pair of detectors in a bin): these look like correction factors: give 1 / value, or "
		"the file as --attenuation or --normalisation",
		sinogram_role_name(SINOGRAM_MULTIPLICATIVE), (double)s->least, (double)s->most, FRACTION_MOST * pairs,
		FRACTION_MOST);
}
