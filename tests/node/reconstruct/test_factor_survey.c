/* SPDX-License-Identifier: Apache-2.0 */
/* Factors that are upside down are refused, as a whole, in some planes or in one bin; right ones, also with the number of pairs
 * of detectors of each plane, and measured ones with noise are not. */
#include "node/reconstruct/factor_survey.h"
#include "tests/test.h"

#define RINGS 16
#define N_RADIAL 33
#define LARGEST 6.8 /* attenuation correction factor of the middle ray */

/* A value of plane `number`; pairs: of detectors in its bins; acf: its attenuation correction factor. */
typedef double (*value_function)(int number, int bin, int pairs, double acf);

static struct michelogram m = {.scanner = {RINGS, 96, 4, 120, 5, 4}, .n_radial = N_RADIAL};

/* Return a number of standard normal distribution, the same for the same place. */
static double noise_at(int number, int bin)
{
	double sum = -6;

	for (uint64_t i = 0; i < 12; i++) {
		uint64_t x = ((uint64_t)number << 40) + ((uint64_t)bin << 8) + i + 1;

		x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
		sum += (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
	}
	return sum;
}

/* views: those that are added in an angle; reach: length of the object, 1: that of the scanner. */
static struct factor_survey survey(int views, double reach, value_function value)
{
	struct factor_survey all, one;
	int number = 0, n_bins = 48 / views * N_RADIAL;
	float *plane = malloc((size_t)n_bins * sizeof(*plane));

	assert_non_null(plane);
	m.n_angles = 48 / views;
	factor_survey_begin(&all);
	for (int s = 0; s < m.n_segments; s++)
		for (int a = 0; a < m.segments[s].n_planes; a++, number++) {
			int pairs = michelogram_pairs(&m, s, a) * views;
			double z, rise;

			michelogram_place(&m, s, a, &z, &rise);
			for (int i = 0; i < n_bins; i++) {
				double t = (i % N_RADIAL - N_RADIAL / 2) / 12.0, chord = t * t < 1 ? sqrt(1 - t * t) : 0;
				bool inside = fabs(z) <= reach * RINGS * m.scanner.ring_spacing / 2;

				plane[i] = (float)value(number, i, pairs, inside ? exp(log(LARGEST) * chord) : 1);
			}
			factor_survey_begin(&one);
			factor_survey_add(&one, (size_t)number, plane, (size_t)n_bins);
			factor_survey_end_plane(&one, &m, (size_t)number);
			factor_survey_join(&all, &one);
		}
	free(plane);
	return all;
}

static double correction(int number, int bin, int pairs, double acf)
{
	(void)number, (void)bin, (void)pairs;
	return acf;
}

static double fraction(int number, int bin, int pairs, double acf)
{
	(void)pairs;
	return (1 + 0.1 * noise_at(number, bin)) / acf;
}

static double fraction_of_pairs(int number, int bin, int pairs, double acf)
{
	return fraction(number, bin, pairs, acf) * pairs;
}

static double pairs_alone(int number, int bin, int pairs, double acf)
{
	(void)number, (void)bin, (void)acf;
	return pairs;
}

static double fraction_by_pairs(int number, int bin, int pairs, double acf)
{
	return fraction(number, bin, pairs, acf) / pairs;
}

/* Span 11: up to 6 ring pairs, which would allow 12 in every plane; 4 views: 8 in the end planes. */
TEST(correction_factors_are_no_fractions)
{
	static const value_function right[] = {fraction, fraction_of_pairs, pairs_alone, fraction_by_pairs};
	static const int views[] = {1, 2, 4};
	static const double reach[] = {1, 0.5, 0.2};
	struct factor_survey s;
	struct err err;

	for (size_t v = 0; v < 3; v++)
		for (size_t r = 0; r < 3; r++) {
			s = survey(views[v], reach[r], correction);
			assert_error(factor_survey_fraction(&s, &err), &err, EBADMSG,
				     "MULTIPLICATIVE: values from 1 to 6.8, in plane ");
			assert_non_null(strstr(err.msg, "because the values do not follow the pairs: "));
			for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
				s = survey(views[v], reach[r], right[i]);
				assert_int_equal(factor_survey_fraction(&s, &err), 0);
			}
		}
}

static double correction_without_air(int number, int bin, int pairs, double acf)
{
	(void)number, (void)bin, (void)pairs;
	return 1.1 * acf;
}

/* No value is 1: the planes with few pairs betray them. */
TEST(planes_are_compared_with_their_own_pairs)
{
	struct factor_survey s = survey(1, 1, correction_without_air);
	struct err err;

	assert_error(factor_survey_fraction(&s, &err), &err, EBADMSG,
		     "in plane 0, with 1 pair of detectors in a bin, up to 7.48; allowed: ");
	assert_non_null(strstr(err.msg, "at most 2 for each pair: "));
}

static double inverted_in_7(int number, int bin, int pairs, double acf)
{
	(void)bin, (void)pairs;
	return number >= 12 && number < 19 ? 1 / acf : acf;
}

/* As inverted_in_7, but of a thin object, above the floor. */
static double inverted_thin(int number, int bin, int pairs, double acf)
{
	return pow(inverted_in_7(number, bin, pairs, acf), 0.3);
}

/* 5 % of noise; factors of planes without an object are 1.5 % too small. */
static double measured(int number, int bin, int pairs, double acf)
{
	(void)pairs;
	return acf * (0.985 + 0.05 * noise_at(number, bin));
}

static double one_bin(int number, int bin, int pairs, double acf)
{
	(void)pairs;
	return number == 20 && bin == 2 * N_RADIAL + 7 ? 0.147 : acf;
}

static double fraction_everywhere(int number, int bin, int pairs, double acf)
{
	(void)number, (void)bin, (void)pairs;
	return 1 / acf;
}

TEST(attenuation_is_judged_in_each_plane)
{
	struct {
		value_function value;
		const char *says;
	} cases[] = {{inverted_in_7,
		      "ATTENUATION: 7 of 69 planes, the first of them plane 12, are below 1 as a whole; the least value, "
		      "of plane 12, angle 0, radial bin 16: 0.147059: "},
		     {inverted_thin, "ATTENUATION: 7 of 69 planes, the first of them plane 12, "},
		     {one_bin, "ATTENUATION: plane 20, angle 2, radial bin 7: 0.147; allowed: at least 0.3, "},
		     {fraction_everywhere, " values are below 0.99, the least 0.147059, and too few above 1 to be noise: "}};
	struct factor_survey s;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s = survey(1, 1, cases[i].value);
		assert_error(factor_survey_attenuation(&s, &m, &err), &err, EBADMSG, cases[i].says);
	}
	for (int reach = 1; reach <= 4; reach++) {
		s = survey(1, 0.25 * reach, correction);
		assert_int_equal(s.below, 0);
		assert_int_equal(factor_survey_attenuation(&s, &m, &err), 0);
		s = survey(1, 0.25 * reach, measured);
		assert_true(s.below > 100);
		assert_int_equal(factor_survey_attenuation(&s, &m, &err), 0);
	}
}

static int start(void **state)
{
	return michelogram_segments_all(RINGS, 11, &m.segments, &m.n_segments, NULL) == 0 ? 0 : -1;
}

static int stop(void **state)
{
	free(m.segments);
	return 0;
}

TESTS_SETUP(start, stop);
