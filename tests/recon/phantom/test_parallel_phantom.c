/* SPDX-License-Identifier: Apache-2.0 */
/* Phantoms of parallel beams: their chords compared with sums of points along the ray, their mass, positions of shapes, noise. */
#include "recon/core/scan.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

#define SIDE 200.0
#define STEP 0.02 /* distance of sample points along a ray, mm; each of at most 40 ends of chords has an error of one step */

TEST_GIVES_BACK(parallel_phantom_free);

static struct parallel_phantom *phantom_of(int kind)
{
	struct parallel_phantom *p = NULL;

	assert_int_equal(parallel_phantom_create((enum parallel_phantom_kind)kind, SIDE, &p, NULL), 0);
	test_later(give_back_parallel_phantom_free, p);
	return p;
}

TEST(chords)
{
	for (int kind = PARALLEL_PHANTOM_CIRCLE; kind <= PARALLEL_PHANTOM_HEAD; kind++) {
		struct parallel_phantom *p = phantom_of(kind);
		int met = 0;

		for (int a = 0; a < 12; a++)
			for (int t = -9; t <= 9; t++) {
				if (test_tier() < 2 && (a + t + 9) % 4 != kind % 4)
					continue;
				double turn[2], s = 10.3 * t, sum = 0, line;

				scan_turn(15.5 * a - 3, turn);
				for (double l = -150; l < 150; l += STEP)
					sum += STEP *
					       parallel_phantom_value(p, s * turn[0] - l * turn[1], s * turn[1] + l * turn[0]);
				line = parallel_phantom_line(p, turn, s);
				assert_near(line, sum, 4 * STEP * PARALLEL_WATER);
				met += line > 0;
			}
		assert_true(met > (test_tier() == 2 ? 60 : 15));
	}
}

/* The sum over a projection (the mass) is the same at every angle and has the known value. */
TEST(mass)
{
	static const double expected[] = {0, 3.14159265358979323846 * 60 * 60, 100 * 100, 0.5 * 110 * 110, 0, 0};
	struct parallel_scan s = {.n_slices = 1, .n_angles = 37, .n_radial = 3000, .bin = 0.1, .slice = 1, .arc = 180};
	float *lines = take_memory(parallel_size(&s) * sizeof(*lines));

	for (int kind = PARALLEL_PHANTOM_CIRCLE; kind <= PARALLEL_PHANTOM_HEAD; kind++) {
		struct parallel_phantom *p = phantom_of(kind);
		double first = 0;

		assert_int_equal(parallel_phantom_project(p, &s, 0, lines, NULL), 0);
		for (int a = 0; a < s.n_angles; a++) {
			double sum = 0;

			for (int t = 0; t < s.n_radial; t++)
				sum += lines[a * s.n_radial + t] * s.bin;
			first = a ? first : sum;
			assert_near(sum, first, 2e-4 * first);
		}
		if (expected[kind] > 0)
			assert_near(first, PARALLEL_WATER * expected[kind], 2e-4 * first);
	}
}

/* y runs down: the triangle's tip is above, the large bright ellipse of the head, too; the larger dark one is on the left. */
TEST(what_lies_where)
{
	struct parallel_phantom *triangle = phantom_of(PARALLEL_PHANTOM_TRIANGLE), *head = phantom_of(PARALLEL_PHANTOM_HEAD),
				*easy = phantom_of(PARALLEL_PHANTOM_SHEPP_LOGAN);
	const double w = PARALLEL_WATER;

	assert_near(parallel_phantom_value(triangle, 0, -55), w, 1e-12);
	assert_near(parallel_phantom_value(triangle, 0, 55), 0, 1e-12);
	assert_near(parallel_phantom_value(head, 0, -91), 2 * w, 1e-12);	/* skull */
	assert_near(parallel_phantom_value(head, 0, 70), 1.02 * w, 1e-12);	/* brain */
	assert_near(parallel_phantom_value(head, 0, -45), 1.03 * w, 1e-12);	/* the ellipse above the middle */
	assert_near(parallel_phantom_value(head, 22, 0), 1.00 * w, 1e-12);	/* ventricles */
	assert_near(parallel_phantom_value(head, -33.5, -33), 1.00 * w, 1e-12); /* leans outward above: the end of the left one */
	assert_near(parallel_phantom_value(head, 33.5, -33), 1.02 * w, 1e-12);	/* which the right one does not reach */
	assert_near(parallel_phantom_value(head, -8, 60.5), 1.03 * w, 1e-12);	/* the three small ones */
	assert_near(parallel_phantom_value(easy, 0, -91), w, 1e-12);
	assert_near(parallel_phantom_value(easy, 0, 70), 0.2 * w, 1e-12);
	assert_near(parallel_phantom_value(easy, 22, 0), 0, 1e-12);
}

TEST(along_an_edge)
{
	struct parallel_phantom *p = phantom_of(PARALLEL_PHANTOM_SQUARE);
	const double x[2] = {1, 0}, y[2] = {0, 1};

	assert_near(parallel_phantom_line(p, x, 50), 50 * PARALLEL_WATER, 1e-12);
	assert_near(parallel_phantom_line(p, x, 49.999), 100 * PARALLEL_WATER, 1e-12);
	assert_near(parallel_phantom_line(p, x, 50.001), 0, 1e-12);
	assert_near(parallel_phantom_line(p, y, -50), 50 * PARALLEL_WATER, 1e-12);
}

/* Slices become smaller, but values do not change; offset and first angle are those of the scan. */
TEST(slices_and_offsets)
{
	struct parallel_scan s = {
		.n_slices = 4, .n_angles = 5, .n_radial = 31, .bin = 3, .offset = 1.1, .slice = 1, .first_angle = 20, .arc = 90};
	struct parallel_phantom *p = phantom_of(PARALLEL_PHANTOM_HEAD);
	struct grid g = {{9, 7, 4}, {10, 11, 1}, {-44, -39, 0}, false};
	float *lines = take_memory(parallel_size(&s) * sizeof(*lines)), truth[9 * 7 * 4];
	double turn[2];

	assert_int_equal(parallel_phantom_project(p, &s, 0.4, lines, NULL), 0);
	scan_turn(20 + 3 * 18, turn);
	for (int t = 0; t < 31; t++)
		assert_near(lines[(2 * 5 + 3) * 31 + t], 0.8 * parallel_phantom_line(p, turn, (3 * (t - 15) + 1.1) / 0.8), 1e-6);
	assert_int_equal(parallel_phantom_draw(p, &g, 0.4, 1, truth, NULL), 0);
	assert_near(truth[(2 * 7 + 1) * 9 + 6], parallel_phantom_value(p, 21 / 0.8, -22.5 / 0.8), 1e-8);
}

TEST(noise)
{
	enum { N = 40000 };
	float *lines = take_memory(N * sizeof(*lines)), again[100];
	double mean = 0, square = 0;

	for (int i = 0; i < N; i++)
		lines[i] = 1.5f;
	assert_int_equal(parallel_phantom_noise(lines, N, 0, 1e4, 7, NULL), 0);
	for (int i = 0; i < N; i++) {
		mean += lines[i] / N;
		square += (lines[i] - 1.5) * (lines[i] - 1.5) / N;
	}
	/* variance 1 / expected counts, to first order; bias half of it */
	assert_near(square, exp(1.5) / 1e4, 0.03 * exp(1.5) / 1e4);
	assert_near(mean, 1.5, 5 * sqrt(square / N) + square);
	for (int i = 0; i < 100; i++)
		again[i] = 1.5f;
	assert_int_equal(parallel_phantom_noise(again, 100, 500, 1e4, 7, NULL), 0);
	for (int i = 0; i < 100; i++)
		assert_true(again[i] == lines[500 + i]);
	lines[3] = 100; /* no photon comes through */
	assert_int_equal(parallel_phantom_noise(lines, 4, 0, 1e4, 7, NULL), 0);
	assert_near(lines[3], log(2e4), 1e-5);
	lines[3] = NAN;
	assert_int_equal(parallel_phantom_noise(lines, 4, 0, 1e4, 7, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_noise(again, 4, 0, 0, 7, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_noise(again, 4, 0, nextafter(POISSON_MEAN_MAX, INFINITY), 7, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_noise(again, 4, 0, POISSON_MEAN_MAX, 7, NULL), 0);
}

TEST(refusals)
{
	struct parallel_scan s = {.n_slices = 1, .n_angles = 1, .n_radial = 1, .bin = 1, .slice = 1, .arc = 180};
	struct parallel_phantom *p = phantom_of(PARALLEL_PHANTOM_CIRCLE), *none = NULL;
	struct grid g = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, false};
	float one = 7;

	assert_int_equal(parallel_phantom_create((enum parallel_phantom_kind)9, 1, &none, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_create(PARALLEL_PHANTOM_HEAD, NAN, &none, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_create(PARALLEL_PHANTOM_HEAD, 0, &none, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_create(PARALLEL_PHANTOM_HEAD, 10000.1, &none, NULL), -EINVAL);
	assert_null(none);
	assert_int_equal(parallel_phantom_create(PARALLEL_PHANTOM_HEAD, 10000, &none, NULL), 0);
	parallel_phantom_free(none);
	assert_null(parallel_phantom_name((enum parallel_phantom_kind)0));
	assert_string_equal(parallel_phantom_name(PARALLEL_PHANTOM_SHEPP_LOGAN), "shepp-logan");
	assert_int_equal(parallel_phantom_project(p, &s, 1, &one, NULL), -EINVAL);
	assert_int_equal(parallel_phantom_draw(p, &g, 0, 0, &one, NULL), -EINVAL);
	s.bin = 0;
	assert_int_equal(parallel_phantom_project(p, &s, 0, &one, NULL), -EINVAL);
	assert_true(one == 7);
	assert_null(parallel_phantom_free(NULL));
}
