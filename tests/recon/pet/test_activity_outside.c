/* SPDX-License-Identifier: Apache-2.0 */
/* Activity where a map has no body: beside it, above and below the limit, in the margin of a voxel, where mu is not known. */
#include "recon/pet/activity_outside.h"
#include "tests/test.h"

#define N 12
static const struct grid grid = {.n = {N, N, N}, .h = {8, 8, 8}, .lo = {-48, -48, -48}};
static float image[N * N * N], mu[N * N * N];

static void put_box(float *to, const int from[3], const int end[3], float value)
{
	for (int z = from[2]; z < end[2]; z++)
		for (int y = from[1]; y < end[1]; y++)
			for (int x = from[0]; x < end[0]; x++)
				to[(z * N + y) * N + x] = value;
}

TEST(voxels_outside)
{
	static const struct {
		int from[3], end[3]; /* of further activity beside the body, 2 to 6 along each axis */
		float value;
		double z[2];	 /* where mu is known; 0, 0: everywhere */
		double expected; /* of the 64 voxels of the body */
	} rows[] = {
		{{0, 0, 0}, {0, 0, 0}, 0, {0, 0}, 0},
		{{8, 2, 2}, {10, 4, 4}, 1, {0, 0}, 8.0 / 72},
		{{6, 2, 2}, {8, 4, 4}, 1, {0, 0}, 4.0 / 68},	      /* a voxel beside the body is its margin */
		{{8, 2, 2}, {10, 4, 4}, 0.34f, {0, 0}, 2.72 / 66.72}, /* above a third of the mean, and below */
		{{8, 2, 2}, {10, 4, 4}, 0.32f, {0, 0}, 0},
		{{2, 2, 8}, {4, 4, 10}, 1, {0, 0}, 8.0 / 72},
		{{2, 2, 8}, {4, 4, 10}, 1, {-48, -48 + 8 * 9}, 4.0 / 68}, /* mu is known of the slices 0 to 8 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(image, 0, sizeof(image));
		memset(mu, 0, sizeof(mu));
		put_box(mu, (const int[]){2, 2, 2}, (const int[]){6, 6, 6}, 0.0096f);
		put_box(image, (const int[]){2, 2, 2}, (const int[]){6, 6, 6}, 1);
		put_box(image, rows[i].from, rows[i].end, rows[i].value);
		assert_near(activity_outside(&grid, image, mu, rows[i].z[1] > rows[i].z[0] ? rows[i].z : NULL), rows[i].expected,
			    1e-6);
	}
	memset(mu, 0, sizeof(mu));
	assert_near(activity_outside(&grid, image, mu, NULL), 0, 0); /* no body at all: nothing to compare */
}

/* A box that fills a half of a voxel, in a finer grid of the other order, which ends inside of the coarse one. */
TEST(averages)
{
	struct grid fine = {.n = {12, 12, 8}, .h = {4, 4, 4}, .lo = {-48, -48, -48}, .z_fastest = true};
	float *values = take_zeros(grid_size(&fine), sizeof(*values));

	for (int x = 0; x < 3; x++)
		for (int y = 0; y < 12; y++)
			for (int z = 0; z < 8; z++)
				values[(size_t)x * grid_step(&fine, 0) + (size_t)y * grid_step(&fine, 1) + (size_t)z] = 3;
	activity_outside_average(&fine, values, &grid, 2, image);
	assert_near(image[0], 3, 1e-6);
	assert_near(image[1], 1, 1e-6); /* of 3 points along x, one is in the half; that on its edge is not */
	assert_near(image[2], 0, 0);
	assert_near(image[(N * 4) * N], 0, 0);
}
