/* SPDX-License-Identifier: Apache-2.0 */
/* randoms_neighbours.c - expected randoms of bins that are not pairs of detectors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/randoms_internal.h"

/* Replace each of n values, `stride` apart, by the sum of those at most RANDOMS_REACH away. sums: n + 1. */
static void sum_of_line(float *values, int n, size_t stride, double *sums)
{
	sums[0] = 0;
	for (int i = 0; i < n; i++)
		sums[i + 1] = sums[i] + (double)values[(size_t)i * stride];
	for (int i = 0; i < n; i++) {
		int from = i > RANDOMS_REACH ? i - RANDOMS_REACH : 0, to = i + RANDOMS_REACH < n ? i + RANDOMS_REACH + 1 : n;

		values[(size_t)i * stride] = (float)(sums[to] - sums[from]);
	}
}

static void sum_of_plane(const struct michelogram *m, float *plane, double *sums)
{
	for (int a = 0; a < m->n_angles; a++)
		sum_of_line(plane + (size_t)a * (size_t)m->n_radial, m->n_radial, 1, sums);
	for (int t = 0; t < m->n_radial; t++)
		sum_of_line(plane + t, m->n_angles, (size_t)m->n_radial, sums);
}

/* Replace the counts of a plane by means of live bins, with the same total. live: 1 or 0; becomes the number of neighbours. */
static void mean_of_plane(const struct michelogram *m, float *plane, const float *factors, float *live, double *sums)
{
	size_t n = michelogram_plane_bins(m);
	double counts = 0, mean = 0;

	for (size_t i = 0; i < n; i++) {
		live[i] = !factors || factors[i] > 0;
		plane[i] *= live[i];
		counts += (double)plane[i];
	}
	sum_of_plane(m, plane, sums);
	sum_of_plane(m, live, sums);
	for (size_t i = 0; i < n; i++) {
		plane[i] = live[i] > 0 && (!factors || factors[i] > 0) ? plane[i] / live[i] : 0;
		mean += (double)plane[i];
	}
	for (size_t i = 0; i < n && mean > 0; i++)
		plane[i] = (float)((double)plane[i] * counts / mean);
}

int randoms_from_neighbours(const struct michelogram *m, const float *delayeds, const float *factors, float *ret,
			    double *ret_total, struct err *err)
{
	size_t bins = michelogram_plane_bins(m), planes = michelogram_planes(m);
	double sum, *sums;
	float *live;
	int rc = michelogram_check(m, err);

	if (rc == 0)
		rc = randoms_check_counts(m, delayeds, &sum, err);
	if (rc < 0)
		return rc;
	sums = malloc(((size_t)(m->n_angles > m->n_radial ? m->n_angles : m->n_radial) + 1) * sizeof(*sums));
	live = malloc(bins * sizeof(*live));
	if (sums && live)
		for (size_t p = 0; p < planes; p++) {
			memmove(ret + p * bins, delayeds + p * bins, bins * sizeof(*ret));
			mean_of_plane(m, ret + p * bins, factors ? factors + p * bins : NULL, live, sums);
		}
	else
		rc = err_set(err, ENOMEM, "randoms: no memory for %zu bins", bins);
	free(sums);
	free(live);
	if (rc == 0 && ret_total)
		*ret_total = factors ? randoms_total(m, ret) : sum;
	return rc;
}
