/* SPDX-License-Identifier: Apache-2.0 */
/* Rays of parallel beams compared with known chords and line integrals. */
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

static const enum projection_model models[] = {PROJECTION_EXACT, PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_SAMPLED};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

/* Radon transform of a rectangle of whole pixels. Models with ray lengths are exact. Interpolation blurs by one pixel, which
 * affects only edges: the chord through a corner has an error of up to one or two pixel diagonals. */
TEST(radon_of_a_rectangle)
{
	/* tolerance of a chord for each model, mm */
	static const double inside[N_MODELS] = {2e-4, 2e-4, 1.6, 1.6};
	enum { N = 37 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 24, 2);
	/* x = -12.5 .. 6.5, y = -4.5 .. 14.5 */
	const struct parallel_shape shape = {
		.n_corners = 4, .corner = {{-12.5, -4.5}, {6.5, -4.5}, {6.5, 14.5}, {-12.5, 14.5}}, .mu = 0.02};
	float *chords;

	s.first_angle = 3.1; /* no ray along an edge */
	chords = parallel_lines(&s, &shape, 1, 0);
	for (size_t m = 0; m < N_MODELS; m++) {
		struct parallel_protocol p = parallel_protocol_of(ALGORITHM_BP, N);
		struct parallel_plan plan;
		double square = 0, power = 0;
		float *truth, *lines;

		p.projector = models[m];
		plan = parallel_plan_made(&p, &s, dev);
		truth = parallel_truth(&plan, &shape, 1, 0, 1);
		lines = parallel_project(&p, &s, dev, truth);
		assert_true(farthest(lines, chords, parallel_size(&s)) <= 0.02 * inside[m]);
		for (size_t i = 0; i < parallel_size(&s); i++) {
			square += (lines[i] - chords[i]) * (lines[i] - chords[i]);
			power += chords[i] * chords[i];
		}
		assert_true(sqrt(square / power) < (m < 2 ? 1e-5 : 0.03));
	}
}

/* Ellipses, each pixel with its mean, compared with chords: the difference is caused by the size of pixels. It is largest for
 * rays near the edge, where the chord sqrt(8 r d) increases within a fraction d of a pixel. */
TEST(radon_of_ellipses)
{
	static const struct parallel_shape ellipses[] = {{.c = {5, -8}, .r = {25, 14}, .turn = 30, .mu = 0.02},
							 {.c = {-9, 6}, .r = {8, 11}, .turn = -70, .mu = 0.03}};
	static const double rms[N_MODELS] = {0.02, 0.02, 0.02, 0.02}; /* relative to the root mean square chord */
	enum { N = 80 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 30, 2);
	float *chords = parallel_lines(&s, ellipses, 2, 0);

	for (size_t m = 0; m < N_MODELS; m++) {
		struct parallel_protocol p = parallel_protocol_of(ALGORITHM_BP, N);
		struct parallel_plan plan;
		double square = 0, power = 0;
		float *truth, *lines;

		p.projector = models[m];
		plan = parallel_plan_made(&p, &s, dev);
		truth = parallel_truth(&plan, ellipses, 2, 0, 16);
		lines = parallel_project(&p, &s, dev, truth);
		for (size_t i = 0; i < parallel_size(&s); i++) {
			square += (lines[i] - chords[i]) * (lines[i] - chords[i]);
			power += chords[i] * chords[i];
		}
		if (!(sqrt(square / power) < rms[m]))
			fail_msg("model %d: %g", (int)models[m], sqrt(square / power));
	}
}

/* Gaussian: its line integrals are known, and the error of linear interpolation is at most h^2 / 8 f'' in each direction. */
TEST(radon_of_a_gaussian)
{
	enum { N = 61 };
	const double sigma = 5, x0 = 4.3, y0 = -6.1;
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 25, 1);
	float *image = take_memory(N * N * sizeof(*image));

	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++) {
			double x = i - 30 - x0, y = j - 30 - y0;

			image[j * N + i] = (float)exp(-0.5 * (x * x + y * y) / (sigma * sigma));
		}
	for (size_t m = 0; m < N_MODELS; m++) {
		struct parallel_protocol p = parallel_protocol_of(ALGORITHM_BP, N);
		double top = sigma * sqrt(2 * PI);
		float *lines;

		p.projector = models[m];
		lines = parallel_project(&p, &s, dev, image);
		for (int a = 0; a < s.n_angles; a++) {
			double theta = PI * a / s.n_angles, at = x0 * cos(theta) + y0 * sin(theta);

			for (int t = 0; t < s.n_radial; t++) {
				double d = (parallel_radius(&s, t) - at) / sigma;

				assert_near(lines[a * s.n_radial + t], top * exp(-0.5 * d * d), 0.025 * top);
			}
		}
	}
}

/* The projection of every pixel, including corners and outermost columns, has the right sum and centre in every direction: no ray
 * or column is missing or used twice, and positions are not rounded towards the middle. */
TEST(every_pixel_is_projected)
{
	enum { N = 7 };
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct parallel_scan s = {.n_slices = N * N, .n_angles = 9, .n_radial = 2001, .bin = 0.01, .slice = 1, .arc = 180};
	float *pixels = take_zeros(N * N * N * N, sizeof(*pixels));

	for (int i = 0; i < N * N; i++)
		pixels[(i * N * N) + i] = 1; /* slice i: only pixel i */
	for (size_t m = 0; m < N_MODELS; m++) {
		struct parallel_protocol p = parallel_protocol_of(ALGORITHM_BP, N);
		float *lines;

		p.projector = models[m];
		p.sampling = 0.02;
		lines = parallel_project(&p, &s, dev, pixels);
		for (int i = 0; i < N * N; i++)
			for (int a = 0; a < s.n_angles; a++) {
				double theta = PI * a / s.n_angles, sum = 0, first = 0, x = i % N - 3, y = i / N - 3;

				for (int t = 0; t < s.n_radial; t++) {
					double line = lines[(i * s.n_angles + a) * s.n_radial + t];

					sum += line * s.bin;
					first += line * s.bin * parallel_radius(&s, t);
				}
				if (models[m] == PROJECTION_JOSEPH &&
				    (i % N == 0 || i / N == 0 || i % N == N - 1 || i / N == N - 1))
					continue; /* the interpolation continues beyond the edge: kernels/paths.h */
				assert_near(sum, 1, 0.02);
				assert_near(first / sum, x * cos(theta) + y * sin(theta), 0.02);
			}
	}
}
