/* SPDX-License-Identifier: Apache-2.0 */
/* A slab of uniform tissue that fills the volume, for tests of algorithms; include after cmocka.h. */
#ifndef TOMONODE_TESTS_SLAB_FIXTURE_H
#define TOMONODE_TESTS_SLAB_FIXTURE_H

#include "recon/phantom/phantom.h"
#include "tests/recon/dbt/dbt_reconstruct.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define MU 0.05

/* Create a slab of MU that fills the volume and continues to the sides: the line integral of every ray is MU * height / cos. */
static inline void slab_lines(const struct scan *scan, double height, float *line, float *valid)
{
	size_t n = 0;

	for (int view = 0; view < scan->n_views; view++) {
		for (int v = 0; v < scan->n_v; v++) {
			for (int u = 0; u < scan->n_u; u++, n++) {
				double a[3], b[3], d2 = 0;

				scan_ray(scan, &scan->views[view], u, v, a, b);
				for (int c = 0; c < 3; c++)
					d2 += (a[c] - b[c]) * (a[c] - b[c]);
				line[n] = (float)(MU * height * sqrt(d2) / fabs(a[2] - b[2]));
				valid[n] = 1;
			}
		}
	}
}

struct slab {
	struct scan *scan;
	struct device *dev;
	struct dbt_plan plan;
	float *line, *valid, *volume;
	struct dbt_report report;
};

#define HEIGHT 50

static inline struct slab slab_open(const struct dbt_protocol *p, int device)
{
	struct slab s = {.scan = fixture_scan(40, 120, 2, 25), .dev = fixture_device(device, 2)};
	size_t n = scan_view_size(s.scan) * 25;

	assert_int_equal(dbt_plan(p, s.scan, 17, HEIGHT, s.dev, &s.plan, NULL), 0);
	s.line = take_memory(n * sizeof(float));
	s.valid = take_memory(n * sizeof(float));
	s.volume = take_memory(grid_size(&s.plan.grid) * sizeof(float));
	slab_lines(s.scan, HEIGHT, s.line, s.valid);
	return s;
}

static inline void slab_run(struct slab *s, const struct dbt_protocol *p)
{
	struct err err = {0};

	assert_done(dbt_reconstruct(p, &s->plan, s->scan, s->dev, s->line, s->valid, NULL, s->volume, &s->report, &err), &err);
}

/* Return the mean of the middle of a slice, 30 mm away from every side: its rays of all views are inside the slab. */
static inline double slice_mean(const struct slab *s, int k)
{
	const struct grid *g = &s->plan.grid;
	double sum = 0;
	int n = 0;

	for (int j = g->n[1] / 2 - 10; j < g->n[1] / 2 + 10; j++) {
		for (int i = 8; i < 22; i++, n++)
			sum += s->volume[((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i];
	}
	return sum / n;
}

/* Surround the slab with air on every side except the chest wall: it ends 60 mm from the chest wall and 80 mm to the sides. */
static inline void slab_ends(struct slab *s)
{
	struct shape box = {SHAPE_BOX, ROLE_BODY, {30, 0, 17 + 0.5 * HEIGHT}, {30, 80, 0.5 * HEIGHT}, MU};
	struct phantom phantom = {"box", 1, &box};

	for (int view = 0; view < 25; view++)
		assert_int_equal(phantom_project(&phantom, s->scan, view, s->line + (size_t)view * scan_view_size(s->scan), NULL),
				 0);
}

/* Compute the smallest and the largest mean of a slice, and the mean of all slices. */
static inline void slab_depth(const struct slab *s, double *ret_lo, double *ret_hi, double *ret_mean)
{
	*ret_lo = INFINITY;
	*ret_hi = -INFINITY;
	*ret_mean = 0;
	for (int k = 0; k < HEIGHT; k++) {
		double mean = slice_mean(s, k);

		*ret_lo = fmin(*ret_lo, mean);
		*ret_hi = fmax(*ret_hi, mean);
		*ret_mean += mean / HEIGHT;
	}
}

#endif
