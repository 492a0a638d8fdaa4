/* SPDX-License-Identifier: Apache-2.0 */
/* Beads in projections of a phantom with exact line integrals: a plate with an edge, a step in it, beads, Poisson noise. */
#include "recon/calibration/bead_find.h"
#include "recon/core/scan.h"
#include "recon/phantom/phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define N_U 420
#define N_V 500
#define PITCH 0.1
#define BEADS 6

static const double place[BEADS][3] = {{8.31, -14.22, 20}, {14.57, 3.33, 70}, {21.04, 13.41, 25},
				       {27.76, -6.18, 65}, {31.49, 9.87, 22}, {19.23, -17.05, 68}};

static float line[N_U * N_V];
static uint16_t counts[N_U * N_V];

/* Project a plate whose edges are inside the picture, with a thicker half, and beads of steel of this diameter. */
static void make_view(double diameter, double i0, double ret_at[BEADS][2])
{
	struct shape shapes[BEADS + 2] = {
		{SHAPE_BOX, ROLE_BODY, {16, 0, 45}, {20, 18, 30}, 0.02},
		{SHAPE_BOX, ROLE_BODY, {16, 9, 45}, {20, 9, 30}, 0.01},
	};
	struct phantom p = {.n = BEADS + 2, .shapes = shapes};
	double angle[2] = {-10, 12.5};
	struct dbt_geometry g = {
		.n_u = N_U, .n_v = N_V, .pitch = PITCH, .axis_height = 40, .source_axis = 620, .n_views = 2, .angle = angle};
	struct scan *scan;

	for (int i = 0; i < BEADS; i++)
		shapes[2 + i] = (struct shape){SHAPE_ELLIPSOID,
					       ROLE_BEAD,
					       {place[i][0], place[i][1] + 0.22 * place[i][2], place[i][2]},
					       {diameter / 2, diameter / 2, diameter / 2},
					       4 / diameter};
	for (int i = 0; i < 2; i++)
		shapes[i].c[1] += 10;
	scan = fixture_dbt_scan(&g);
	assert_int_equal(phantom_project(&p, scan, 1, line, NULL), 0);
	if (i0 > 0) {
		assert_int_equal(phantom_counts(line, N_U * N_V, i0, 5, 1, 65535, counts, NULL), 0);
		for (size_t i = 0; i < N_U * N_V; i++)
			line[i] = (float)-log(counts[i] / i0);
	}
	for (int i = 0; i < BEADS; i++) {
		const double *c = shapes[2 + i].c, *s = scan->views[1].src;
		double part = s[2] / (s[2] - c[2]);

		ret_at[i][0] = (s[0] + (c[0] - s[0]) * part) / PITCH - 0.5;
		ret_at[i][1] = (s[1] + (c[1] - s[1]) * part) / PITCH + N_V / 2.0 - 0.5;
	}
}

/* Find the beads and compare: exactly these, with this largest error of a position. */
static void compare(double diameter, double i0, double tolerance)
{
	double at[BEADS][2];
	struct bead_picture picture = {N_U, N_V, line};
	struct bead_spot *spots;
	size_t n;

	make_view(diameter, i0, at);
	assert_int_equal(bead_find(&picture, diameter / PITCH, &spots, &n, NULL), 0);
	test_later(free, spots);
	assert_int_equal(n, BEADS);
	for (int i = 0; i < BEADS; i++) {
		double best = INFINITY;

		for (size_t k = 0; k < n; k++)
			best = fmin(best, hypot(spots[k].at[0] - at[i][0], spots[k].at[1] - at[i][1]));
		assert_near(best, 0, tolerance);
	}
}

/* Without noise a position is right to the part of a bin that sampling with rays at the centres of bins leaves. */
TEST(noise_free)
{
	compare(0.8, 0, 0.06);
	compare(1.0, 0, 0.06);
	compare(2.0, 0, 0.06);
}

/* Counts as in an exam: 5000 in air, 1000 behind the plate. */
TEST(noisy)
{
	compare(0.8, 5000, 0.12);
	compare(1.0, 5000, 0.12);
	compare(2.0, 5000, 0.12);
}

/* As near to the left side of a picture as to the right one, and as high: parts around a bead, and their mirror images. */
TEST(either_side)
{
	enum { WIDE = 120, HIGH = 80, MOST = 40 };
	static float part[2][WIDE * HIGH];
	double at[BEADS][2];
	int found = 0;

	make_view(1, 0, at);
	for (int left = 5; left < MOST; left++) { /* bins from the side to the bead */
		TEST_BLOCK;
		double height[2] = {0};

		for (int i = 0; i < WIDE * HIGH; i++) {
			int u = (int)lround(at[3][0]) - left + i % WIDE, v = (int)lround(at[3][1]) - HIGH / 2 + i / WIDE;

			part[0][i] = part[1][i / WIDE * WIDE + WIDE - 1 - i % WIDE] = line[v * N_U + u];
		}
		for (int side = 0; side < 2; side++) {
			struct bead_picture picture = {WIDE, HIGH, part[side]};
			struct bead_spot *spots;
			size_t n;

			if (bead_find(&picture, 10, &spots, &n, NULL) < 0)
				continue;
			test_later(free, spots);
			height[side] = spots[0].height;
			assert_int_equal(n, 1);
		}
		assert_near(height[0], height[1], 1e-5);
		found += height[0] > 0;
	}
	assert_in_range(found, 1, MOST - 10); /* too near to the side it is not found */
}

/* Spots next to bins without data are dropped, the others stay. */
TEST(no_data)
{
	double at[BEADS][2];
	struct bead_picture picture = {N_U, N_V, line};
	struct bead_spot *spots;
	size_t n;

	make_view(1, 5000, at);
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++)
			if (fabs(u - at[2][0]) < 6)
				line[v * N_U + u] = NAN;
	assert_int_equal(bead_find(&picture, 10, &spots, &n, NULL), 0);
	test_later(free, spots);
	assert_in_range(n, BEADS - 2, BEADS - 1);
	for (size_t k = 0; k < n; k++)
		assert_true(fabs(spots[k].at[0] - at[2][0]) > 10);
}

TEST(refused)
{
	struct bead_picture picture = {N_U, N_V, line};
	struct bead_spot *spots;
	struct err err;
	size_t n;

	for (size_t i = 0; i < N_U * N_V; i++)
		line[i] = 1;
	assert_error(bead_find(&picture, 10, &spots, &n, &err), &err, ENODATA, "no bead of 10.0 bins");
	assert_int_equal(bead_find(&picture, 2, &spots, &n, &err), -EINVAL);
	for (size_t i = 0; i < N_U * N_V; i++)
		line[i] = NAN;
	assert_error(bead_find(&picture, 10, &spots, &n, &err), &err, ENODATA, "no value");
	picture.n_u = picture.n_v = 8;
	line[0] = 1;
	assert_error(bead_find(&picture, 10, &spots, &n, &err), &err, ENODATA, "too small");
}
