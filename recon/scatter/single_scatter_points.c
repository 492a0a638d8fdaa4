/* SPDX-License-Identifier: Apache-2.0 */
/* single_scatter_points.c - the physics and the scatter points of a single scatter simulation. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/scatter/single_scatter_internal.h"

#define KEV 511.0

/* Return the total cross section of Klein & Nishina over 2 pi r_e^2; k: energy / 511 keV. */
static double total_section(double k)
{
	double a = 1 + 2 * k;

	return (1 + k) / (k * k) * (2 * (1 + k) / a - log(a) / k) + log(a) / (2 * k) - (1 + 3 * k) / (a * a);
}

/* Return the share of photons of an energy that the window accepts. */
static double window_share(const struct single_scatter_conf *c, double kev)
{
	double sigma = 0.01 * c->energy_resolution * sqrt(KEV * kev) / TOF_FWHM_PER_SIGMA * sqrt(2);

	return 0.5 * (erf((c->energy_high - kev) / sigma) - erf((c->energy_low - kev) / sigma));
}

int single_scatter_angles(const struct single_scatter_conf *c, float (*ret_angles)[2], struct err *err)
{
	double whole = 0;

	if (c->energy_low > 0 && c->energy_low < KEV && c->energy_high > KEV && isfinite(c->energy_high) &&
	    c->energy_resolution > 0 && c->energy_resolution < 100)
		whole = window_share(c, KEV);
	if (!(whole > 0))
		return err_set(
			err, EINVAL,
			"scatter: an energy window of %g to %g keV with a resolution of %g percent; it must contain 511 keV",
			c->energy_low, c->energy_high, c->energy_resolution);
	for (int i = 0; i <= SCATTER_ANGLES; i++) {
		double cosine = (double)i / (SCATTER_ANGLES / 2) - 1, p = 1 / (2 - cosine);
		double section = 0.5 * p * p * (p + 1 / p - (1 - cosine * cosine)) / (2 * M_PI * total_section(1));
		double seen = window_share(c, KEV * p) / whole;

		ret_angles[i][0] = seen > WINDOW_LEAST ? (float)(section * seen) : 0;
		ret_angles[i][1] = (float)(total_section(p) / total_section(1));
	}
	return 0;
}

/* Return a random number, 0 <= x < 1, of a cell: splitmix64 of seed, cell and number. */
static double random_of(uint64_t seed, size_t cell, uint64_t number)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 4 * (uint64_t)cell + number + 1;

	for (int i = 0; i < 2; i++) {
		x += 0x9e3779b97f4a7c15u;
		x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
		x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
		x ^= x >> 31;
	}
	return (double)(x >> 11) * 0x1p-53;
}

struct cells {
	int n[3];
	double per_voxel[3]; /* cells per voxel */
	double volume;	     /* of a voxel, mm^3 */
	double *sum;	     /* integral of mu of each cell, mm^2 */
	double *passed;	     /* of the voxels seen so far */
};

static size_t cell_of(const struct cells *c, const int at[3])
{
	size_t cell = 0;

	for (int axis = 2; axis >= 0; axis--) {
		int i = (int)((at[axis] + 0.5) * c->per_voxel[axis]);

		cell = cell * (size_t)c->n[axis] + (size_t)(i < c->n[axis] ? i : c->n[axis] - 1);
	}
	return cell;
}

static double mu_of(const struct grid *g, const float *mu, const int at[3])
{
	return mu[(size_t)at[0] * grid_step(g, 0) + (size_t)at[1] * grid_step(g, 1) + (size_t)at[2] * grid_step(g, 2)];
}

/* Write the point of each cell that has one; return their number. */
static size_t pick_points(const struct grid *g, const float *mu, double least, uint64_t seed, struct cells *c,
			  float (*ret_points)[4])
{
	size_t n = 0;
	int at[3];

	for (at[2] = 0; at[2] < g->n[2]; at[2]++)
		for (at[1] = 0; at[1] < g->n[1]; at[1]++)
			for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
				double value = mu_of(g, mu, at), before, chosen;
				size_t cell;

				if (value < least)
					continue;
				cell = cell_of(c, at);
				before = c->passed[cell];
				chosen = random_of(seed, cell, 0) * c->sum[cell];
				c->passed[cell] += value * c->volume;
				if (!(before <= chosen && chosen < c->passed[cell]))
					continue;
				for (int axis = 0; axis < 3; axis++)
					ret_points[n][axis] =
						(float)(g->lo[axis] +
							(at[axis] + random_of(seed, cell, 1 + (uint64_t)axis)) * g->h[axis]);
				ret_points[n++][3] = (float)c->sum[cell];
			}
	return n;
}

/* Add up mu in each cell; return the number of cells that scatter. */
static size_t sum_cells(const struct grid *g, const float *mu, double least, struct cells *c)
{
	size_t n = 0;
	int at[3];

	for (at[2] = 0; at[2] < g->n[2]; at[2]++)
		for (at[1] = 0; at[1] < g->n[1]; at[1]++)
			for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
				double value = mu_of(g, mu, at), *sum = &c->sum[cell_of(c, at)];

				if (value >= least) {
					n += *sum == 0;
					*sum += value * c->volume;
				}
			}
	return n;
}

static int cells_along(const struct single_scatter_conf *conf, const struct grid *g, int axis)
{
	return (int)fmax(1, fmin(ceil(g->n[axis] * g->h[axis] / conf->point_distance), g->n[axis]));
}

size_t single_scatter_cells(const struct single_scatter_conf *conf, const struct grid *g)
{
	return (size_t)cells_along(conf, g, 0) * (size_t)cells_along(conf, g, 1) * (size_t)cells_along(conf, g, 2);
}

int single_scatter_points(const struct single_scatter_conf *conf, const struct grid *g, const float *mu, float (**ret_points)[4],
			  size_t *ret_n, struct err *err)
{
	struct cells c = {.volume = g->h[0] * g->h[1] * g->h[2]};
	float(*points)[4] = NULL;
	size_t n_cells = single_scatter_cells(conf, g), n;
	int r = 0;

	for (int axis = 0; axis < 3; axis++) {
		c.n[axis] = cells_along(conf, g, axis);
		c.per_voxel[axis] = (double)c.n[axis] / g->n[axis];
	}
	c.sum = calloc(n_cells, sizeof(*c.sum));
	c.passed = calloc(n_cells, sizeof(*c.passed));
	if (!c.sum || !c.passed) {
		r = err_set(err, ENOMEM, "scatter: no memory for %zu cells", n_cells);
		goto out;
	}
	n = sum_cells(g, mu, conf->mu_least, &c);
	if (n == 0) {
		r = err_set(err, EDOM, "scatter: no voxel has a mu of %g/mm or more", conf->mu_least);
		goto out;
	}
	points = malloc(n * sizeof(*points));
	if (!points) {
		r = err_set(err, ENOMEM, "scatter: no memory for %zu points", n);
		goto out;
	}
	*ret_n = pick_points(g, mu, conf->mu_least, conf->seed, &c, points);
	*ret_points = points;
out:
	free(c.sum);
	free(c.passed);
	return r;
}
