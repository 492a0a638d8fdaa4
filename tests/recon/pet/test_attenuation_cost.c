/* SPDX-License-Identifier: Apache-2.0 */
/* What the missing attenuation costs: the width of bodies whose middle is nearly empty, and of none. */
#include "recon/pet/attenuation_cost.h"
#include "tests/test.h"

#define N 120
#define H 2.5 /* mm */

static float image[6 * N * N];

/* A cylinder of this radius (mm) in the slices from `first` on, with the activity `edge` in a rim of 10 mm, and `middle` in it. */
static void fill(double radius, int first, double edge, double middle)
{
	for (int i = 0; i < 6 * N * N; i++) {
		double x = (i % N - 0.5 * N) * H + 11, y = (i / N % N - 0.5 * N) * H - 7, r = hypot(x, y);

		image[i] = (float)(i / (N * N) < first || r > radius ? 0 : r > radius - 10 ? edge : middle);
	}
}

TEST(widths)
{
	static const struct {
		double radius;
		int first;
		double edge, middle;
	} rows[] = {{100, 0, 1, 1}, {100, 0, 1, 0.1}, {100, 3, 1, 0}, {45, 0, 7, 2}};
	struct attenuation_cost c;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fill(rows[i].radius, rows[i].first, rows[i].edge, rows[i].middle);
		assert_int_equal(attenuation_cost((const int[]){N, N, 6}, (const double[]){H, H}, image, &c, &err), 0);
		assert_near(c.width, 2 * rows[i].radius, 0.5 * H);
		assert_near(c.factor, exp(0.0096 * c.width), 1e-9);
	}
	fill(100, 0, 1, 1);
	for (int i = 0; i < 6 * N * N; i++) { /* scatter and randoms around it, and a hot organ in it */
		double x = (i % N - 0.5 * N) * H, y = (i / N % N - 0.5 * N) * H;

		image[i] = hypot(x, y) < 15 ? 40 : image[i] > 0 ? image[i] : 0.1f;
	}
	assert_int_equal(attenuation_cost((const int[]){N, N, 6}, (const double[]){H, H}, image, &c, &err), 0);
	assert_near(c.width, 200, 0.5 * H);
	fill(100, 0, 1, 1);
	for (int i = 0; i < N * N; i++) /* one slice with a wider body, one hot voxel elsewhere: the others decide */
		image[i] = 1;
	image[5 * N * N] = 50;
	assert_int_equal(attenuation_cost((const int[]){N, N, 6}, (const double[]){H, H}, image, &c, &err), 0);
	assert_near(c.width, 200, 0.5 * H);
}

TEST(nothing_to_cost)
{
	struct attenuation_cost c;
	struct err err = {0};

	fill(0, 0, 0, 0);
	assert_int_equal(attenuation_cost((const int[]){N, N, 6}, (const double[]){H, H}, image, &c, &err), 0);
	assert_true(c.width == 0 && c.factor == 1);
	image[3 * N * N + 50 * N + 60] = 1; /* a point */
	assert_int_equal(attenuation_cost((const int[]){N, N, 6}, (const double[]){H, H}, image, &c, &err), 0);
	assert_true(c.width < 3 && c.factor < 1.03);
}
