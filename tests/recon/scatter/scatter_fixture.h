/* SPDX-License-Identifier: Apache-2.0 */
/* A random case of single scatter for a device's scatter_pairs(): activity and mu without any symmetry, detectors around them. */
#ifndef TOMONODE_TESTS_RECON_SCATTER_FIXTURE_H
#define TOMONODE_TESTS_RECON_SCATTER_FIXTURE_H

#include "recon/scatter/single_scatter.h"
#include "tests/recon/dbt_fixture.h"

#define SCATTER_DETECTORS 60
#define SCATTER_PAIRS (SCATTER_DETECTORS * (SCATTER_DETECTORS - 1))

static const struct single_scatter_conf usual_window = {
	.energy_low = 435, .energy_high = 650, .energy_resolution = 12, .seed = 1};

struct scatter_case {
	struct grid grid;
	float *activity, *mu;
	float points[300][4], detectors[SCATTER_DETECTORS][6];
	float angles[SCATTER_ANGLES + 1][2];
	int32_t pairs[SCATTER_PAIRS][2]; /* all, in both orders */
	struct scatter_spec spec;
};

/* n_points: at most 300, more than one batch. */
static inline struct scatter_case *scatter_case(int n_points, struct scan_tof tof)
{
	struct scatter_case *c = take_zeros(1, sizeof(*c));
	uint32_t seed = 7;
	int pair = 0;

	c->grid = (struct grid){{13, 11, 9}, {12, 13, 15}, {-80, -70, -66}, false};
	c->activity = fixture_floats(grid_size(&c->grid), 1, 0, 2);
	c->mu = fixture_floats(grid_size(&c->grid), 2, 0, 0.015f);
	assert_int_equal(single_scatter_angles(&usual_window, c->angles, NULL), 0);
	for (int i = 0; i < n_points; i++) {
		for (int k = 0; k < 3; k++)
			c->points[i][k] = (float)(c->grid.lo[k] + c->grid.n[k] * c->grid.h[k] * (double)fixture_random(&seed));
		c->points[i][3] = 10 + 50 * fixture_random(&seed);
	}
	for (int i = 0; i < SCATTER_DETECTORS; i++) {
		double angle = 6.283 * i / SCATTER_DETECTORS + 0.02 * (double)fixture_random(&seed);
		const double at[6] = {300 * cos(angle), 300 * sin(angle), 240 * (double)fixture_random(&seed) - 120,
				      -cos(angle),	-sin(angle),	  0};

		for (int k = 0; k < 6; k++)
			c->detectors[i][k] = (float)at[k];
		for (int j = 0; j < SCATTER_DETECTORS; j++)
			if (j != i) {
				c->pairs[pair][0] = i;
				c->pairs[pair++][1] = j;
			}
	}
	c->spec = (struct scatter_spec){.grid = &c->grid,
					.n_points = (size_t)n_points,
					.n_pairs = SCATTER_PAIRS,
					.n_detectors = SCATTER_DETECTORS,
					.points = c->points,
					.detectors = c->detectors,
					.pairs = c->pairs,
					.angles = c->angles,
					.tof = tof};
	return c;
}

static inline float *scatter_pairs_of(struct device *dev, const struct scatter_spec *spec, const float *activity, const float *mu)
{
	size_t n = grid_size(spec->grid), results = spec->n_pairs * (size_t)(spec->tof.n > 0 ? spec->tof.n : 1);
	struct buf x = fixture_upload(dev, activity, n), attenuation = fixture_upload(dev, mu, n),
		   pairs = fixture_upload(dev, NULL, results);
	struct err err = {0};

	assert_done(dev->ops->scatter_pairs(spec, &x, &attenuation, &pairs, &err), &err);
	return fixture_download(&pairs);
}

#endif
