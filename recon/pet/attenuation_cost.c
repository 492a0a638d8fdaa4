/* SPDX-License-Identifier: Apache-2.0 */
/* attenuation_cost.c - see recon/pet/attenuation_cost.h. */
#include "recon/pet/attenuation_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/pet/mu_map.h"

#define BACKGROUND 0.5 /* of the mean of all voxels above 0 */
#define BODY 0.25      /* of the mean of the voxels above the background */

/* Return the mean of the values above `least`; 0: none is. */
static double mean_above(const float *image, size_t n, double least)
{
	double sum = 0, above = 0;

	for (size_t i = 0; i < n; i++)
		if ((double)image[i] > least) {
			sum += (double)image[i];
			above++;
		}
	return above > 0 ? sum / above : 0;
}

/* Return the number of voxels of a slice that are in the body. first, last: room for a number of each column. */
static size_t count_body(const int n[3], const float *slice, double least, int *first, int *last)
{
	size_t count = 0;

	for (int i = 0; i < n[0]; i++) {
		first[i] = n[1];
		last[i] = -1;
		for (int j = 0; j < n[1]; j++)
			if ((double)slice[(size_t)j * (size_t)n[0] + (size_t)i] > least) {
				first[i] = first[i] < j ? first[i] : j;
				last[i] = j;
			}
	}
	for (int j = 0; j < n[1]; j++) {
		const float *row = slice + (size_t)j * (size_t)n[0];
		int from = 0, to = n[0] - 1;

		while (from < n[0] && !((double)row[from] > least))
			from++;
		while (to > from && !((double)row[to] > least))
			to--;
		for (int i = from; i <= to && i < n[0]; i++)
			count += j >= first[i] && j <= last[i];
	}
	return count;
}

static int size_order(const void *a, const void *b)
{
	return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

int attenuation_cost(const int n[3], const double h[2], const float *image, struct attenuation_cost *ret, struct err *err)
{
	size_t slice = (size_t)n[0] * (size_t)n[1], filled = 0;
	double mean = mean_above(image, slice * (size_t)n[2], 0);
	double least = BODY * mean_above(image, slice * (size_t)n[2], BACKGROUND * mean);
	size_t *sizes = malloc((size_t)n[2] * sizeof(*sizes));
	int *first = malloc(2 * (size_t)n[0] * sizeof(*first));
	int rc = sizes && first ? 0 : err_set(err, ENOMEM, "no memory for %d slices of %d columns", n[2], n[0]);

	*ret = (struct attenuation_cost){0, 1};
	for (int k = 0; rc == 0 && k < n[2]; k++) {
		sizes[filled] = count_body(n, image + (size_t)k * slice, least, first, first + n[0]);
		filled += sizes[filled] > 0;
	}
	if (rc == 0 && filled > 0 && least > 0) {
		qsort(sizes, filled, sizeof(*sizes), size_order);
		ret->width = 2 * sqrt((double)sizes[filled / 2] * h[0] * h[1] / M_PI);
		ret->factor = exp(MU_WATER * ret->width);
	}
	free(sizes);
	free(first);
	return rc;
}
