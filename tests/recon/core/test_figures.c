/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of image quality compared with closed solutions. */
#include "recon/core/figures.h"
#include "tests/test.h"

TEST(sums)
{
	struct figure_sum s = {0};

	assert_near(figure_sd(&s), 0, 0);
	for (int i = 0; i < 1000; i++)
		figure_add(&s, 1e6 + (i % 2 ? 3 : -3)); /* far from zero, where a variance computed from the sum of squares would
							   be inaccurate */
	assert_near(s.mean, 1e6, 1e-6);
	assert_near(figure_sd(&s), 3 * sqrt(1000.0 / 999), 1e-9);
}

TEST(peaks)
{
	for (int k = 0; k < 60; k++) {
		double sigma = 0.5 + 0.05 * k, centre = 10.3 + 0.07 * k, height = 0.2 + k, background = k % 3 - 1;
		double x[31], v[31];
		struct figure_peak p;

		for (int i = 0; i < 31; i++) {
			x[i] = i;
			v[i] = background + height * exp(-pow((i - centre) / sigma, 2) / 2);
		}
		assert_int_equal(figure_fit_peak(x, v, 31, &p, NULL), 0);
		assert_near(p.centre, centre, 1e-6);
		assert_near(p.sigma, sigma, 1e-6);
		assert_near(p.height, height, 1e-6 * height);
		assert_near(p.background, background, 1e-6 * height);
		assert_near(p.residual, 0, 1e-6);
		assert_near(figure_fwhm(&p), 2.354820045 * sigma, 1e-5);
	}
}

/* A triangle, from which a Gaussian differs by a few percent; it is symmetric, so the fitted centre is exact. */
TEST(other_shapes)
{
	double x[21], v[21];
	struct figure_peak p;

	for (int i = 0; i < 21; i++) {
		x[i] = 0.34 * i;
		v[i] = fmax(0, 1 - fabs(i - 10.0) / 4);
	}
	assert_int_equal(figure_fit_peak(x, v, 21, &p, NULL), 0);
	assert_near(p.centre, 3.4, 1e-6);
	assert_near(figure_fwhm(&p), 4 * 0.34, 0.2 * 0.34);
	assert_true(p.residual > 0.001 && p.residual < 0.05);
	assert_near(figure_half_width(x, v, 21, 10), 4 * 0.34, 1e-9);
}

TEST(no_peak)
{
	double x[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, flat[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, slope[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	struct figure_peak p;
	struct err err = {0};

	assert_error(figure_fit_peak(x, flat, 9, &p, &err), &err, EDOM, "9 samples");
	assert_int_equal(figure_fit_peak(x, slope, 9, &p, NULL), -EDOM);
	assert_int_equal(figure_fit_peak(x, slope, 4, &p, NULL), -EDOM);
}

/* A line spread that is a Gaussian has MTF50 = sqrt(2 ln 2) / (2 pi sigma); seen with a ball it is the same, as long as the ball is not
 * too large for it. */
TEST(mtf)
{
	enum { N = 81 };
	double x[N], v[N], sigma = 0.25, truth = sqrt(2 * log(2)) / (2 * M_PI * sigma);

	for (int k = 0; k < 3; k++) {
		double radius = (double[]){0, 0.4, 1.5}[k], found;

		for (int i = 0; i < N; i++) {
			x[i] = 0.1 * (i - N / 2);
			v[i] = radius > 0 ? 0 : exp(-x[i] * x[i] / (2 * sigma * sigma));
			for (int s = -200; s < 200 && radius > 0; s++) { /* the line integral of a ball is radius^2 - s^2 */
				double at = (s + 0.5) / 200 * radius, d = (x[i] - at) / sigma;

				v[i] += (radius * radius - at * at) * exp(-d * d / 2);
			}
		}
		found = figure_mtf50(x, v, N, radius);
		if (k < 2)
			assert_near(found, truth, 0.002 * truth);
		else
			assert_true(isnan(found));
	}
	v[3] = NAN;
	assert_true(isnan(figure_mtf50(x, v, N, 0)));
}

TEST(half_widths)
{
	double x[7] = {0, 1, 2, 3, 4, 5, 6}, cut[7] = {2, 1, 0.5, 0, 0, 0, 0}, never[7] = {3, 3, 4, 4, 4, 3, 3};

	assert_near(figure_half_width(x, cut, 7, 0), 2, 1e-12); /* one side at the edge: twice the other */
	assert_true(isnan(figure_half_width(x, never, 7, 3)));
}
