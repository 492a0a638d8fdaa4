/* SPDX-License-Identifier: Apache-2.0 */
/* air_select.c - select one of many values by rank. The result is exact.
 *
 * A sample gives two limits between which the value is expected (Floyd and Rivest 1975). The values outside of them are
 * only counted, which the compiler vectorises; those between them are kept and divided again. What remains, or is not between the
 * limits, is divided by quickselect (Hoare 1961). */
#include <math.h>

#include "recon/dbt/air_internal.h"

#define SAMPLE 256
#define SAMPLE_ERROR 24 /* of a rank in the sample: three standard deviations */
#define MANY 2048	/* values for which a sample saves time */

static float quickselect(float *values, size_t n, size_t place)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		float pivot = values[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;; i++, j--) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			float swap = values[i];
			values[i] = values[j];
			values[j] = swap;
		}
		if (place <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return values[place];
}

/* Estimate two values between which that at the place is. */
static void find_limits(const float *values, size_t n, size_t place, float ret[2])
{
	float sample[SAMPLE];
	int rank = (int)((double)place * SAMPLE / (double)n);

	for (size_t i = 0; i < SAMPLE; i++)
		sample[i] = values[i * n / SAMPLE];
	ret[0] = rank < SAMPLE_ERROR ? -INFINITY : quickselect(sample, SAMPLE, (size_t)(rank - SAMPLE_ERROR));
	ret[1] = rank + SAMPLE_ERROR < SAMPLE ? quickselect(sample, SAMPLE, (size_t)(rank + SAMPLE_ERROR)) : INFINITY;
}

/* Keep the values between the limits, if that at the place is one of them; *place becomes its place. Return their number. */
static size_t keep_between(float *values, size_t n, const float limits[2], size_t *place)
{
	const float lo = limits[0], hi = limits[1];
	unsigned below = 0, up_to = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		below += values[i] < lo;
		up_to += values[i] <= hi;
	}
	if (*place < below || *place >= up_to)
		return n;
	for (size_t i = 0; i < n; i++) {
		float value = values[i];
		unsigned above = value >= lo, under = value <= hi;

		values[kept] = value;
		kept += above & under; /* no branch, which the processor could not predict */
	}
	*place -= below;
	return kept;
}

double air_select(float *values, size_t n, size_t place)
{
	size_t before = n + 1;

	while (n > MANY && n < before) {
		float limits[2];

		before = n;
		find_limits(values, n, place, limits);
		n = keep_between(values, n, limits, &place);
	}
	return (double)quickselect(values, n, place);
}

double air_median(float *values, size_t n)
{
	return n > 0 ? air_select(values, n, n / 2) : 0;
}
