/* SPDX-License-Identifier: Apache-2.0 */
/* activity_outside.c - see recon/pet/activity_outside.h. */
#include "recon/pet/activity_outside.h"

#include <math.h>
#include <stdbool.h>

#define MU_LEAST 1e-3 /* 1/mm, a tenth of water: of a voxel with a body */
#define SAMPLES 3     /* of values in a voxel, along each axis */

/* Return the value at a point; 0 outside of its grid. */
static double value_at(const struct grid *g, const float *values, const double at[3])
{
	size_t voxel = 0;

	for (int axis = 0; axis < 3; axis++) {
		double i = floor((at[axis] - g->lo[axis]) / g->h[axis]);

		if (!(i >= 0 && i < g->n[axis]))
			return 0;
		voxel += (size_t)i * grid_step(g, axis);
	}
	return (double)values[voxel];
}

/* Return the mean value in a voxel of g. */
static double average_in(const struct grid *from, const float *values, const struct grid *g, const int voxel[3])
{
	double sum = 0;

	for (int s = 0; s < SAMPLES * SAMPLES * SAMPLES; s++) {
		const int part[3] = {s % SAMPLES, s / SAMPLES % SAMPLES, s / (SAMPLES * SAMPLES)};
		double at[3];

		for (int c = 0; c < 3; c++)
			at[c] = g->lo[c] + (voxel[c] + (part[c] + 0.5) / SAMPLES) * g->h[c];
		sum += value_at(from, values, at);
	}
	return sum / (SAMPLES * SAMPLES * SAMPLES);
}

void activity_outside_average(const struct grid *from, const float *values, const struct grid *g, int threads, float *ret)
{
#pragma omp parallel for num_threads(threads)
	for (int z = 0; z < g->n[2]; z++)
		for (int y = 0; y < g->n[1]; y++)
			for (int x = 0; x < g->n[0]; x++)
				ret[((size_t)z * (size_t)g->n[1] + (size_t)y) * (size_t)g->n[0] + (size_t)x] =
					(float)average_in(from, values, g, (const int[3]){x, y, z});
}

/* Whether a voxel or a neighbour of it has mu. */
static bool near_mu(const struct grid *g, const float *mu, const int at[3])
{
	for (int z = at[2] - 1; z <= at[2] + 1; z++)
		for (int y = at[1] - 1; y <= at[1] + 1; y++)
			for (int x = at[0] - 1; x <= at[0] + 1; x++)
				if (x >= 0 && x < g->n[0] && y >= 0 && y < g->n[1] && z >= 0 && z < g->n[2] &&
				    (double)mu[((size_t)z * (size_t)g->n[1] + (size_t)y) * (size_t)g->n[0] + (size_t)x] >
					    MU_LEAST)
					return true;
	return false;
}

double activity_outside(const struct grid *g, const float *image, const float *mu, const double *covered)
{
	double inside = 0, outside = 0, mean;
	size_t voxels = grid_size(g), n = 0, i = 0;

	for (size_t k = 0; k < voxels; k++)
		if ((double)mu[k] > MU_LEAST) {
			inside += (double)image[k];
			n++;
		}
	mean = n > 0 ? inside / (double)n : 0;
	for (int z = 0; z < g->n[2]; z++) {
		double lo = g->lo[2] + z * g->h[2];

		for (int y = 0; y < g->n[1]; y++)
			for (int x = 0; x < g->n[0]; x++, i++)
				if ((double)image[i] > ACTIVITY_OUTSIDE_PART * mean &&
				    !(covered && (lo < covered[0] || lo + g->h[2] > covered[1])) &&
				    !near_mu(g, mu, (const int[]){x, y, z}))
					outside += (double)image[i];
	}
	return inside > 0 ? outside / (inside + outside) : 0;
}
