/* SPDX-License-Identifier: Apache-2.0 */
/* breast_texture.c - the random fields of the breast phantom.
 *
 * Field: octaves of white noise of the same variance, each on a lattice of half the step of the one before, all interpolated by
 * quadratic B-splines (Chaikin's subdivision, weights 1 3 3 1). An octave of step h has the spectrum h^3 up to 1/h, so their sum
 * falls with f^-3. A value is a function of seed, octave and place, so threads do not matter.
 *
 * Walls: cells around seeds, one at a random place in each cube (Worley 1996), as a model of the fat lobules between ligaments
 * (Bakic et al. 2011). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/phantom/breast_internal.h"
#include "recon/phantom/poisson.h"

#define OCTAVES 7

static float draw_noise(uint64_t seed, int octave, size_t at)
{
	uint64_t stream = poisson_stream(seed + (uint64_t)octave, at);

	/* Uniform in -1..1: sums of many octaves are nearly normal. */
	return (float)(2 * poisson_uniform(&stream) - 1);
}

static int clamp_index(int i, int n)
{
	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Find the cell around a voxel and the next one, along one axis. */
static void voxel_cells(int voxel, int n, size_t ret[2])
{
	ret[0] = (size_t)clamp_index(voxel / 2, n);
	ret[1] = (size_t)clamp_index(voxel % 2 ? voxel / 2 + 1 : voxel / 2 - 1, n);
}

/* Each value is 3/4 of that of the cell around the voxel and 1/4 of that of the next one, along each axis. */
float breast_field_voxel(const struct breast_field *f, int i, int j, int k)
{
	size_t nx = (size_t)f->n[0], ny = (size_t)f->n[1], x[2], y[2], z[2];
	const float weight[2] = {0.75f, 0.25f};
	float sum = 0;

	voxel_cells(i, f->n[0], x);
	voxel_cells(j, f->n[1], y);
	voxel_cells(k, f->n[2], z);
	for (int c = 0; c < 4; c++) {
		const float *row = f->value + nx * (y[c & 1] + ny * z[c >> 1]);

		sum += weight[c & 1] * weight[c >> 1] * (0.75f * row[x[0]] + 0.25f * row[x[1]]);
	}
	return sum;
}

static int field_alloc(const int n[3], struct breast_field *ret, struct err *err)
{
	size_t size = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];

	*ret = (struct breast_field){.n = {n[0], n[1], n[2]}, .value = malloc(size * sizeof(*ret->value))};
	return ret->value ? 0 : err_set(err, ENOMEM, "no memory for a texture of %zu cells", size);
}

int breast_field_create(const int n[3], uint64_t seed, int finest, struct breast_field *ret, struct err *err)
{
	struct breast_field coarse = {0}, fine = {0};

	for (int octave = OCTAVES - 1; octave >= 0; octave--) {
		int size[3];

		for (int c = 0; c < 3; c++)
			size[c] = ((n[c] - 1) >> octave) + 1;
		int rc = field_alloc(size, &fine, err);

		if (rc < 0) {
			free(coarse.value);
			return rc;
		}
#pragma omp parallel for schedule(static)
		for (int k = 0; k < size[2]; k++)
			for (int j = 0; j < size[1]; j++)
				for (int i = 0; i < size[0]; i++) {
					size_t at = (size_t)i + (size_t)size[0] * ((size_t)j + (size_t)size[1] * (size_t)k);
					float value = coarse.value ? breast_field_voxel(&coarse, i, j, k) : 0;

					fine.value[at] = value + (octave >= finest ? draw_noise(seed, octave, at) : 0);
				}
		free(coarse.value);
		coarse = fine;
	}
	*ret = coarse;
	return 0;
}

double breast_field_at(const struct breast_field *f, double x, double y, double z)
{
	const double at[3] = {x - 0.5, y - 0.5, z - 0.5};
	size_t low[3], high[3], step[3] = {1, (size_t)f->n[0], (size_t)f->n[0] * (size_t)f->n[1]};
	double part[3], sum = 0;

	for (int c = 0; c < 3; c++) {
		double a = fmin(fmax(at[c], 0), f->n[c] - 1);

		low[c] = (size_t)a * step[c];
		high[c] = (size_t)clamp_index((int)a + 1, f->n[c]) * step[c];
		part[c] = a - floor(a);
	}
	for (int corner = 0; corner < 8; corner++) {
		size_t from = 0;
		double weight = 1;

		for (int c = 0; c < 3; c++) {
			from += corner >> c & 1 ? high[c] : low[c];
			weight *= corner >> c & 1 ? part[c] : 1 - part[c];
		}
		sum += weight * (double)f->value[from];
	}
	return sum;
}

int breast_cells_create(const double lo[3], const double hi[3], double side, uint64_t seed, struct breast_cells *ret,
			struct err *err)
{
	size_t n = 1;

	ret->side = side;
	for (int c = 0; c < 3; c++) {
		ret->first[c] = (int)floor(lo[c] / side) - 1;
		ret->n[c] = (int)floor(hi[c] / side) + 2 - ret->first[c];
		n *= (size_t)ret->n[c];
	}
	ret->seed = malloc(n * sizeof(*ret->seed));
	if (!ret->seed)
		return err_set(err, ENOMEM, "no memory for %zu cells of a breast", n);
	for (size_t i = 0; i < n; i++) {
		size_t at[3] = {i % (size_t)ret->n[0], i / (size_t)ret->n[0] % (size_t)ret->n[1],
				i / (size_t)ret->n[0] / (size_t)ret->n[1]};
		uint64_t stream = poisson_stream(seed, i);

		for (int c = 0; c < 3; c++)
			ret->seed[i][c] = (float)((ret->first[c] + (double)at[c] + poisson_uniform(&stream)) * side);
	}
	return 0;
}

double breast_cells_wall(const struct breast_cells *c, const double at[3])
{
	float first = INFINITY, second = INFINITY, to[3] = {(float)at[0], (float)at[1], (float)at[2]};
	int cube[3];

	for (int a = 0; a < 3; a++)
		cube[a] = clamp_index((int)floor(at[a] / c->side) - c->first[a] - 1, c->n[a] - 2);
	for (int i = 0; i < 27; i++) {
		size_t from = (size_t)(cube[0] + i % 3) +
			      (size_t)c->n[0] * ((size_t)(cube[1] + i / 3 % 3) + (size_t)c->n[1] * (size_t)(cube[2] + i / 9));
		float q = 0;

		for (int a = 0; a < 3; a++)
			q += (c->seed[from][a] - to[a]) * (c->seed[from][a] - to[a]);
		second = q < first ? first : q < second ? q : second;
		first = q < first ? q : first;
	}
	return (double)(sqrtf(second) - sqrtf(first));
}
