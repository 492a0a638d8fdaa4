/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic view: its formula term by term with closed solutions, and compared with a second implementation. */
#include "recon/dbt/synthetic.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

static float *view_of(const struct synthetic_conf *conf, const struct grid *g, const float *volume)
{
	size_t n = (size_t)g->n[0] * (size_t)g->n[1];
	float *image = take_memory(n * sizeof(*image));
	struct synthetic *s = NULL;
	struct err err = {0};

	assert_done(synthetic_open(conf, g, &s, &err), &err);
	for (int k = 0; k < g->n[2]; k++) {
		assert_int_equal(synthetic_image(s, image, NULL), -EINVAL);
		assert_int_equal(synthetic_add(s, volume + (size_t)k * n, NULL), 0);
	}
	assert_int_equal(synthetic_image(s, image, NULL), 0);
	assert_int_equal(synthetic_add(s, volume, NULL), -EINVAL);
	synthetic_close(s);
	return image;
}

/* Tissue of mu over the whole depth: the image is mu * height for any blur, also at the edges. */
TEST(uniform_tissue)
{
	struct grid g = {{61, 47, 10}, {0.5, 0.5, 1.5}, {0, 0, 17}};
	float *volume = fixture_floats(grid_size(&g), 1, 0.05f, 0.05f);
	struct synthetic_conf conf = SYNTHETIC_CONF;

	conf.floor = 0;
	for (int i = 0; i < 4; i++) {
		conf.blur = (double[]){0, 0.4, 2, 200}[i];
		float *image = view_of(&conf, &g, volume);
		for (size_t k = 0; k < 61 * 47; k++)
			assert_near(image[k], 0.05 * 15, 1e-6);
	}
}

/* One voxel is larger by c in slice 3: b is c / 25 with 5 x 5 voxels, so image = sum + h c + detail * (24 / 25 c - floor). */
TEST(one_calcification)
{
	struct grid g = {{21, 19, 6}, {0.4, 0.4, 1}, {0, 0, 0}};
	struct synthetic_conf conf = {.blur = 2, .detail = 4, .floor = 0.01};
	float *volume = fixture_floats(grid_size(&g), 1, 0.05f, 0.05f), *image;
	const double c = 0.5;

	volume[3 * 21 * 19 + 8 * 21 + 12] += (float)c;
	volume[3 * 21 * 19 + 0 * 21 + 0] += (float)c; /* at the corner, 3 x 3 voxels of the square are inside */
	image = view_of(&conf, &g, volume);
	for (int j = 0; j < 19; j++)
		for (int i = 0; i < 21; i++) {
			double expected = 0.05 * 6;

			if (i == 12 && j == 8)
				expected += c + 4 * (24.0 / 25 * c - 0.01);
			if (i == 0 && j == 0)
				expected += c + 4 * (8.0 / 9 * c - 0.01);
			assert_near(image[j * 21 + i], expected, 1e-6);
		}
	/* detail = 0: the line integral alone; a floor above the detail: the same */
	for (int k = 0; k < 2; k++) {
		conf = (struct synthetic_conf){.blur = 2, .detail = k ? 4 : 0, .floor = k ? 0.49 : 0};
		image = view_of(&conf, &g, volume);
		assert_near(image[8 * 21 + 12], 0.05 * 6 + c, 1e-6);
	}
}

/* Calcifications at one position in different slices: the strongest one is used, not the sum. Detail below its surroundings adds
 * nothing. */
TEST(the_strongest_detail)
{
	struct grid g = {{9, 9, 3}, {1, 1, 1}, {0, 0, 0}};
	struct synthetic_conf conf = {.blur = 2, .detail = 3, .floor = 0};
	float *volume = fixture_floats(grid_size(&g), 1, 0, 0), *image;

	volume[40] = 0.9f;
	volume[81 + 40] = 1.8f;
	volume[162 + 40] = -0.9f;
	image = view_of(&conf, &g, volume);
	assert_near(image[40], 0.9 + 1.8 - 0.9 + 3 * 1.8 * 8 / 9, 1e-6);
	assert_near(image[41], 3 * 0.1, 1e-6); /* beside the dark voxel, whose square of 9 has the mean -0.1 */
}

static void against_loops(int n_x, int n_y, double h, double blur)
{
	struct grid g = {{n_x, n_y, 3}, {h, 1.3 * h, 0.7}, {0, 0, 0}};
	struct synthetic_conf conf = {.blur = blur, .detail = 2.5, .floor = 0.1};
	float *volume = fixture_floats(grid_size(&g), 77, -1, 1), *image = view_of(&conf, &g, volume);
	int r_x = (int)floor(blur / h / 2),
	    r_y = (int)floor(blur / (1.3 * h) / 2); /* 2 r + 1 is the odd number nearest to blur / h */

	for (int j = 0; j<n_y; j += n_y> 100 ? 7 : 1)
		for (int i = 0; i<n_x; i += n_x> 100 ? 11 : 1) {
			double sum = 0, peak = 0;

			for (int k = 0; k < 3; k++) {
				const float *f = volume + (size_t)k * (size_t)n_x * (size_t)n_y;
				double b = 0;
				int count = 0;

				for (int y = j - r_y; y <= j + r_y; y++)
					for (int x = i - r_x; x <= i + r_x; x++)
						if (x >= 0 && x < n_x && y >= 0 && y < n_y) {
							b += f[y * n_x + x];
							count++;
						}
				sum += 0.7 * f[j * n_x + i];
				peak = fmax(peak, f[j * n_x + i] - b / count - 0.1);
			}
			assert_near(image[j * n_x + i], sum + 2.5 * peak, 2e-6 * 10);
		}
}

TEST(the_formula)
{
	against_loops(1, 1, 1, 2);
	against_loops(1, 40, 0.5, 3);
	against_loops(33, 29, 0.3, 2);
	against_loops(13, 17, 0.1, 50);	  /* the square is larger than the slice */
	against_loops(1100, 300, 0.2, 2); /* several tiles */
	against_loops(530, 131, 0.01, 0.3);
}

static void refuse(struct synthetic_conf conf, struct grid g, const char *word)
{
	struct synthetic *s = NULL;
	struct err err = {0};

	assert_error(synthetic_open(&conf, &g, &s, &err), &err, EINVAL, word);
	assert_null(s);
}

TEST(refusals)
{
	struct grid g = {{2, 2, 2}, {0.1, 0.1, 1}, {0, 0, 0}}, bad = {{2, 2, 0}, {0.1, 0.1, 1}, {0, 0, 0}};

	refuse((struct synthetic_conf){.blur = 51.1}, g, "blur of 51.1 mm");
	refuse((struct synthetic_conf){.blur = NAN}, g, "blur");
	refuse((struct synthetic_conf){.blur = -1}, g, "blur of -1");
	refuse((struct synthetic_conf){.blur = 2, .detail = -1}, g, "detail of -1 mm");
	refuse((struct synthetic_conf){.blur = 2, .detail = INFINITY}, g, "detail");
	refuse((struct synthetic_conf){.blur = 2, .floor = NAN}, g, "floor");
	refuse(SYNTHETIC_CONF, bad, "n=0");
	assert_null(synthetic_close(NULL));
}
