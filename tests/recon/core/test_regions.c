/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of pixels in circles and spheres, weighted sums, and the noise power spectrum, compared with closed solutions. */
#include "recon/core/regions.h"
#include "tests/test.h"

/* Return the same area from the midpoints of many strips. */
static double strips(double r, const double lo[2], const double hi[2])
{
	int n = 20000;
	double sum = 0;

	for (int i = 0; i < n; i++) {
		double x = lo[0] + (hi[0] - lo[0]) * (i + 0.5) / n, half = x * x < r * r ? sqrt(r * r - x * x) : 0;

		sum += fmax(0, fmin(hi[1], half) - fmax(lo[1], -half)) * (hi[0] - lo[0]) / n;
	}
	return sum;
}

TEST(areas)
{
	const double whole[2][2] = {{-9, -9}, {9, 9}}, part[2][2] = {{0, -9}, {9, 9}};
	unsigned seed = 1;

	assert_near(circle_area(5, whole[0], whole[1]), M_PI * 25, 1e-12);
	assert_near(circle_area(5, part[0], part[1]), M_PI * 25 / 2, 1e-12);
	assert_near(circle_area(5, (double[]){1, 1}, (double[]){2, 3}), 2, 1e-12);		 /* inside */
	assert_near(circle_area(5, (double[]){4, 4}, (double[]){5, 5}), 0, 1e-12);		 /* outside */
	assert_near(circle_area(0.1, (double[]){-1, -1}, (double[]){1, 1}), M_PI * 0.01, 1e-12); /* smaller than the pixel */
	for (int k = 0; k < 500; k++) {
		double lo[2], hi[2], area;

		for (int c = 0; c < 2; c++) {
			seed = seed * 1664525U + 1013904223U;
			lo[c] = (seed >> 8) / 16777216.0 * 12 - 7;
			seed = seed * 1664525U + 1013904223U;
			hi[c] = lo[c] + 0.01 + (seed >> 8) / 16777216.0 * 4;
		}
		area = circle_area(5, lo, hi);
		assert_near(area, strips(5, lo, hi), 2e-5);
		assert_true(area >= 0 && area <= (hi[0] - lo[0]) * (hi[1] - lo[1]) + 1e-12);
	}
}

TEST(volumes)
{
	double sum = 0;

	for (int k = -7; k < 7; k++)
		for (int j = -7; j < 7; j++)
			for (int i = -7; i < 7; i++)
				sum += sphere_volume(5.3, (double[]){i, j, k}, (double[]){i + 1.0, j + 1.0, k + 1.0});
	assert_near(sum, 4 * M_PI / 3 * 5.3 * 5.3 * 5.3, 0.02);
	assert_near(sphere_volume(5, (double[]){1, 1, 1}, (double[]){2, 2, 2}), 1, 1e-12);
	assert_near(sphere_volume(5, (double[]){1, 1, 6}, (double[]){2, 2, 7}), 0, 0);
}

TEST(sums)
{
	struct region_sum s = {0}, same = {0};

	assert_true(isnan(region_sd(&s)));
	region_add(&s, 0, 7); /* outside */
	region_add(&s, 1, 1e6 + 1);
	assert_int_equal(s.n, 1);
	assert_true(isnan(region_sd(&s))); /* one value has no deviation */
	region_add(&s, 1, 1e6 - 1);
	region_add(&s, 1, 1e6);
	assert_near(s.mean, 1e6, 1e-9);
	assert_near(region_sd(&s), 1, 1e-9); /* n - 1 */
	assert_near(s.min, 1e6 - 1, 0);
	assert_near(s.max, 1e6 + 1, 0);
	region_add(&same, 0.25, 2); /* mean (0.5 + 6) / 1.75 */
	region_add(&same, 1.5, 4);
	assert_near(same.mean, 6.5 / 1.75, 1e-12);
	assert_near(region_sd(&same),
		    sqrt((0.25 * pow(2 - 6.5 / 1.75, 2) + 1.5 * pow(4 - 6.5 / 1.75, 2)) / (1.75 - (0.0625 + 2.25) / 1.75)),
		    1e-12);
}

/* One wave on a slope: all power at its frequency, and the integral is its variance. */
TEST(one_wave)
{
	const double h[2] = {0.5, 0.8};
	struct noise_spectrum s GOES(noise_spectrum_clear) = {0};
	struct noise_bin bins[16];
	float values[32 * 40];

	assert_int_equal(noise_spectrum_create(32, h, &s, NULL), 0);
	for (int j = 0; j < 32; j++)
		for (int i = 0; i < 40; i++)
			values[j * 40 + i] = (float)(3 * cos(2 * M_PI * 6 * (j - 15.5) / 32) + 100 + 0.25 * i + 0.5 * j);
	noise_spectrum_add(&s, values, 40);
	assert_near(s.variance, 4.5, 1e-5); /* the wave is even around the middle: the fitted plane takes nothing of it */
	assert_near(noise_spectrum_integral(&s), s.variance, 1e-9);
	assert_near(noise_spectrum_at(&s, 0, 6), 4.5 / 2 * 32 * 0.5 * 32 * 0.8, 0.01);	/* values are float */
	assert_near(noise_spectrum_at(&s, 0, 26), 4.5 / 2 * 32 * 0.5 * 32 * 0.8, 0.01); /* values are float */
	assert_near(noise_spectrum_at(&s, 6, 0), 0, 1e-6);
	noise_spectrum_rings(&s, bins);
	for (int k = 0; k < 16; k++)
		assert_true(bins[k].n > 0 && (k == 5 ? bins[k].power > 10 : bins[k].power < 1));
	assert_near(bins[5].frequency, 6 / (32 * 0.8), 0.01);
}

/* White noise: flat, at variance times the area of a pixel, less what the plane takes. */
TEST(white_noise)
{
	const double h[2] = {2, 2};
	struct noise_spectrum s GOES(noise_spectrum_clear) = {0};
	struct noise_bin bins[8];
	double variance = 0, mean = 0;
	unsigned seed = 7;

	assert_int_equal(noise_spectrum_create(16, h, &s, NULL), 0);
	for (int k = 0; k < 400; k++) {
		float values[256];

		for (int i = 0; i < 256; i++) {
			values[i] = -6;
			for (int draw = 0; draw < 12; draw++) {
				seed = seed * 1664525U + 1013904223U;
				values[i] += (float)((seed >> 8) / 16777216.0);
			}
			values[i] *= 5;
			mean += values[i] / 102400;
			variance += (double)values[i] * values[i] / 102400;
		}
		noise_spectrum_add(&s, values, 16);
	}
	variance -= mean * mean;
	assert_int_equal(s.n, 400);
	assert_near(s.variance, variance * 253 / 256, 0.01 * variance); /* a plane has three parameters */
	assert_near(noise_spectrum_integral(&s), s.variance, 1e-9 * s.variance);
	noise_spectrum_rings(&s, bins);
	for (int k = 2; k < 8; k++)
		assert_near(bins[k].power, variance * 4, 0.05 * variance * 4);
}

TEST(refusals)
{
	struct noise_spectrum s;
	struct err err = {0};

	assert_int_equal(noise_spectrum_create(3, (double[]){1, 1}, &s, &err), -EINVAL);
	assert_int_equal(noise_spectrum_create(257, (double[]){1, 1}, &s, &err), -EINVAL);
	assert_int_equal(noise_spectrum_create(16, (double[]){1, NAN}, &s, &err), -EINVAL);
}
