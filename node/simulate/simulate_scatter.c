/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_scatter.c - add scattered radiation to simulated projections.
 *
 * The Monte Carlo counts photons in cells of CELL mm. Their sum is smoothed with the binomial weights 1 4 6 4 1 along both axes,
 * which removes most of its noise; scatter itself varies over some centimetres. */
#include "node/simulate/simulate_scatter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/phantom/scatter_mc.h"

#define CELL 5.0       /* mm */
#define PHOTONS 400000 /* of a view */
#define WEIGHTS 5

/* Return the cell beside the edge that has the same distance from it, for smoothing. */
static int mirror_index(int i, int n)
{
	int mirrored = i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i;

	return mirrored < 0 ? 0 : mirrored >= n ? n - 1 : mirrored;
}

static void smooth_cells(int n_u, int n_v, const float *in, float *work, float *ret)
{
	static const float weight[WEIGHTS] = {1 / 16.0f, 4 / 16.0f, 6 / 16.0f, 4 / 16.0f, 1 / 16.0f};

	for (int i = 0; i < n_u * n_v; i++) {
		work[i] = 0;
		for (int k = 0; k < WEIGHTS; k++)
			work[i] += weight[k] * in[i / n_u * n_u + mirror_index(i % n_u + k - WEIGHTS / 2, n_u)];
	}
	for (int i = 0; i < n_u * n_v; i++) {
		ret[i] = 0;
		for (int k = 0; k < WEIGHTS; k++)
			ret[i] += weight[k] * work[mirror_index(i / n_u + k - WEIGHTS / 2, n_v) * n_u + i % n_u];
	}
}

/* Return the linearly interpolated value at bin (u, v). */
static double value_at(const float *cells, int n_u, int n_v, int bins, int u, int v)
{
	double x = fmin(fmax((u + 0.5) / bins - 0.5, 0), n_u - 1), y = fmin(fmax((v + 0.5) / bins - 0.5, 0), n_v - 1);
	int i = (int)x, j = (int)y, right = i + 1 < n_u ? i + 1 : i, up = j + 1 < n_v ? j + 1 : j;
	double low = (1 - x + i) * (double)cells[j * n_u + i] + (x - i) * (double)cells[j * n_u + right];
	double high = (1 - x + i) * (double)cells[up * n_u + i] + (x - i) * (double)cells[up * n_u + right];

	return (1 - y + j) * low + (y - j) * high;
}

static int count_photons(const struct simulation *s, const struct scatter_mc_run *run, int view, float *ret_cells,
			 struct err *err)
{
	struct scatter_mc *object = NULL;
	int rc = s->voxels ? scatter_mc_of_voxels(s->voxels, &object, err) : scatter_mc_of_phantom(s->phantom, &object, err);

	if (rc == 0)
		rc = scatter_mc_view(object, s->scan, view, run, ret_cells, NULL, err);
	scatter_mc_free(object);
	return rc;
}

int simulate_scatter(const struct simulation *s, int view, float *line, struct err *err)
{
	struct scatter_mc_run run = {.cell = (int)fmax(1, round(CELL / s->pitch)), .photons = PHOTONS, .seed = s->o.seed};
	int n_u = (s->n_u + run.cell - 1) / run.cell, n_v = (s->n_v + run.cell - 1) / run.cell, rc;
	size_t n = (size_t)n_u * (size_t)n_v;
	float *cells = malloc(3 * n * sizeof(*cells));

	if (!cells)
		return err_set(err, ENOMEM, "no memory for the scatter of a view");
	rc = count_photons(s, &run, view, cells, err);
	if (rc == 0)
		smooth_cells(n_u, n_v, cells, cells + n, cells + 2 * n);
	for (int v = 0; v < (rc == 0 ? s->n_v : 0); v++)
		for (int u = 0; u < s->n_u; u++) {
			float *at = line + (size_t)v * (size_t)s->n_u + (size_t)u;

			*at = (float)-log(exp(-(double)*at) + s->o.scatter * value_at(cells + 2 * n, n_u, n_v, run.cell, u, v));
		}
	free(cells);
	return rc;
}
