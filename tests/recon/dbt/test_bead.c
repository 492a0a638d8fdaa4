/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of beads: an inclined Gaussian spot of known position, sampled voxel by voxel. */
#include "recon/dbt/bead.h"
#include "tests/test.h"

#define NX 31
#define NY 29
#define NZ 15

static float values[NX * NY * NZ];
static double depth[NZ];

/* Create a window with a background that differs between slices, plus exp(...) around (x0 + slope (z - z0), ..., z0). */
static struct bead_window spot(const double at[3], const double slope[2], double sigma, double sigma_z, double pitch)
{
	struct bead_window w = {.n = {NX, NY, NZ}, .h = {pitch, pitch}, .depth = depth, .values = values};

	for (int k = 0; k < NZ; k++) {
		depth[k] = 3 + k;
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++) {
				double up = depth[k] - at[2], x = (i * pitch - at[0] - slope[0] * up) / sigma;
				double y = (j * pitch - at[1] - slope[1] * up) / sigma, z = up / sigma_z;

				values[(k * NY + j) * NX + i] =
					(float)(0.05 + 0.001 * k + 0.4 * exp(-(x * x + y * y + z * z) / 2));
			}
	}
	return w;
}

static void highest(int ret[3])
{
	double best = -1;

	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				if (values[(k * NY + j) * NX + i] > best) {
					best = values[(k * NY + j) * NX + i];
					ret[0] = i;
					ret[1] = j;
					ret[2] = k;
				}
}

/* Positions all over a voxel, vertical and inclined. Tolerance 0.01 voxels, because the windows of the centroids end inside
 * voxels. */
TEST(place_and_width)
{
	static const double slopes[][2] = {{0, 0}, {-0.25, 0.1}, {0.1, -0.3}};
	double profile[NZ];
	int top[3];

	for (size_t s = 0; s < 3; s++)
		for (int i = 0; i < 8; i++) {
			double at[3] = {5.1 + 0.34 * i / 8, 4.9 - 0.34 * i / 7, 10 + (i - 3.5) / 8};
			struct bead_window w = spot(at, slopes[s], 0.32, 0.65, 0.34);
			struct bead bead;

			highest(top);
			assert_int_equal(bead_locate(&w, top, 0.5, &bead, profile, NULL), 0);
			assert_near(bead.at[0], at[0], 4e-3);
			assert_near(bead.at[1], at[1], 4e-3);
			assert_near(bead.at[2], at[2], 2e-3);
			assert_near(bead.slope[0], slopes[s][0], 5e-3);
			assert_near(bead.slope[1], slopes[s][1], 5e-3);
			assert_near(bead.fwhm, 2.35482 * 0.65, 5e-3);
		}
}

/* A bead at the edge of the image: voxels outside are NaN. */
TEST(edge)
{
	double at[3] = {5.2, 4.8, 9.7}, slope[2] = {0.1, 0}, profile[NZ];
	struct bead_window w = spot(at, slope, 0.32, 0.65, 0.34);
	struct bead bead;
	int top[3] = {0};

	highest(top);
	for (int i = 0; i < NX * NY * NZ; i++)
		if (i % NX > top[0] + 3)
			values[i] = NAN;
	assert_int_equal(bead_locate(&w, top, 0.5, &bead, profile, NULL), 0);
	assert_near(bead.at[0], at[0], 0.05);
	assert_near(bead.at[1], at[1], 0.01);
	assert_near(bead.at[2], at[2], 0.02);
}

/* Too few slices for a Gaussian: the depth is that of a slice, and the width is NaN. */
TEST(few_slices)
{
	double at[3] = {5.2, 4.8, 5.2}, slope[2] = {0, 0}, profile[NZ];
	struct bead_window w = spot(at, slope, 0.32, 0.65, 0.34);
	struct bead bead;
	int top[3];

	w.n[2] = 4;
	highest(top);
	assert_int_equal(bead_locate(&w, top, 0.5, &bead, profile, NULL), 0);
	assert_near(bead.at[0], at[0], 4e-3);
	assert_near(bead.at[2], 5, 1e-9);
	assert_true(isnan(bead.fwhm));
}

TEST(nothing_there)
{
	double at[3] = {5.2, 4.8, 9.7}, slope[2] = {0, 0}, profile[NZ];
	struct bead_window w = spot(at, slope, 0.32, 0.65, 0.34);
	struct err err = {0};
	struct bead bead = {.fwhm = 7};
	int top[3] = {15, 14, 7};

	for (int i = 0; i < NX * NY * NZ; i++)
		values[i] = 0.05f;
	assert_int_equal(bead_locate(&w, top, 0.5, &bead, profile, &err), -ENODATA);
	assert_near(bead.fwhm, 7, 0);
	for (int i = 0; i < NX * NY * NZ; i++)
		values[i] = NAN;
	assert_int_equal(bead_locate(&w, top, 0.5, &bead, profile, &err), -ENODATA);
}
