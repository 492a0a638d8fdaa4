/* SPDX-License-Identifier: Apache-2.0 */
/* Small DBT set-ups for the operator and algorithm tests; include after cmocka.h. */
#ifndef TOMONODE_TESTS_DBT_FIXTURE_H
#define TOMONODE_TESTS_DBT_FIXTURE_H

#include "kernels/device.h"
#include "recon/core/linop.h"
#include "recon/core/projector.h"
#include "recon/core/scan.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

TEST_GIVES_BACK(scan_free);
TEST_GIVES_BACK(linop_free);

static inline struct scan *fixture_dbt_scan(const struct dbt_geometry *g)
{
	struct scan *scan = NULL;
	struct err err = {0};

	assert_done(scan_create_dbt(g, &scan, &err), &err);
	test_later(give_back_scan_free, scan);
	return scan;
}

/* Create a scan of n_views from -25 to 25 degrees, with the source above the chest wall and distances of a Siemens system. The
 * detector turns by `ratio` of the source's angle around its middle. */
static inline struct scan *fixture_turning_scan(int n_u, int n_v, double pitch, int n_views, double ratio)
{
	double angle[64];
	struct dbt_geometry g = {.n_u = n_u,
				 .n_v = n_v,
				 .pitch = pitch,
				 .axis_height = 47,
				 .source_axis = 608.5,
				 .n_views = n_views,
				 .angle = angle,
				 .detector_ratio = ratio};
	struct scan *scan;

	for (int i = 0; i < n_views; i++)
		angle[i] = -25 + 50.0 * i / (n_views - 1);
	scan = fixture_dbt_scan(&g);
	assert_true(scan->views[0].posed == (ratio != 0));
	return scan;
}

static inline struct scan *fixture_scan(int n_u, int n_v, double pitch, int n_views)
{
	return fixture_turning_scan(n_u, n_v, pitch, n_views, 0);
}

/* Create a scan with a still detector whose first view has this angle. */
static inline struct scan *fixture_scan_at(int n_u, int n_v, double pitch, double angle)
{
	struct dbt_geometry g = {.n_u = n_u,
				 .n_v = n_v,
				 .pitch = pitch,
				 .axis_height = 47,
				 .source_axis = 608.5,
				 .n_views = 2,
				 .angle = (double[]){angle, angle + 1}};

	return fixture_dbt_scan(&g);
}

static inline struct linop *fixture_projector(struct device *dev, const struct projection_spec *spec)
{
	struct linop *op = NULL;
	struct err err = {0};

	assert_done(projector_create(dev, spec, &op, &err), &err);
	test_later(give_back_linop_free, op);
	return op;
}

/* A uniform volume as wide as the rays need: every bin has the analytic chord, height / cos. */
static inline void fixture_check_chords(struct device *dev, const struct projection_spec *spec)
{
	const struct scan *scan = spec->scan;
	struct linop *op = fixture_projector(dev, spec);
	float *ones = fixture_floats(op->n_in, 1, 1, 1), *got;
	struct buf x = fixture_upload(dev, ones, op->n_in), p = fixture_upload(dev, NULL, op->n_out);

	assert_int_equal(op->apply(op, &x, &p, NULL), 0);
	got = fixture_download(&p);
	for (size_t i = 0; i < op->n_out; i++) {
		const struct scan_view *view = &scan->views[i / scan_view_size(scan)];
		double a[3], b[3], d2 = 0, want;

		scan_ray(scan, view, (int)(i % (size_t)scan->n_u), (int)(i / (size_t)scan->n_u % (size_t)scan->n_v), a, b);
		for (int c = 0; c < 3; c++)
			d2 += (a[c] - b[c]) * (a[c] - b[c]);
		want = spec->grid->n[2] * spec->grid->h[2] * sqrt(d2) / (a[2] - b[2]);
		assert_near(got[i], want, 1e-5 * want);
	}
}

/* scan_create_dbt() refuses the geometry with this word. */
static inline void fixture_refuse_scan(const struct dbt_geometry *g, const char *word)
{
	struct scan *scan = NULL;
	struct err err = {0};

	assert_error(scan_create_dbt(g, &scan, &err), &err, EINVAL, word);
	assert_null(scan);
}

#endif
