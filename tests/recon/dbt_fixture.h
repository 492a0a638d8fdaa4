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

/* The devices on which every operator test runs, and a GPU, which not every machine has. */
enum { FIXTURE_CPU, FIXTURE_POISON, FIXTURE_DEVICES, FIXTURE_CUDA };

static inline struct device *fixture_device(int which, int threads)
{
	struct device *dev = NULL;
	struct err err = {0};

	assert_done(which == FIXTURE_CUDA     ? device_cuda_open(0, &dev, &err)
		    : which == FIXTURE_POISON ? device_poison_open(threads, &dev, &err)
					      : device_cpu_open(threads, &dev, &err),
		    &err);
	return dev;
}

static inline float *fixture_floats(size_t n, uint32_t seed, float lo, float hi)
{
	float *x = malloc((n ? n : 1) * sizeof(*x));

	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		x[i] = lo + (hi - lo) * fixture_random(&seed);
	return x;
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
	struct scan *scan = NULL;

	for (int i = 0; i < n_views; i++)
		angle[i] = -25 + 50.0 * i / (n_views - 1);
	assert_int_equal(scan_create_dbt(&g, &scan, NULL), 0);
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
	struct scan *scan = NULL;

	assert_int_equal(scan_create_dbt(&g, &scan, NULL), 0);
	return scan;
}

static inline struct linop *fixture_projector(struct device *dev, const struct projection_spec *spec)
{
	struct linop *op = NULL;
	struct err err = {0};

	if (projector_create(dev, spec, &op, &err) < 0)
		print_error("%s\n", err.msg);
	assert_non_null(op);
	return op;
}

/* Return the largest difference, relative to the largest value of b. */
static inline double fixture_difference(const float *a, const float *b, size_t n)
{
	double most = 0, scale = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)a[i] - b[i]);

		most = d >= most ? d : d < most ? most : INFINITY; /* NaN counts as infinite */
		scale = fmax(scale, fabs(b[i]));
	}
	return scale > 0 ? most / scale : most;
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
	free(got);
	free(ones);
	linop_free(op);
	buf_release(&x);
	buf_release(&p);
}

/* scan_create_dbt() refuses the geometry with this word. */
static inline void fixture_refuse_scan(const struct dbt_geometry *g, const char *word)
{
	struct scan *scan = NULL;
	struct err err = {0};

	assert_int_equal(scan_create_dbt(g, &scan, &err), -EINVAL);
	assert_null(scan);
	if (!strstr(err.msg, word))
		fail_msg("'%s' does not name '%s'", err.msg, word);
}

#endif
