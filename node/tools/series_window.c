/* SPDX-License-Identifier: Apache-2.0 */
/* series_window.c - see node/tools/series_window.h. The slices are read twice: for the mean, then for the percentiles. */
#include "node/tools/series_window.h"

#include <math.h>

#define FRACTION 0.995
#define VOXELS_LEAST 100
#define BINS 4096

static int mean_of(const struct image_series *s, int image, size_t n, double *ret_mean, struct err *err)
{
	const float *values;
	double sum = 0;
	size_t all = 0;

	for (int k = 0; k < s->n[2]; k++) {
		int rc = image_series_slice(s, image, k, &values, err);

		if (rc < 0)
			return rc;
		for (size_t i = 0; i < n; i++)
			if (isfinite(values[i])) {
				sum += values[i];
				all++;
			}
	}
	*ret_mean = all > 0 ? sum / (double)all : 0;
	return 0;
}

/* Return the percentile of the values above `mean` in a slice, to the width of a bin; 0: there are too few. */
static double top_of(const float *values, size_t n, double mean)
{
	size_t count[BINS] = {0}, all = 0, below = 0, b = 0;
	double hi = mean;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && values[i] > mean) {
			hi = fmax(hi, values[i]);
			all++;
		}
	if (all < VOXELS_LEAST)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && values[i] > mean)
			count[(size_t)((values[i] - mean) / (hi - mean) * (BINS - 1))]++;
	while (b < BINS - 1 && (double)(below + count[b]) < FRACTION * (double)all)
		below += count[b++];
	return mean + (hi - mean) * (double)(b + 1) / BINS;
}

int series_window_top(const struct image_series *s, int image, double *ret_top, struct err *err)
{
	size_t n = (size_t)s->n[0] * (size_t)s->n[1];
	double mean, top = 0, largest = 0;
	const float *values;
	int rc = mean_of(s, image, n, &mean, err);

	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		rc = image_series_slice(s, image, k, &values, err);
		if (rc < 0)
			break;
		top = fmax(top, top_of(values, n, fmax(mean, 0)));
		for (size_t i = 0; i < n; i++)
			if (isfinite(values[i]))
				largest = fmax(largest, values[i]);
	}
	*ret_top = top > 0 ? top : largest;
	return rc;
}
