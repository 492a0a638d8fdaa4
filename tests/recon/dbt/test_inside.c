/* SPDX-License-Identifier: Apache-2.0 */
/* The distance to the air, and the inside of a slice. */
#include "recon/dbt/inside.h"
#include "recon/dbt/skin_distance.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

/* Every distance equals that of a search in all cells, and the nearest cell is at this distance. */
TEST(distance)
{
	enum { NX = 37, NY = 23 };
	const int n[2] = {NX, NY};
	const double h[2] = {0.7, 1.1};
	unsigned char air[NX * NY];
	float found[NX * NY];
	int nearest[NX * NY];
	uint32_t seed = 1;
	struct err err = {0};

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < NX * NY; i++)
			air[i] = fixture_random(&seed) < (float[]){0.002f, 0.01f, 0.1f, 0.5f, 0}[round];
		air[round * 7] = round < 4;
		assert_int_equal(skin_distance(n, h, air, found, nearest, NULL), 0);
		for (int i = 0; i < NX * NY; i++) {
			double least = INFINITY;

			for (int k = 0; k < NX * NY; k++)
				least = air[k] ? fmin(least, hypot(h[0] * (k % NX - i % NX), h[1] * (k / NX - i / NX))) : least;
			if (round == 4) {
				assert_true(isinf(found[i]) && nearest[i] == -1);
				continue;
			}
			assert_near(found[i], least, 1e-5);
			assert_true(air[nearest[i]]);
			assert_near(hypot(h[0] * (nearest[i] % NX - i % NX), h[1] * (nearest[i] / NX - i / NX)), least, 1e-5);
		}
	}
	assert_error(skin_distance((const int[]){0, 3}, h, air, found, NULL, &err), &err, EINVAL, "n=0");
}

/* Voxels more than 3 mm from the air are counted, with at most the width of a square more; single zeros inside are not air. */
TEST(inside)
{
	struct grid g = {{200, 120, 1}, {0.3, 0.4, 1}, {0, 0, 0}};
	float *slice = fixture_floats(grid_size(&g), 3, -1, 1);
	uint64_t *bins = take_zeros(65536, sizeof(*bins));
	size_t least = 0, most = 0, counted = 0, some = 0;
	struct err err = {0};

	for (int i = 0; i < 200 * 120; i++) {
		double depth = hypot(0.3 * (i % 200 + 0.5), 0.4 * (i / 200 + 0.5) - 24); /* of a disc of 40 mm */

		slice[i] = depth < 40 ? slice[i] : 0;
		slice[i] = i % 203 == 0 ? 0 : slice[i];
		least += depth < 40 - 3 - 2.5;
		most += depth < 40 - 3;
	}
	assert_int_equal(inside_tally(&g, slice, -1, 1e-4, 3, 1, bins, &counted, NULL), 0);
	assert_true(counted >= least && counted <= most);
	for (int i = 0; i < 65536; i++)
		some += bins[i];
	assert_int_equal(some, counted);
	assert_true(bins[10000] >= counted / 250); /* the zeros */
	counted = 0;
	assert_int_equal(inside_tally(&g, slice, -1, 1e-4, 200, 1, bins, &counted, NULL), 0);
	assert_int_equal(counted, 0);
	assert_error(inside_tally(&g, slice, -1, 0, 3, 1, bins, &counted, &err), &err, EINVAL, "step=0");
}
