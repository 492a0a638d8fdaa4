/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline from line integrals to a volume: plans and their errors, missing data. */
#include "tests/recon/dbt/slab_fixture.h"
#include "tests/test.h"

static const struct dbt_protocol osem = {
	.algorithm = ALGORITHM_OSEM, .iterations = 1, .voxel = 0.34, .slice_spacing = 1, .projector = PROJECTION_SLICES};

TEST(plan_of_the_inspiration)
{
	struct scan *scan = fixture_scan(2816, 3584, 0.085, 25);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct dbt_protocol p = osem;
	struct dbt_plan plan;

	assert_int_equal(dbt_plan(&p, scan, 17, 59.2, dev, &plan, NULL), 0);
	assert_int_equal(plan.bin, 4);
	assert_int_equal(plan.n_u, 704);
	assert_int_equal(plan.n_v, 896);
	assert_int_equal(plan.subsets, 25);
	assert_int_equal(plan.grid.n[0], 704);
	assert_int_equal(plan.grid.n[1], 896);
	assert_int_equal(plan.grid.n[2], 60);
	assert_near(plan.grid.lo[1], -152.32, 1e-9);
	assert_near(plan.grid.lo[2], 17, 0);
	assert_true(plan.bytes.volumes == (size_t)4 * 704 * 896 * 60);
	assert_true(plan.bytes.total == plan.bytes.volumes + plan.bytes.data + plan.bytes.tables);
	/* the sum contains the volume, the projections with their mask, one ratio, and less than 64 MB of other data */
	assert_true(plan.bytes.total < plan.bytes.volumes + plan.bytes.data + (size_t)64 * 1000 * 1000);
	p.voxel = 0;
	assert_int_equal(dbt_plan(&p, scan, 17, 60, dev, &plan, NULL), 0);
	assert_int_equal(plan.bin, 1);
	assert_int_equal(plan.grid.n[0], 2816);
	assert_int_equal(plan.grid.n[2], 60);
	p.voxel = 0.3; /* not a multiple of the bins: bins are smaller than voxels, and the voxels cover the detector */
	assert_int_equal(dbt_plan(&p, scan, 17, 60, dev, &plan, NULL), 0);
	assert_int_equal(plan.bin, 3);
	assert_true(plan.grid.n[0] * 0.3 >= 239.36 && (plan.grid.n[0] - 1) * 0.3 < 239.36);
	p.voxel = 0.076; /* 0.9 of a bin is 0.0765: smaller voxels are as large as a bin */
	assert_int_equal(dbt_plan(&p, scan, 17, 60, dev, &plan, NULL), 0);
	assert_int_equal(plan.grid.n[0], 2816);
	assert_near(plan.grid.h[0], 0.085, 0);
	p.voxel = 0.077;
	assert_int_equal(dbt_plan(&p, scan, 17, 60, dev, &plan, NULL), 0);
	assert_int_equal(plan.bin, 1);
	assert_near(plan.grid.h[0], 0.077, 0);
	p.algorithm = ALGORITHM_MLEM;
	assert_int_equal(dbt_plan(&p, scan, 17, 60, dev, &plan, NULL), 0);
	assert_int_equal(plan.subsets, 1);
}

static void refuse(const struct dbt_protocol *p, double support, double thickness, int code, const char *word)
{
	struct scan *scan = fixture_scan(2816, 3584, 0.085, 25);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct dbt_plan plan;
	struct err err = {0};

	assert_error(dbt_plan(p, scan, support, thickness, dev, &plan, &err), &err, code, word);
}

TEST(plan_refusals)
{
	/* bins so small that their number per voxel exceeds an int */
	struct dbt_geometry g = {64, 64, 1e-12, 47, 608.5, 0, 2, (double[]){-5, 5}};
	struct dbt_protocol p = osem;
	struct dbt_plan plan;
	struct err err = {0};

	refuse(&p, 17, 0, EINVAL, "thickness=0");
	refuse(&p, 17, NAN, EINVAL, "thickness=nan");
	refuse(&p, 17, 301, EINVAL, "thickness=301");
	refuse(&p, -1, 60, EINVAL, "support=-1");
	refuse(&p, NAN, 60, EINVAL, "support=nan");
	refuse(&p, 500, 290, EINVAL, "source of projection 0");
#define REFUSED_PLAN(field, value, code, word)                                                                                   \
	p = osem, p.field = value;                                                                                               \
	refuse(&p, 17, 60, code, word)
	REFUSED_PLAN(iterations, 0, EINVAL, "iterations=0");
	REFUSED_PLAN(subsets, 26, EINVAL, "subsets=26");
	REFUSED_PLAN(subsets, -1, EINVAL, "subsets=-1");
	REFUSED_PLAN(voxel, NAN, EINVAL, "voxel=nan");
	REFUSED_PLAN(voxel, 0.001, EINVAL, "voxel=0.001");
	REFUSED_PLAN(edge_taper, NAN, EINVAL, "edge_taper=nan");
	REFUSED_PLAN(slice_spacing, 0, EINVAL, "slice_spacing=0");
	REFUSED_PLAN(tile[1], -2, EINVAL, "tile=0x-2");
	REFUSED_PLAN(algorithm, ALGORITHM_COUNT, EINVAL, "; allowed: bp, fbp, sart, mlem, osem, ostr, mltr");
	REFUSED_PLAN(projector, 7, EINVAL, "projector=7");
	REFUSED_PLAN(memory_limit, 1000, ENOMEM, "no voxel size");
	REFUSED_PLAN(memory_limit, 10 * 1000 * 1000, ENOMEM, "the limit is 10.0 MB (memory_limit"); /* a view needs 6 * 2.5 MB */
	refuse(&p, 17, 60, ENOMEM, "voxel=2.72 would need");					    /* and a slice 3 * 2.5 MB */
	p = osem;
	p.voxel = 5;
	assert_error(dbt_plan(&p, fixture_dbt_scan(&g), 17, 60, fixture_device(FIXTURE_CPU, 1), &plan, &err), &err, EINVAL,
		     "larger than the detector");
}

/* A view without a single valid bin, a block of bins missing in all views, zeros in the data: finite, >= 0,
 * and flat elsewhere. */
TEST(missing_data)
{
	struct dbt_protocol p = osem;
	struct slab s;
	size_t per_view, n;

	p.voxel = 2;
	s = slab_open(&p, FIXTURE_POISON);
	per_view = scan_view_size(s.scan);
	for (size_t i = 0; i < per_view; i++) {
		s.line[7 * per_view + i] = NAN; /* invalid bins may have any value */
		s.valid[7 * per_view + i] = 0;
	}
	for (int view = 0; view < 25; view++) {
		for (int v = 0; v < 12; v++) {
			for (int u = 25; u < 40; u++) {
				s.line[(size_t)view * per_view + (size_t)v * 40 + (size_t)u] = 0;
				s.valid[(size_t)view * per_view + (size_t)v * 40 + (size_t)u] = 0;
			}
		}
	}
	for (int u = 0; u < 5; u++) /* air in a corner: valid bins with the value 0 */
		s.line[119 * 40 + u] = 0;
	slab_run(&s, &p);
	n = grid_size(&s.plan.grid);
	for (size_t i = 0; i < n; i++)
		assert_true(s.volume[i] >= 0 && isfinite(s.volume[i]));
	for (int k = 0; k < HEIGHT; k++)
		assert_near(slice_mean(&s, k), MU, 0.01 * MU);
	/* No ray crosses the far edge of the top slice (rays converge toward the source): it is 0, not the starting value. */
	assert_near(s.volume[n - 1], 0, 0);
	/* No ray crosses the voxels directly above the missing block either. */
	assert_near(s.volume[5 * 40 + 35], 0, 0);
	assert_true(s.volume[60 * 40 + 20] > 0);
}

TEST(all_zero)
{
	struct dbt_protocol p = osem;
	struct slab s;

	p.voxel = 2;
	s = slab_open(&p, FIXTURE_POISON);
	memset(s.line, 0, scan_view_size(s.scan) * 25 * sizeof(float));
	slab_run(&s, &p);
	for (size_t i = 0; i < grid_size(&s.plan.grid); i++)
		assert_near(s.volume[i], 0, 2 * RULE_TINY); /* the least value of a voxel in the support */
}
