/* SPDX-License-Identifier: Apache-2.0 */
/* A small case for tests of sessions: a compressed breast with a lesion over a coarse detector, with air, noise and bins without
 * data; include after cmocka.h. Voxels are 1.9 bins wide, so that a slice is small compared with a view. */
#ifndef TOMONODE_TESTS_CASE_FIXTURE_H
#define TOMONODE_TESTS_CASE_FIXTURE_H

#include "recon/phantom/phantom.h"
#include "tests/recon/dbt/dbt_reconstruct.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define CASE_VIEWS 7
#define CASE_SLICES 11
#define CASE_SUPPORT 17

struct test_case {
	struct scan *scan;
	float *line, *valid; /* CASE_VIEWS views */
	size_t view_bins;
};

static const struct dbt_protocol case_protocol = {
	.algorithm = ALGORITHM_OSEM,
	.iterations = 2,
	.relaxation = 0.7,
	.prior_gamma = 2,
	.prior_across = 1,
	.filter = DBT_FILTER_HANN,
	.filter_cut = 0.8,
	.voxel = 1.9,
	.slice_spacing = 2,
	.projector = PROJECTION_SLICES,
};

static const struct case_algorithm {
	const char *name;
	enum algorithm algorithm;
	int subsets;
	double prior_weight;
	enum prior_kind prior;
} case_algorithms[] = {
	{"osem", ALGORITHM_OSEM, 0},
	{"osem, 3 subsets", ALGORITHM_OSEM, 3},
	{"mlem", ALGORITHM_MLEM, 0},
	{"ostr", ALGORITHM_OSTR, 0},
	{"mltr", ALGORITHM_MLTR, 0},
	{"sart", ALGORITHM_SART, 0},
	{"bp", ALGORITHM_BP, 0},
	{"sart, 2 subsets", ALGORITHM_SART, 2},
	{"fbp", ALGORITHM_FBP, 0},
	{"osem, relative difference", ALGORITHM_OSEM, 0, 0.1, PRIOR_RELATIVE},
	{"osem, 3 subsets, quadratic", ALGORITHM_OSEM, 3, 0.1, PRIOR_QUADRATIC},
	{"mltr, relative difference", ALGORITHM_MLTR, 0, 0.1, PRIOR_RELATIVE},
	{"ostr, quadratic", ALGORITHM_OSTR, 0, 0.1, PRIOR_QUADRATIC},
};

#define CASE_ALGORITHMS (sizeof(case_algorithms) / sizeof(case_algorithms[0]))

static inline struct dbt_protocol case_with(const struct case_algorithm *a, enum projection_model model)
{
	struct dbt_protocol p = case_protocol;

	p.algorithm = a->algorithm;
	p.subsets = a->subsets;
	p.prior = a->prior;
	p.prior_weight = a->prior_weight;
	p.projector = model;
	return p;
}

/* ratio: turn of the detector per angle of the source. */
static inline struct test_case case_open_turning(double ratio)
{
	struct shape shapes[] = {
		{SHAPE_BREAST, ROLE_BODY, {0, 3, CASE_SUPPORT + 10}, {30, 24, 10}, 0.05},
		{SHAPE_ELLIPSOID, ROLE_LESION, {12, -4, CASE_SUPPORT + 8}, {4, 4, 4}, 0.03},
	};
	struct phantom phantom = {"case", 2, shapes};
	struct test_case c = {.scan = fixture_turning_scan(44, 62, 1, CASE_VIEWS, ratio)};
	size_t n = scan_view_size(c.scan) * CASE_VIEWS;
	uint32_t seed = 5;

	c.view_bins = scan_view_size(c.scan);
	c.line = take_memory(n * sizeof(float));
	c.valid = take_memory(n * sizeof(float));
	for (int i = 0; i < CASE_VIEWS; i++)
		assert_int_equal(phantom_project(&phantom, c.scan, i, c.line + (size_t)i * c.view_bins, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		c.valid[i] = c.line[i] > 0 ? 1 : -1;
		c.line[i] *= 0.98f + 0.04f * fixture_random(&seed);
		if (fixture_random(&seed) < 0.02f)
			c.valid[i] = 0;
	}
	return c;
}

static inline struct test_case case_open(void)
{
	return case_open_turning(0);
}

static inline struct dbt_plan case_plan(const struct test_case *c, const struct dbt_protocol *p, struct device *dev)
{
	struct dbt_plan plan;
	struct err err = {0};

	assert_done(dbt_plan(p, c->scan, CASE_SUPPORT, 2 * CASE_SLICES, dev, &plan, &err), &err);
	return plan;
}

/* NULL: this build has no FFT, which the algorithm needs. */
static inline float *case_run(const struct test_case *c, const struct dbt_protocol *p, const struct dbt_plan *plan,
			      struct device *dev)
{
	float *volume = take_memory(grid_size(&plan->grid) * sizeof(*volume));
	struct err err = {0};
	int r;

	r = dbt_reconstruct(p, plan, c->scan, dev, c->line, c->valid, NULL, volume, NULL, &err);
	if (!TOMONODE_FFT && r == -ENOTSUP)
		return NULL;
	assert_done(r, &err);
	return volume;
}

#endif
