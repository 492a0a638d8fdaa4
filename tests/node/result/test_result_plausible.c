/* SPDX-License-Identifier: Apache-2.0 */
/* Test what is said about values that cannot be those of a breast. */
#include "node/result/result_internal.h"
#include "tests/test.h"

#define N 1000 /* stored values of 0.001 / mm */

/* Air, and tissue of one or two values. */
static const char *said(uint64_t air, uint64_t tissue, size_t value, uint64_t other, size_t other_value, bool quantitative)
{
	static char text[240];
	uint64_t bins[N] = {[0] = air};
	struct value_shares shares;

	bins[value] += tissue;
	bins[other_value] += other;
	result_value_shares(bins, N, 10, 0, 0.001, &shares);
	result_add_value_warnings(&shares, quantitative, text, sizeof(text));
	return text;
}

TEST(test_breasts)
{
	assert_string_equal(said(7000, 3000, 50, 0, 1, true), "");
	assert_string_equal(said(9500, 500, 90, 0, 1, true), "");     /* a small and dense one */
	assert_string_equal(said(7000, 3000, 50, 40, 900, true), ""); /* with calcifications */
	assert_string_equal(said(7000, 3000, 700, 0, 1, false), "");  /* without a unit */
	assert_string_equal(said(7000, 3000, 20, 0, 1, true), "");    /* at the limits */
	assert_string_equal(said(7000, 3000, 150, 0, 1, true), "");
	assert_string_equal(said(9800, 200, 50, 0, 1, true), "");
}

TEST(test_no_breasts)
{
	assert_non_null(strstr(said(7000, 3000, 19, 0, 1, true), "is 0.019 / mm, and breasts have 0.02 to 0.15"));
	assert_non_null(strstr(said(7000, 3000, 160, 0, 1, true), "is 0.16 / mm"));
	assert_non_null(strstr(said(8000, 1800, 80, 200, 400, true), "10.0 % of the tissue is above 0.2 / mm"));
	assert_non_null(strstr(said(9900, 100, 50, 0, 1, false), "99.0 % of the voxels have the smallest or the largest value"));
	assert_non_null(strstr(said(0, 10, 50, 9990, N - 1, true), "99.9 % of the voxels"));
}
