/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms of many numbers: the same floats as from the C library, whatever the numbers are and however many. */
#include "recon/dbt/line_log.h"
#include "recon/phantom/poisson.h"
#include "tests/test.h"

#define N 4096

/* Return number i of a series with values in 0..1. */
static double random_of(uint64_t series, int i)
{
	return (double)(poisson_stream(series, (uint64_t)i) >> 11) * 0x1p-53;
}

static void compare(int n, const double *x)
{
	static float have[N + 1];

	have[n] = -1;
	line_log(n, x, have);
	for (int i = 0; i < n; i++) {
		float want = (float)log(x[i]);

		if (memcmp(&have[i], &want, sizeof(want)) != 0 && !(isnan(have[i]) && isnan(want)))
			fail_msg("log of %a: %a, not %a", x[i], (double)have[i], (double)want);
	}
	assert_true(have[n] == -1);
}

TEST(test_ratios)
{
	static double x[N];

	for (int i = -52; i < 60; i++) { /* near 1, where the result is small, to numbers that are left to the C library */
		for (int k = 0; k < N; k++)
			x[k] = 1 + ldexp(1 + random_of((uint64_t)i + 100, k), i);
		compare(N, x);
	}
	for (int k = 0; k < N; k++) /* as in a projection */
		x[k] = 16 * 10000.0 / (double)(1 + poisson_stream(1, (uint64_t)k) % 160000);
	compare(N, x);
}

/* Numbers whose logarithm is next to the middle between two floats. */
TEST(test_middle)
{
	static double x[N];

	for (int k = 0; k < N; k++) {
		float y = (float)(9 * random_of(7, k));
		double middle = ((double)y + (double)nextafterf(y, 10)) / 2;

		x[k] = exp(middle);
	}
	compare(N, x);
	for (int step = 0; step < 8; step++) {
		for (int k = 0; k < N; k++)
			x[k] = nextafter(x[k], k % 2 ? 1e3 : 1);
		compare(N, x);
	}
}

TEST(test_limits)
{
	const double x[] = {1, INFINITY, NAN, 2, 1e15, 1e300, 1 + 0x1p-52, M_SQRT2, 2 * M_SQRT2};

	for (int n = 0; n <= 9; n++)
		compare(n, x);
}

TEST(test_any_number)
{
	static double x[200];

	for (int k = 0; k < 200; k++)
		x[k] = 1 + 3 * random_of(3, k);
	for (int n = 0; n <= 200; n++)
		compare(n, x);
}
