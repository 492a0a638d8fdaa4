/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about factors has their exact range and their median, and counts bins that are not used. */
#include "node/sinogram/factor_range.h"
#include "tests/test.h"

#define BINS 1001

/* Write the sentence of planes whose values are those of plane 0, plus its number. */
static void range_of(enum sinogram_role role, size_t planes, const float *first, char text[FACTOR_RANGE_TEXT])
{
	struct factor_range *r = NULL;
	float values[BINS];

	assert_int_equal(factor_range_create(role, planes, &r, NULL), 0);
	for (size_t p = planes; p-- > 0;) {
		for (size_t i = 0; i < BINS; i++)
			values[i] = first[i] > 0 ? first[i] + (float)p : first[i];
		factor_range_add(r, p, values, BINS);
	}
	factor_range_text(r, text);
	factor_range_free(r);
}

TEST(has_range_and_median)
{
	char text[FACTOR_RANGE_TEXT];
	float values[BINS];

	for (int i = 0; i < BINS; i++)
		values[i] = 1 + (float)((i * 8) % BINS) / 1000;
	range_of(SINOGRAM_ATTENUATION, 1, values, text);
	assert_string_equal(text, "ATTENUATION: the expected counts are divided by its values (1: no attenuation; above 1: "
				  "attenuation): 1 to 2, median 1.5.");
	range_of(SINOGRAM_ATTENUATION, 3, values, text);
	assert_string_equal(text, "ATTENUATION: the expected counts are divided by its values (1: no attenuation; above 1: "
				  "attenuation): 1 to 4, median 2.5.");
	values[500] = 0.25f; /* one value decides on the range, also with more planes than the sample has values of each */
	range_of(SINOGRAM_NORMALISATION, 2000, values, text);
	assert_string_equal(text, "NORMALISATION: the expected counts are divided by its values (1 / efficiency): 0.25 to 2e+03, "
				  "median 1e+03.");
}

TEST(percent_is_doubted)
{
	char text[FACTOR_RANGE_TEXT];
	float values[BINS];

	for (int percent = 0; percent < 2; percent++) {
		for (int i = 0; i < BINS; i++)
			values[i] = (percent ? 100.0f : 1.0f) * (1 + (float)i / BINS);
		range_of(SINOGRAM_ATTENUATION, 1, values, text);
		assert_int_equal(strstr(text, "None is near 1") != NULL, percent);
	}
}

TEST(counts_bins_that_are_not_used)
{
	char text[FACTOR_RANGE_TEXT];
	float values[BINS];

	for (int i = 0; i < BINS; i++)
		values[i] = i % 2 ? 0.5f : 0;
	range_of(SINOGRAM_MULTIPLICATIVE, 1, values, text);
	assert_string_equal(text, "MULTIPLICATIVE: the expected counts are multiplied by its values (the fraction of the events "
				  "that is counted): 0.5 to 0.5, median 0.5; 501 of 1001 bins are not used (0).");
	for (int i = 0; i < BINS; i++)
		values[i] = INFINITY;
	range_of(SINOGRAM_NORMALISATION, 1, values, text);
	assert_string_equal(text, "NORMALISATION: the expected counts are divided by its values (1 / efficiency); 1001 of 1001 "
				  "bins are not used (infinite).");
}
