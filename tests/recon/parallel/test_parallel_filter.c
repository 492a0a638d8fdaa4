/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of parallel beams: its kernels, the ends of rows, its two implementations. */
#include "recon/core/ramp.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

/* Both routes use the same kernel in float; sums of some hundred terms. */
#define ROUTE_TOL 1e-5

/* Kernels are exact transforms of |f| times a window, and their sum is 0: no bias at frequency 0. */
TEST(kernels_and_windows)
{
	enum { N = 64, STEPS = 20000 };
	static const enum ramp_filter filters[] = {RAMP_PLAIN, RAMP_SHEPP_LOGAN, RAMP_COSINE, RAMP_HANN, RAMP_HANN};
	const double pitch = 0.7, nyquist = 0.5 / pitch;

	for (int i = 0; i < 5; i++) {
		double cut = i == 4 ? 0.6 : 1;
		struct ramp *r = NULL;
		const float *h;

		assert_int_equal(ramp_create(filters[i], cut, pitch, N, &r, NULL), 0);
		h = ramp_kernel(r);
		for (int j = 0; j < N; j++) {
			double sum = 0, df = nyquist / STEPS;

			for (int k = 0; k < STEPS; k++) {
				double f = (k + 0.5) * df, u = f / nyquist;
				double window = i == 0	  ? 1
						: i == 1  ? sin(PI * u / 2) / (PI * u / 2)
						: i == 2  ? cos(PI * u / 2)
						: u < cut ? 0.5 * (1 + cos(PI * u / cut))
							  : 0;

				sum += 2 * df * f * window * cos(2 * PI * f * j * pitch);
			}
			assert_near(h[j], pitch * sum, 2e-6 * h[0]);
			if (i == 1)
				assert_near(h[j], 2 / (PI * PI * pitch * (1 - 4.0 * j * j)), 1e-6 * h[0]);
		}
		assert_near(ramp_tail(r, 0), h[0] / 2, 1e-6 * h[0]); /* the sum from 1 on is minus half the middle value */
		ramp_free(r);
	}
}

/* One bin, one view: the image is the kernel of the filter. Transforms without padding would wrap around. */
TEST(filter_does_not_wrap)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = {.n_slices = 1, .n_angles = 1, .n_radial = 33, .bin = 1, .slice = 1, .arc = 180};
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, 33);
	float lines[33] = {0};

	lines[0] = 1;
	p.filter_cut = 0.7;
	for (int filter = PARALLEL_RAM_LAK; filter <= PARALLEL_HANN; filter++)
		for (int route = PARALLEL_FOURIER; route <= PARALLEL_CONVOLUTION; route++) {
			static const enum ramp_filter kernels[] = {[PARALLEL_RAM_LAK] = RAMP_PLAIN,
								   [PARALLEL_SHEPP_LOGAN] = RAMP_SHEPP_LOGAN,
								   [PARALLEL_COSINE] = RAMP_COSINE,
								   [PARALLEL_HANN] = RAMP_HANN};
			struct ramp *kernel = NULL;
			float *image;

			p.filter = (enum parallel_filter)filter;
			p.route = (enum parallel_route)route;
			assert_int_equal(ramp_create(kernels[filter], p.filter_cut, 1, 33, &kernel, NULL), 0);
			image = parallel_image(&p, &s, dev, lines, NULL);
			for (int i = 0; i < 33; i++)
				for (int j = 0; j < 33; j++)
					assert_near(image[j * 33 + i], PI * (double)ramp_kernel(kernel)[i], 2e-6);
			ramp_free(kernel);
		}
}

TEST(routes_agree)
{
	static const struct {
		int slices, angles, matrix;
	} sizes[] = {{1, 31, 40}, {1, 2, 37}, {2, 15, 33}, {19, 11, 35}};

	for (int device = 0; device < FIXTURE_DEVICES; device++) {
		struct device *dev = fixture_device(device, 2);

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int filter = PARALLEL_RAM_LAK; filter <= PARALLEL_HANN; filter++) {
				struct parallel_scan s = parallel_scan_of(sizes[i].matrix, sizes[i].angles, sizes[i].slices);
				struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, sizes[i].matrix);
				size_t n = (size_t)(sizes[i].matrix * sizes[i].matrix * sizes[i].slices);
				float *lines = fixture_floats(parallel_size(&s), 5, -1, 3), *a, *b;

				p.filter = (enum parallel_filter)filter;
				p.filter_cut = 0.8;
				a = parallel_image(&p, &s, dev, lines, NULL);
				p.route = PARALLEL_CONVOLUTION;
				b = parallel_image(&p, &s, dev, lines, NULL);
				assert_true(largest(a, n) > 0.1);
				assert_true(farthest(a, b, n) <= ROUTE_TOL * largest(a, n));
			}
	}
}
