/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of rows in space, compared with two nested loops. */
#include "tests/kernels/cpu/lines_fixture.h"
#include "tests/kernels/draw.h"
#include "tests/test.h"

/* Compare with two nested loops. */
static void check_convolution(size_t outer, size_t inner, int n, int set)
{
	TEST_BLOCK;
	size_t size = outer * (size_t)n * inner;
	struct fixture f = {0};
	float *y = take_memory(size * sizeof(float)), *kernel = take_memory((size_t)n * sizeof(float));
	double *want = take_zeros(size, sizeof(double));
	struct buf by, ret;
	uint32_t seed = 11;

	f.dev = fixture_device(FIXTURE_CPU, 2);
	cpu_state(f.dev)->rows = cpu_rows_at(set);
	f.v = f.dev->ops;
	for (size_t i = 0; i < size; i++)
		y[i] = fixture_random(&seed) - 0.3f;
	for (int i = 0; i < n; i++)
		kernel[i] = (fixture_random(&seed) - 0.3f) / (float)(1 + i);
	for (size_t o = 0; o < outer; o++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				for (size_t k = 0; k < inner; k++)
					want[(o * (size_t)n + (size_t)i) * inner + k] +=
						(double)kernel[abs(i - j)] * y[(o * (size_t)n + (size_t)j) * inner + k];
	by = fixture_upload(f.dev, y, size);
	ret = fixture_upload(f.dev, NULL, size);
	assert_int_equal(f.v->convolve(&by, outer, n, inner, kernel, false, &ret, NULL), 0);
	near(fixture_download(&ret), want, size, 3e-6);
	assert_int_equal(f.v->convolve(&by, outer, n, inner, kernel, false, &by, NULL), -EINVAL);
}

TEST(test_convolve)
{
	static const struct {
		size_t outer, inner;
		int n;
	} shapes[] = {{3, 1, 1}, {5, 1, 37}, {2, 1, 300}, {2, 1, 1100}, {4, 5, 33}, {1, 64, 70}, {2, 600, 9}, {7, 1, 16}};

	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int set = 0; cpu_rows_at(set); set++)
			check_convolution(shapes[s].outer, shapes[s].inner, shapes[s].n, set);
}

TEST(test_random)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(60); i++) {
		size_t outer = (size_t)draw_int(&seed, 1, 4), inner = draw_int(&seed, 0, 1) ? 1 : (size_t)draw_size(&seed, 1, 70);
		int n = draw_size(&seed, 1, 90);

		for (int set = 0; cpu_rows_at(set); set++)
			check_convolution(outer, inner, n, set);
	}
}
