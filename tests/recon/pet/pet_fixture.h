/* SPDX-License-Identifier: Apache-2.0 */
/* A small PET scanner and noise-free data of shapes in it; include after cmocka.h. */
#ifndef TOMONODE_TESTS_PET_FIXTURE_H
#define TOMONODE_TESTS_PET_FIXTURE_H

#include "recon/phantom/pet_phantom.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/recon/pet/pet_reconstruct.h"
#include "tests/test.h"

#define PET_RINGS 6
#define PET_FOV 80.0 /* mm */
#define PET_MATRIX 32
#define PET_SLICES (2 * PET_RINGS - 1)

/* Steps of 4.5 degrees, including 0, 45 and 90 degrees. Span 3, ring differences up to 4: 25 planes. */
static inline struct michelogram pet_scanner_small(bool arc_corrected)
{
	struct michelogram m = {
		.scanner = {PET_RINGS, 96, 6, 120, 5, 4},
		.n_radial = arc_corrected ? 49 : 51,
		.n_angles = 40,
		.arc_corrected = arc_corrected,
	};

	fixture_segments(&m, 3, 4);
	return m;
}

static const struct pet_protocol pet_protocol_small = {
	.algorithm = ALGORITHM_MLEM,
	.iterations = 10,
	.subsets = 5,
	.matrix = PET_MATRIX,
	.fov_radius = PET_FOV,
	.projector = PROJECTION_EXACT,
	.filter_cut = 1,
};

/* Compute line integrals along the rays of the michelogram, in its order; with time of flight for each TOF bin. */
static inline float *pet_lines(const struct michelogram *m, const struct shape *shapes, size_t n)
{
	struct phantom phantom = {"", n, (struct shape *)(uintptr_t)shapes};
	float *line = take_memory(michelogram_size(m) * sizeof(*line));
	int *u_of = take_memory(michelogram_planes(m) * sizeof(*u_of));
	size_t bins = michelogram_planes(m) * (size_t)m->n_angles * (size_t)m->n_radial;
	int *plane = NULL;
	struct scan *scan = fixture_michelogram_scan(m, PET_FOV, &plane);

	for (int u = 0; u < scan->n_u; u++)
		u_of[plane[u]] = u;
	for (int k = 0; k < scan_ray_bins(scan); k++)
		assert_int_equal(pet_phantom_project(&phantom, scan, u_of, scan->n_u, scan->tof.n > 0 ? k : PET_PHANTOM_ALL_BINS,
						     line + (size_t)k * bins, NULL),
				 0);
	return line;
}

static inline struct pet_plan pet_plan_of(const struct pet_protocol *p, const struct michelogram *m, enum pet_factors factors,
					  bool background, struct device *dev)
{
	struct pet_plan plan;
	struct err err = {0};

	assert_done(pet_plan(p, m, factors, background, dev, &plan, &err), &err);
	return plan;
}

static inline size_t pet_voxels(const struct pet_plan *plan)
{
	return (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * (size_t)plan->grid.n[2];
}

static inline float *pet_image_with(const struct pet_protocol *p, const struct michelogram *m, struct device *dev,
				    struct pet_cache *cache, const float *y, enum pet_factors which, const float *factors,
				    const float *background, struct pet_report *ret_report)
{
	struct pet_plan plan = pet_plan_of(p, m, which, background, dev);
	float *x = take_memory(pet_voxels(&plan) * sizeof(*x));
	struct err err = {0};
	int r;

	r = pet_reconstruct_with(p, &plan, m, dev, cache, y, which, factors, background, NULL, x, ret_report, &err);
	if (!TOMONODE_FFT && r == -ENOTSUP && p->algorithm == ALGORITHM_FBP)
		skip_because("this build has no FFT (kissfft)");
	assert_done(r, &err);
	return x;
}

static inline float *pet_image_cached(const struct pet_protocol *p, const struct michelogram *m, struct device *dev,
				      struct pet_cache *cache, const float *y, const float *factors, const float *background,
				      struct pet_report *ret_report)
{
	return pet_image_with(p, m, dev, cache, y, factors ? PET_FACTORS_SHARED : PET_FACTORS_NONE, factors, background,
			      ret_report);
}

static inline float *pet_image(const struct pet_protocol *p, const struct michelogram *m, struct device *dev, const float *y,
			       const float *factors, const float *background, struct pet_report *ret_report)
{
	return pet_image_cached(p, m, dev, NULL, y, factors, background, ret_report);
}

/* Return the mean over the voxels whose centre is within `radius` of the axis, in the slices first <= k < end. */
static inline double pet_mean(const struct pet_plan *plan, const float *x, double radius, int first, int end)
{
	const struct grid *g = &plan->grid;
	double sum = 0;
	size_t n = 0;

	for (int k = first; k < end; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++) {
				double at_x = g->lo[0] + (i + 0.5) * g->h[0], at_y = g->lo[1] + (j + 0.5) * g->h[1];

				if (at_x * at_x + at_y * at_y >= radius * radius)
					continue;
				sum += x[((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i];
				n++;
			}
	assert_true(n > 0);
	return sum / (double)n;
}

/* Compute the centre of mass of the voxels above half of the maximum, mm. */
static inline void pet_centre(const struct pet_plan *plan, const float *x, double ret_centre[3])
{
	const struct grid *g = &plan->grid;
	size_t n = pet_voxels(plan);
	double mass = 0, most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, x[i]);
	ret_centre[0] = ret_centre[1] = ret_centre[2] = 0;
	for (size_t i = 0; i < n; i++) {
		size_t at[3] = {i % (size_t)g->n[0], i / (size_t)g->n[0] % (size_t)g->n[1],
				i / (size_t)g->n[0] / (size_t)g->n[1]};

		if (x[i] < most / 2)
			continue;
		mass += x[i];
		for (int c = 0; c < 3; c++)
			ret_centre[c] += x[i] * (g->lo[c] + ((double)at[c] + 0.5) * g->h[c]);
	}
	for (int c = 0; c < 3; c++)
		ret_centre[c] /= mass;
}

#endif
