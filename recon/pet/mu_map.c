/* SPDX-License-Identifier: Apache-2.0 */
/* mu_map.c - see recon/pet/mu_map.h. All HU that 16 bits can have are converted once; the resampling reads this table at the
 * eight neighbours of each point. */
#include "recon/pet/mu_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/psf.h"

#define HU_VALUES 65536
#define HU_LEAST (-32768)
#define BELOW 9.6e-6 /* 1/mm for each unit of H, below the break point */
#define SIGMAS 4.0   /* where the Gaussian is cut off */

/* Carney & al. 2006, table I; there in 1/cm. */
static const struct mu_curve curves[] = {
	{80, 3.64e-6, 0.00626, 1050},  {100, 4.43e-6, 0.00544, 1052}, {110, 4.92e-6, 0.00488, 1043},
	{120, 5.10e-6, 0.00471, 1047}, {130, 5.51e-6, 0.00424, 1037}, {140, 5.64e-6, 0.00408, 1030},
};

struct mu_curve mu_curve_of(double kvp)
{
	double wanted = kvp > 0 ? kvp : MU_KVP_USUAL;
	size_t best = 0;

	for (size_t i = 1; i < sizeof(curves) / sizeof(curves[0]); i++)
		if (fabs(curves[i].kvp - wanted) < fabs(curves[best].kvp - wanted))
			best = i;
	return curves[best];
}

struct mu_curve mu_curve_of_map(void)
{
	return (struct mu_curve){.kvp = 0, .slope = 1e-5, .offset = 0, .edge = -INFINITY};
}

double mu_of_hu(const struct mu_curve *c, double hu)
{
	double h = hu + 1000;

	return fmax(0, h > c->edge ? c->slope * h + c->offset : BELOW * h);
}

/* ---- resampling ---- */

/* The way from the axes of the grid to the indices of the CT. */
struct sampler {
	const struct mu_source *ct;
	const float *table; /* [HU - HU_LEAST] */
	double index[3][4]; /* index c of a point (x, y, z): as mu_source.at */
	int points[3];	    /* in a voxel of the grid along each of its axes */
	const struct grid *grid;
};

static int invert_affine(const double at[3][4], double ret[3][4], struct err *err)
{
	double cofactor[3][3], det = 0, scale = 1;

	for (int r = 0; r < 3; r++)
		for (int c = 0; c < 3; c++) {
			int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;

			cofactor[r][c] = at[r1][c1] * at[r2][c2] - at[r1][c2] * at[r2][c1];
		}
	for (int c = 0; c < 3; c++) {
		det += at[0][c] * cofactor[0][c];
		scale *= sqrt(at[0][c] * at[0][c] + at[1][c] * at[1][c] + at[2][c] * at[2][c]);
	}
	if (!(fabs(det) > 1e-6 * scale)) /* false for NaN, too */
		return err_set(err, EINVAL, "its columns, rows and slices are not three directions in space");
	for (int r = 0; r < 3; r++) {
		ret[r][3] = 0;
		for (int c = 0; c < 3; c++) {
			ret[r][c] = cofactor[c][r] / det;
			ret[r][3] -= ret[r][c] * at[c][3];
		}
	}
	return 0;
}

/* Set how many points a voxel needs: those along an axis of the grid are at most a CT voxel apart. */
static void set_points(struct sampler *s)
{
	for (int c = 0; c < 3; c++) {
		double most = 0;

		for (int r = 0; r < 3; r++)
			most = fmax(most, fabs(s->index[r][c]) * s->grid->h[c]);
		s->points[c] = (int)fmin(fmax(ceil(most * (1 - 1e-9)), 1), MU_MAP_POINTS);
	}
}

/* Return the two neighbours of an index, and the weight of the second; false: the point is outside the CT, which ends half a
 * voxel behind its outermost centres. */
static inline bool find_neighbours(double at, int n, int ret[2], float *ret_weight)
{
	double low = floor(at);
	int i = (int)low;

	if (!(at >= -0.5 && at <= n - 0.5))
		return false;
	*ret_weight = (float)(at - low);
	ret[0] = i < 0 ? 0 : i;
	ret[1] = i + 1 > n - 1 ? n - 1 : i + 1;
	return true;
}

static inline float sample_ct(const struct sampler *s, const double at[3])
{
	const struct mu_source *ct = s->ct;
	const float *table = s->table - HU_LEAST;
	int i[2], j[2], k[2];
	float wi, wj, wk, plane[2];

	if (!find_neighbours(at[0], ct->n[0], i, &wi) || !find_neighbours(at[1], ct->n[1], j, &wj) ||
	    !find_neighbours(at[2], ct->n[2], k, &wk))
		return 0;
	for (int b = 0; b < 2; b++) {
		const int16_t *slice = ct->hu + (size_t)k[b] * (size_t)ct->n[1] * (size_t)ct->n[0];
		const int16_t *r0 = slice + (size_t)j[0] * (size_t)ct->n[0], *r1 = slice + (size_t)j[1] * (size_t)ct->n[0];
		float v0 = table[r0[i[0]]] + wi * (table[r0[i[1]]] - table[r0[i[0]]]);
		float v1 = table[r1[i[0]]] + wi * (table[r1[i[1]]] - table[r1[i[0]]]);

		plane[b] = v0 + wj * (v1 - v0);
	}
	return plane[0] + wk * (plane[1] - plane[0]);
}

static void index_at(const struct sampler *s, const double p[3], double ret[3])
{
	for (int r = 0; r < 3; r++)
		ret[r] = s->index[r][0] * p[0] + s->index[r][1] * p[1] + s->index[r][2] * p[2] + s->index[r][3];
}

static float mean_of_voxel(const struct sampler *s, const int voxel[3])
{
	double p[3], at[3], sum = 0;
	int n[3] = {s->points[0], s->points[1], s->points[2]};

	for (int c = 0; c < n[2]; c++) {
		p[2] = s->grid->lo[2] + (voxel[2] + (c + 0.5) / n[2]) * s->grid->h[2];
		for (int b = 0; b < n[1]; b++) {
			p[1] = s->grid->lo[1] + (voxel[1] + (b + 0.5) / n[1]) * s->grid->h[1];
			for (int a = 0; a < n[0]; a++) {
				p[0] = s->grid->lo[0] + (voxel[0] + (a + 0.5) / n[0]) * s->grid->h[0];
				index_at(s, p, at);
				sum += (double)sample_ct(s, at);
			}
		}
	}
	return (float)(sum / (n[0] * n[1] * n[2]));
}

int mu_map_uncovered(const struct mu_source *ct, const struct grid *grid, double ret_covered[2], struct err *err)
{
	struct sampler s = {.ct = ct, .grid = grid};
	double covered[2] = {INFINITY, -INFINITY};
	int n = 0, rc = invert_affine(ct->at, s.index, err);

	for (int k = 0; rc == 0 && k < grid->n[2]; k++) {
		double p[3] = {grid->lo[0] + 0.5 * grid->n[0] * grid->h[0], grid->lo[1] + 0.5 * grid->n[1] * grid->h[1],
			       grid->lo[2] + (k + 0.5) * grid->h[2]};
		double at[3];
		int i[2];
		float w;

		index_at(&s, p, at);
		if (find_neighbours(at[0], ct->n[0], i, &w) && find_neighbours(at[1], ct->n[1], i, &w) &&
		    find_neighbours(at[2], ct->n[2], i, &w)) {
			covered[0] = fmin(covered[0], p[2] - 0.5 * grid->h[2]);
			covered[1] = fmax(covered[1], p[2] + 0.5 * grid->h[2]);
		} else {
			n++;
		}
	}
	if (ret_covered)
		memcpy(ret_covered, covered, sizeof(covered));
	return rc < 0 ? rc : n;
}

int mu_map_resample(const struct mu_source *ct, const struct mu_curve *curve, const struct grid *grid,
		    const struct monitor *monitor, float *ret_mu, struct err *err)
{
	float *table = malloc(HU_VALUES * sizeof(*table));
	struct sampler s = {.ct = ct, .table = table, .grid = grid};
	int rc = table ? invert_affine(ct->at, s.index, err) : err_set(err, ENOMEM, "no memory for a table");

	if (rc < 0) {
		free(table);
		return rc;
	}
	for (int i = 0; i < HU_VALUES; i++)
		table[i] = (float)mu_of_hu(curve, i + HU_LEAST);
	set_points(&s);
	memset(ret_mu, 0, grid_size(grid) * sizeof(*ret_mu));
	for (int j = 0; rc == 0 && j < grid->n[1]; j++) {
		monitor_progress(monitor, "read", (double)j / grid->n[1]);
		if (monitor_cancelled(monitor))
			rc = err_set(err, ECANCELED, "cancelled while the attenuation map was made");
#pragma omp parallel for schedule(dynamic)
		for (int i = 0; i < (rc == 0 ? grid->n[0] : 0); i++)
			for (int k = 0; k < grid->n[2]; k++) {
				const int voxel[3] = {i, j, k};

				ret_mu[(size_t)i * grid_step(grid, 0) + (size_t)j * grid_step(grid, 1) +
				       (size_t)k * grid_step(grid, 2)] = mean_of_voxel(&s, voxel);
			}
	}
	free(table);
	return rc;
}

double mu_map_repeated(const struct grid *grid, const float *a, const float *b)
{
	double common = 0, all[2] = {0, 0}; /* where a attenuates, where b does */

	for (size_t i = 0; i < grid_size(grid); i++) {
		double most = (double)(a[i] > b[i] ? a[i] : b[i]);

		common += (double)a[i] + (double)b[i] - most;
		all[0] += a[i] > 0 ? most : 0;
		all[1] += b[i] > 0 ? most : 0;
	}
	return common > 0 ? common / fmin(all[0], all[1]) : 0;
}

/* ---- smoothing ---- */

/* Write the weights of a Gaussian at distances 0 .. reach, not normalised. Return reach. */
static int gauss_weights(double sigma, double h, int n, double *ret_weight)
{
	int reach = (int)fmin(ceil(SIGMAS * sigma / h), n - 1);

	for (int i = 0; i <= reach; i++)
		ret_weight[i] = exp(-0.5 * i * h * i * h / (sigma * sigma));
	return reach;
}

/* Convolve one line of n values, `step` apart, in place. copy: n values. */
static void smooth_line(float *line, int n, size_t step, const double *weight, int reach, float *copy)
{
	for (int i = 0; i < n; i++)
		copy[i] = line[(size_t)i * step];
	for (int i = 0; i < n; i++) {
		int first = i - reach < 0 ? 0 : i - reach, last = i + reach > n - 1 ? n - 1 : i + reach;
		double sum = 0, norm = 0;

		for (int j = first; j <= last; j++) {
			double w = weight[abs(i - j)];

			sum += w * (double)copy[j];
			norm += w;
		}
		line[(size_t)i * step] = (float)(sum / norm);
	}
}

int mu_map_smooth(const struct grid *grid, double fwhm, float *mu, struct err *err)
{
	double sigma = fwhm / PSF_FWHM_PER_SIGMA;
	bool bad = false;

	for (int axis = 0; fwhm > 0 && axis < 3; axis++) {
		int n = grid->n[axis], one = (axis + 1) % 3, other = (axis + 2) % 3, reach;
		double *weight = malloc((size_t)n * sizeof(*weight));

		if (!weight)
			return err_set(err, ENOMEM, "no memory to smooth %d voxels", n);
		reach = gauss_weights(sigma, grid->h[axis], n, weight);
#pragma omp parallel
		{
			float *copy = malloc((size_t)n * sizeof(*copy));

			if (!copy) {
#pragma omp atomic write
				bad = true;
			}
#pragma omp for schedule(dynamic)
			for (int i = 0; i < grid->n[one]; i++)
				for (int j = 0; copy && j < grid->n[other]; j++)
					smooth_line(mu + (size_t)i * grid_step(grid, one) + (size_t)j * grid_step(grid, other), n,
						    grid_step(grid, axis), weight, reach, copy);
			free(copy);
		}
		free(weight);
	}
	return bad ? err_set(err, ENOMEM, "no memory to smooth the attenuation map") : 0;
}
