/* SPDX-License-Identifier: Apache-2.0 */
/* Thick slabs: the slices of each slab, means and maxima with closed solutions. */
#include <malloc.h>

#include "recon/dbt/slabs.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

static struct grid grid_of(int n_x, int n_y, int n_z, double h_z)
{
	return (struct grid){{n_x, n_y, n_z}, {0.34, 0.34, h_z}, {0, -10, 17}};
}

/* Slices whose pixel i of slice k is value(i, k); every slab is compared with a loop over all slices. */
static float value(size_t i, int k)
{
	return (float)((i * 7 + (size_t)k * 13) % 31) + (float)k * 0.125f - 3;
}

static void check(enum slabs_mode mode, int n_x, int n_y, int n_z, double h_z, double thickness, double step)
{
	struct grid g = grid_of(n_x, n_y, n_z, h_z);
	size_t n = (size_t)n_x * (size_t)n_y;
	float *slice = take_memory(n * sizeof(*slice));
	struct slabs *s = NULL;
	int done = 0;

	assert_int_equal(slabs_open(mode, thickness, step, &g, &s, NULL), 0);
	for (int k = 0; k < n_z; k++) {
		const float *slab = NULL;

		for (size_t i = 0; i < n; i++)
			slice[i] = value(i, k);
		assert_int_equal(slabs_add(s, slice, &slab, NULL), 0);
		if (!slab)
			continue;
		struct slabs_range r = slabs_range(s, done);
		assert_int_equal(k, r.first + r.n - 1);
		/* Count the slices whose centres are in [lo, hi); the spacings are powers of 2, so there is no rounding. */
		double lo = done * step, hi = done * step + thickness;
		int first = n_z, count = 0;
		for (int j = n_z - 1; j >= 0; j--)
			if ((j + 0.5) * h_z >= lo && (j + 0.5) * h_z < hi) {
				first = j;
				count++;
			}
		assert_int_equal(r.first, first);
		assert_int_equal(r.n, count);
		assert_near(r.z[0], 17 + first * h_z, 1e-12);
		assert_near(r.z[1], 17 + (first + count) * h_z, 1e-12);
		for (size_t i = 0; i < n; i++) {
			double mean = 0, most = -INFINITY;

			for (int j = first; j < first + count; j++) {
				mean += (double)value(i, j) / count;
				most = fmax(most, value(i, j));
			}
			if (mode == SLABS_MEAN)
				assert_near(slab[i], mean, 1e-5);
			else
				assert_true(slab[i] == (float)most);
		}
		done++;
	}
	assert_int_equal(done, slabs_count(s));
	slabs_close(s);
}

TEST(means_and_maxima)
{
	for (enum slabs_mode mode = SLABS_MEAN; mode <= SLABS_MAXIMUM; mode++) {
		check(mode, 5, 3, 12, 1, 4, 2);
		check(mode, 5, 3, 13, 1, 4, 3);
		check(mode, 17, 1000, 11, 0.5, 10, 0.5); /* several blocks; slabs thicker than the volume */
		check(mode, 1, 1, 20, 1, 2.25, 1.75);
		check(mode, 1, 1, 20, 1, 2, 5); /* gaps */
		check(mode, 4, 4, 7, 1, 1, 1);	/* the slices themselves */
		check(mode, 2, 1, 1, 1, 1, 1);
		check(mode, 3, 2, 60, 1, 10, 1);
	}
}

TEST(ranges)
{
	static const struct {
		int n_z, count, last_first, last_n;
		double h_z, thickness, step;
	} cases[] = {
		{50, 9, 40, 10, 1, 10, 5},	  {52, 10, 45, 7, 1, 10, 5},   {60, 60, 59, 1, 1, 1, 1}, {60, 12, 55, 5, 1, 5, 5},
		{3, 1, 0, 3, 1, 100, 50},	  {60, 51, 50, 10, 1, 10, 1},  {20, 4, 15, 2, 1, 2, 5},	 {11, 2, 10, 1, 1, 2, 10},
		{30, 10, 27, 3, 0.1, 0.3, 0.3},				       /* decimals that do not */
		{300, 99, 294, 6, 0.1, 0.6, 0.3}, {7, 7, 6, 1, 0.7, 0.7, 0.7}, /* meet in binary */
		{10, 2, 5, 5, 1, 5, 5.4},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct grid g = grid_of(2, 2, cases[i].n_z, cases[i].h_z);
		struct slabs *s = NULL;

		assert_int_equal(slabs_open(SLABS_MEAN, cases[i].thickness, cases[i].step, &g, &s, NULL), 0);
		assert_int_equal(slabs_count(s), cases[i].count);
		struct slabs_range r = slabs_range(s, cases[i].count - 1);
		assert_int_equal(r.first, cases[i].last_first);
		assert_int_equal(r.n, cases[i].last_n);
		slabs_close(s);
	}
}

/* Thicknesses near the tolerance for a centre on a slab's face, and a step that is one slice up to rounding: all slabs are
 * returned, and each contains a slice. */
TEST(rounding_loses_no_slab)
{
	for (int more = -60; more <= 60; more++)
		for (int less = 0; less < 2; less++) {
			struct grid g = grid_of(1, 1, 60, 0.7);
			double step = 0.7 * (1 - less * 5e-7), thickness = 0.7 * (1.500001 + more * 1e-7);
			const float slice = 1, *slab;
			struct slabs *s = NULL;
			int done = 0;

			assert_int_equal(slabs_open(SLABS_MEAN, thickness, step, &g, &s, NULL), 0);
			for (int k = 0; k < 60; k++) {
				assert_int_equal(slabs_add(s, &slice, &slab, NULL), 0);
				if (slab)
					assert_true(slabs_range(s, done++).n > 0 && *slab == 1);
			}
			assert_int_equal(done, slabs_count(s));
			assert_true(done >= 59);
			slabs_close(s);
		}
}

/* Return the number of bytes allocated with take_memory(). */
static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Memory use is that of the unfinished slabs, never the whole volume. */
TEST(memory)
{
	struct grid g = grid_of(100, 100, 200, 1);
	static const struct {
		double step;
		size_t open;
	} cases[] = {{5, 2}, {10, 1}, {1, 10}};
	struct slabs *s = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t before = allocated();

		assert_int_equal(slabs_open(SLABS_MEAN, 10, cases[i].step, &g, &s, NULL), 0);
		assert_true(allocated() - before < cases[i].open * 40000 + 10000); /* take_memory() may round up to pages */
		slabs_close(s);
	}
}

static void refuse(enum slabs_mode mode, double thickness, double step, struct grid g, const char *word)
{
	struct slabs *s = NULL;
	struct err err = {0};

	assert_error(slabs_open(mode, thickness, step, &g, &s, &err), &err, EINVAL, word);
	assert_null(s);
}

TEST(refusals)
{
	struct grid g = grid_of(2, 2, 3, 1), flat = grid_of(2, 0, 3, 1), bad = grid_of(2, 2, 3, NAN);
	const float slice[4] = {1, 2, 3, 4}, *slab;
	struct slabs *s = NULL;
	struct err err = {0};

	refuse(SLABS_MEAN, 0.9, 1, g, "thickness 0.9 mm is less than the distance of the slices");
	refuse(SLABS_MEAN, 2, 0.5, g, "the step between slabs is 0.5 mm");
	refuse(SLABS_MEAN, NAN, 1, g, "nan");
	refuse(SLABS_MEAN, INFINITY, 1, g, "inf");
	refuse(SLABS_MEAN, 1, INFINITY, g, "inf");
	refuse((enum slabs_mode)3, 2, 1, g, "mode 3");
	refuse(SLABS_MEAN, 2, 1, flat, "n=0");
	refuse(SLABS_MEAN, 2, 1, bad, "axis 2");
	refuse(SLABS_MEAN, 2, 1, grid_of(2, 2, 1000001, 1), "1000001 slices");
	assert_null(slabs_close(NULL));
	assert_int_equal(slabs_open(SLABS_MEAN, 3, 3, &g, &s, NULL), 0);
	for (int k = 0; k < 3; k++)
		assert_int_equal(slabs_add(s, slice, &slab, NULL), 0);
	assert_non_null(slab);
	assert_error(slabs_add(s, slice, &slab, &err), &err, EINVAL, "all 3 slices");
	slabs_close(s);
}
