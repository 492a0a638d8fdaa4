/* SPDX-License-Identifier: Apache-2.0 */
/* Filling the rim of a synthetic view: the level at the skin, detail, what is given, what is not filled. */
#include "recon/dbt/rim_fill.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define LEVEL 2.3
#define WIDTH 24.0 /* mm, of the rim */
#define RADIUS 70.0

/* A breast whose outline is half of a circle around the middle of the chest wall: depth from the skin, mm. */
static double depth_of(const struct grid *g, int i)
{
	double x = g->h[0] * (i % g->n[0] + 0.5), y = g->h[1] * (i / g->n[0] + 0.5 - g->n[1] / 2.0);

	return RADIUS - hypot(x, y);
}

static double part_of(double depth)
{
	double t = fmin(fmax(depth / WIDTH, 0), 1);

	return sqrt(1.6 * t - 0.6 * t * t);
}

/* Whether a point is in the part of the inside that is unlike the rest. */
static bool is_other(const struct grid *g, int i, double depth)
{
	return depth > 26 && depth < 44 && fabs(g->h[1] * (i / g->n[0] + 0.5 - g->n[1] / 2.0)) < 10;
}

/* Make an image of the rim with a texture of `noise`, calcifications, and a part that has `other` times more. */
static float *make_image(const struct grid *g, double noise, double other)
{
	float *image = fixture_floats((size_t)(g->n[0] * g->n[1]), 7, -(float)noise, (float)noise);

	for (int i = 0; i < g->n[0] * g->n[1]; i++) {
		double depth = depth_of(g, i);

		if (depth > 0)
			image[i] += (float)(LEVEL * part_of(depth) * (1 + (is_other(g, i, depth) ? other : 0)));
		else
			image[i] = 0;
		image[i] += depth > 2 && i % 911 == 0 ? 1.5f : 0;
	}
	return image;
}

static struct grid grid_of(double h)
{
	return (struct grid){{(int)(90 / h), (int)(170 / h), 1}, {h, h, 1}, {0, 0, 0}};
}

/* From 1 mm inside the skin on the filled rim has the level of the fat inside, whether dense tissue is behind it or not; air stays
 * 0, the deep inside is not changed, and what is added has no detail: it changes slowly from pixel to pixel. */
TEST(fill)
{
	for (int way = 0; way < 4; way++) {
		struct grid g = grid_of((double[]){0.34, 0.34, 0.68, 0.17}[way]);
		float *image = make_image(&g, 0.05, (double[]){0, 0.5, 0, -0.2}[way]);
		size_t n = (size_t)g.n[0] * (size_t)g.n[1];
		float *filled = take_memory(n * sizeof(*filled));
		double sum[30] = {0}, most = 0;
		int count[30] = {0};
		struct rim_fill_report r;

		memcpy(filled, image, n * sizeof(*filled));
		assert_int_equal(rim_fill(&g, filled, &r, NULL), 0);
		if (!r.used || r.reason[0] || r.sectors < 20)
			fail_msg("voxels of %g mm: %d sectors, level %g, %s", g.h[0], r.sectors, r.level, r.reason);
		assert_near(r.level, LEVEL, 0.03 * LEVEL);
		for (size_t i = 0; i < n; i++) {
			double depth = depth_of(&g, (int)i);
			double add = (double)filled[i] - (double)image[i];

			assert_true(isfinite(filled[i]));
			if (depth < -0.7)
				assert_true(filled[i] == 0);
			if (depth > 30 && depth < 40 &&
			    is_other(&g, (int)i, depth)) /* neither dense nor fatty tissue is filled */
				assert_true(fabs(add) < 0.02 * LEVEL);
			if (depth > 50)
				assert_true(add == 0);
			if (depth < 1 || depth >= 30 || is_other(&g, (int)i, depth))
				continue;
			sum[(int)depth] += (double)filled[i] / LEVEL;
			count[(int)depth]++;
			if (depth > 8 && i % (size_t)g.n[0] > 1) /* second difference along x; 0.2 / mm^2 is the rim's at 1 mm */
				most = fmax(most, fabs(add - 2 * ((double)filled[i - 1] - (double)image[i - 1]) +
						       ((double)filled[i - 2] - (double)image[i - 2])));
		}
		for (int d = 1; d < 30; d++)
			if (!(sum[d] >= 0.95 * count[d] && sum[d] <= 1.1 * count[d])) /* also of NaN */
				fail_msg("voxels of %g mm, %d mm: %g", g.h[0], d, sum[d] / count[d]);
		assert_true(most < 0.015 * LEVEL);
	}
}

/* Where the breast is too narrow for a profile, the nearest one is taken: the tip of a long breast is filled, too. */
TEST(a_part_without_profiles)
{
	struct grid g = {{330, 230, 1}, {0.5, 0.5, 1}, {0, 0, 0}};
	size_t n = (size_t)g.n[0] * (size_t)g.n[1];
	float *image = take_memory(n * sizeof(*image)), *filled = take_memory(n * sizeof(*filled));
	struct rim_fill_report r;

	for (size_t i = 0; i < n; i++) {
		double x = 0.5 * (double)(i % (size_t)g.n[0] + 0.5), y = 0.5 * (double)(i / (size_t)g.n[0]) + 0.25 - 57.5;
		double depth = fmax(54 - hypot(x, y), fmin(12 - fabs(y), 160 - x));

		image[i] = depth > 0 ? (float)(LEVEL * part_of(depth)) : 0;
	}
	memcpy(filled, image, n * sizeof(*filled));
	assert_int_equal(rim_fill(&g, filled, &r, NULL), 0);
	if (!r.used || r.sectors < 9 || r.sectors >= 60)
		fail_msg("%d sectors, level %g, %s", r.sectors, r.level, r.reason);
	for (size_t i = 0; i < n; i++)
		assert_true(isfinite(filled[i]));
	for (size_t x = 120; x < 300; x += 20) /* in the middle of the narrow part, 12 mm deep */
		assert_true(filled[115 * (size_t)g.n[0] + x] > image[115 * (size_t)g.n[0] + x] + 0.1f);
}

/* Without skin or breast nothing is changed, and the report says why. */
TEST(not_filled)
{
	struct grid g = grid_of(0.68), none = {{0, 5, 1}, {1, 1, 1}, {0, 0, 0}};
	size_t n = (size_t)g.n[0] * (size_t)g.n[1];
	struct err err = {0};

	for (int way = 0; way < 3; way++) {
		float *image = fixture_floats(n, 5, way ? 0 : 2, way ? 0 : 3), *filled = take_memory(n * sizeof(*filled));
		struct rim_fill_report r;

		for (size_t i = 0; way == 2 && i < n; i++) /* a breast of 4 mm */
			image[i] = hypot(i % (size_t)g.n[0], i / (size_t)g.n[0] - g.n[1] / 2.0) < 6 ? 2 : 0;
		memcpy(filled, image, n * sizeof(*filled));
		assert_int_equal(rim_fill(&g, filled, &r, NULL), 0);
		assert_false(r.used);
		assert_non_null(strstr(r.reason, (const char *[]){"no skin", "empty", "too small"}[way]));
		assert_memory_equal(filled, image, n * sizeof(*filled));
	}
	assert_error(rim_fill(&none, NULL, NULL, &err), &err, EINVAL, "n=0");
}
