/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel beams in tests: one call from data to volume; include after cmocka.h. */
#ifndef TOMONODE_TESTS_PARALLEL_FIXTURE_H
#define TOMONODE_TESTS_PARALLEL_FIXTURE_H

#include "recon/parallel/parallel.h"
#include "recon/phantom/parallel_phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

/* Rays reach the corners of an n x n image of the same pitch. */
static inline struct parallel_scan parallel_scan_of(int n, int n_angles, int n_slices)
{
	return (struct parallel_scan){
		.n_slices = n_slices,
		.n_angles = n_angles,
		.n_radial = (int)ceil(n * 1.4142135623730951) + 2,
		.bin = 1,
		.slice = 1.5,
		.arc = 180,
	};
}

static inline struct parallel_protocol parallel_protocol_of(enum algorithm algorithm, int n)
{
	return (struct parallel_protocol){
		.algorithm = algorithm,
		.iterations = 10,
		.subsets = 1,
		.relaxation = 1,
		.filter = PARALLEL_SHEPP_LOGAN,
		.filter_cut = 1,
		.route = PARALLEL_FOURIER,
		.matrix = n,
		.pixel = 1,
		.projector = PROJECTION_PATHS,
	};
}

static inline struct parallel_plan parallel_plan_made(const struct parallel_protocol *p, const struct parallel_scan *s,
						      struct device *dev)
{
	struct parallel_plan plan;
	struct err err = {0};

	assert_done(parallel_plan(p, s, dev, &plan, &err), &err);
	return plan;
}

static inline size_t parallel_pixels(const struct parallel_plan *plan)
{
	return (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * (size_t)plan->grid.n[2];
}

static inline float *parallel_image(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
				    const float *lines, struct parallel_report *ret_report)
{
	struct parallel_plan plan = parallel_plan_made(p, s, dev);
	float *volume = take_memory(parallel_pixels(&plan) * sizeof(*volume));
	struct err err = {0};

	memset(volume, 0xff, parallel_pixels(&plan) * sizeof(*volume)); /* NaN */
	assert_done(parallel_reconstruct(p, &plan, s, dev, lines, NULL, volume, ret_report, &err), &err);
	return volume;
}

static inline float *parallel_project(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
				      const float *volume)
{
	struct parallel_plan plan = parallel_plan_made(p, s, dev);
	float *lines = take_memory(parallel_size(s) * sizeof(*lines));
	struct err err = {0};

	memset(lines, 0xff, parallel_size(s) * sizeof(*lines));
	assert_done(parallel_radon(p, &plan, s, dev, volume, lines, &err), &err);
	return lines;
}

/* Compute exact line integrals of shapes; those of slice k are multiplied by 1 - taper k / n_slices. */
static inline float *parallel_lines(const struct parallel_scan *s, const struct parallel_shape *shapes, size_t n, double taper)
{
	struct parallel_phantom phantom = {n, (struct parallel_shape *)(uintptr_t)shapes};
	float *lines = take_memory(parallel_size(s) * sizeof(*lines));

	assert_int_equal(parallel_phantom_project(&phantom, s, taper, lines, NULL), 0);
	return lines;
}

/* Draw shapes: each pixel is the mean over samples x samples points. */
static inline float *parallel_truth(const struct parallel_plan *plan, const struct parallel_shape *shapes, size_t n, double taper,
				    int samples)
{
	struct parallel_phantom phantom = {n, (struct parallel_shape *)(uintptr_t)shapes};
	float *volume = take_memory(parallel_pixels(plan) * sizeof(*volume));

	assert_int_equal(parallel_phantom_draw(&phantom, &plan->grid, taper, samples, volume, NULL), 0);
	return volume;
}

static inline double largest(const float *x, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)x[i]));
	return most;
}

/* Return the largest difference; NaN counts as infinite. */
static inline double farthest(const float *a, const float *b, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		double gap = fabs((double)a[i] - b[i]);

		if (!(gap <= most))
			most = isnan(gap) ? HUGE_VAL : gap;
	}
	return most;
}

#endif
