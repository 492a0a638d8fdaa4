/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel beams: images compared with the true image, equal and unequal angles, parts; checks for the common errors of published
 * implementations. Rays: test_parallel_radon.c; the filter: test_parallel_filter.c; ART and the iterative algorithms:
 * test_parallel_iterate.c. */
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

/* mm; a disc of 4 pixels whose filtered tail ends at a pixelated circle: measured 0.015, outward in all quadrants */
#define POINT_TOL 0.03

static const struct parallel_shape disc[] = {{.r = {20, 20}, .mu = 0.02}};

/* Return the mean over the pixels whose centres are `from` to `to` mm away from (x, y). */
static double mean_in(const struct parallel_plan *plan, const float *image, double x, double y, double from, double to)
{
	const struct grid *g = &plan->grid;
	double sum = 0;
	int n = 0;

	for (int j = 0; j < g->n[1]; j++)
		for (int i = 0; i < g->n[0]; i++) {
			double r = hypot(g->lo[0] + (i + 0.5) * g->h[0] - x, g->lo[1] + (j + 0.5) * g->h[1] - y);

			if (r >= from && r < to) {
				sum += image[j * g->n[0] + i];
				n++;
			}
		}
	assert_true(n > 0);
	return sum / n;
}

/* Closer to the edge a band-limited ramp causes ringing. */
#define INNER 0.75

/* Check that every pixel of a disc of `radius` around (x, y) has the value within a tolerance, and that the mean around it is 0.
 */
static void check_disc(const struct parallel_plan *plan, const float *image, double x, double y, double radius, double value,
		       double part)
{
	const struct grid *g = &plan->grid;
	double worst = 0, around;

	for (int j = 0; j < g->n[1]; j++)
		for (int i = 0; i < g->n[0]; i++)
			if (hypot(g->lo[0] + (i + 0.5) * g->h[0] - x, g->lo[1] + (j + 0.5) * g->h[1] - y) < INNER * radius)
				worst = fmax(worst, fabs(image[j * g->n[0] + i] - value));
	if (!(worst <= part * value))
		fail_msg("worst pixel %g of %g off", worst, value);
	around = mean_in(plan, image, x, y, 1.15 * radius, 1.4 * radius);
	assert_near(around, 0, 0.5 * part * value);
	assert_near(mean_in(plan, image, x, y, 0, INNER * radius), value, 0.5 * part * value);
}

/* Value and position are correct for all pitches, numbers of angles, odd and even sizes, arcs and positions of the axis. */
TEST(disc_has_its_value)
{
	static const struct {
		int matrix, radial, angles;
		double bin, pixel, offset, first, arc;
	} ways[] = {
		{65, 93, 180, 1, 1, 0, 0, 180},	     {64, 92, 181, 1, 1, 0, 0, 180},	  {64, 93, 180, 1, 1, 0.3, 17, 180},
		{51, 199, 300, 0.5, 1.3, 0, 0, 180}, {130, 92, 150, 1, 0.5, 0.5, 0, 180}, {61, 92, 360, 1, 1, 0.25, 0, 360},
		{61, 92, 270, 1, 1, 0, -30, 270},
	};

	for (int device = 0; device < FIXTURE_DEVICES; device++) {
		struct device *dev = fixture_device(device, 2);

		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
			for (int filter = PARALLEL_RAM_LAK; filter <= PARALLEL_HANN; filter++) {
				struct parallel_scan s = {.n_slices = 1,
							  .n_angles = ways[w].angles,
							  .n_radial = ways[w].radial,
							  .bin = ways[w].bin,
							  .offset = ways[w].offset,
							  .slice = 1,
							  .first_angle = ways[w].first,
							  .arc = ways[w].arc};
				struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, ways[w].matrix);
				struct parallel_shape shape = disc[0];
				struct parallel_plan plan;
				float *lines, *image;

				if (device == FIXTURE_POISON && filter != PARALLEL_RAM_LAK)
					continue;
				p.pixel = ways[w].pixel;
				p.filter = (enum parallel_filter)filter;
				shape.c[0] = 4.2;
				shape.c[1] = -3.7;
				lines = parallel_lines(&s, &shape, 1, 0);
				image = parallel_image(&p, &s, dev, lines, NULL);
				plan = parallel_plan_made(&p, &s, dev);
				check_disc(&plan, image, 4.2, -3.7, 20, 0.02, 0.01);
			}
	}
}

/* Lists of angles: unequal steps, unordered, repeated, beyond 180 degrees, golden section. */
TEST(lists_of_angles)
{
	enum { N = 300 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(64, N, 1);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, 64);
	struct parallel_plan plan = parallel_plan_made(&p, &s, dev);
	/* not in the middle, where the same part of the edge is between two rays in all views */
	const struct parallel_shape shape = {.c = {4.2, -3.7}, .r = {20, 20}, .mu = 0.02};
	double angle[N], weight[N];
	uint32_t seed = 3;

	s.angle = angle;
	for (int way = 0; way < 4; way++) {
		double sum = 0;
		float *lines, *image;

		for (int a = 0; a < N; a++)
			angle[a] = way == 0   ? 180.0 * pow((a + 0.5) / N, 1.6)			 /* decreasing steps */
				   : way == 1 ? 720.0 * a / N					 /* each four times */
				   : way == 2 ? fmod(a * 111.246117975, 360) - 90		 /* golden section */
					      : 180.0 * (a * 7 % N + fixture_random(&seed)) / N; /* unordered, unequal steps */
		assert_int_equal(parallel_weights(&s, weight, NULL), 0);
		for (int a = 0; a < N; a++)
			sum += weight[a];
		assert_near(sum, PI, 1e-9);
		lines = parallel_lines(&s, &shape, 1, 0);
		image = parallel_image(&p, &s, dev, lines, NULL);
		check_disc(&plan, image, 4.2, -3.7, 20, 0.02, 0.01);
	}
}

TEST(weights_of_views)
{
	double angle[4] = {0, 10, 30, 40}, w[4];
	struct parallel_scan s = {.n_slices = 1, .n_angles = 4, .n_radial = 1, .bin = 1, .slice = 1, .angle = angle};
	const double degree = PI / 180;

	assert_int_equal(parallel_weights(&s, w, NULL), 0); /* 140 degrees were not measured */
	assert_near(w[0], 10 * degree, 1e-12);
	assert_near(w[1], 15 * degree, 1e-12);
	assert_near(w[2], 15 * degree, 1e-12);
	assert_near(w[3], 10 * degree, 1e-12);
	angle[3] = 270; /* same direction as 90: gaps of 10, 20, 60, 90 */
	assert_int_equal(parallel_weights(&s, w, NULL), 0);
	assert_near(w[0], 50 * degree, 1e-12);
	assert_near(w[2], 40 * degree, 1e-12);
	assert_near(w[3], 75 * degree, 1e-12);
	for (int a = 0; a < 4; a++)
		angle[a] = 180 * a + 33; /* one direction */
	assert_int_equal(parallel_weights(&s, w, NULL), 0);
	assert_near(w[0] + w[1] + w[2] + w[3], PI, 1e-9);
	s.angle = NULL;
	s.arc = 60;
	assert_int_equal(parallel_weights(&s, w, NULL), 0);
	assert_near(w[2], 15 * degree, 1e-12);
	s.arc = 360; /* each direction twice */
	assert_int_equal(parallel_weights(&s, w, NULL), 0);
	assert_near(w[2], 45 * degree, 1e-12);
}

/* The image is larger than the circle of measured rays: outside, corners included, the result is air, with both filter routes,
 * with the axis not in the middle, in stacks and under a memory limit. */
TEST(corners_are_air)
{
	enum { N = 60 };

	for (int device = 0; device < FIXTURE_DEVICES; device++) {
		struct device *dev = fixture_device(device, 2);

		for (int way = 0; way < 8; way++) {
			const struct parallel_scan s = {.n_slices = way & 4 ? 3 : 1,
							.n_angles = 121,
							.n_radial = way & 1 ? N : N + 1,
							.bin = 1,
							.offset = way & 1 ? 0.4 : 0,
							.slice = 1,
							.arc = 180};
			const struct parallel_shape shape = {.c = {4.2, -3.7}, .r = {20, 20}, .mu = 0.02};
			struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, N);
			struct parallel_plan plan;
			float *lines = parallel_lines(&s, &shape, 1, 0), *image;

			p.route = way & 2 ? PARALLEL_CONVOLUTION : PARALLEL_FOURIER;
			plan = parallel_plan_made(&p, &s, dev);
			p.memory_limit = way & 4 ? plan.bytes.total - 1 : 0;
			plan = parallel_plan_made(&p, &s, dev);
			assert_int_equal(plan.part_slices, way & 4 ? 2 : 1);
			image = parallel_image(&p, &s, dev, lines, NULL);
			for (int k = 0; k < s.n_slices; k++) {
				check_disc(&plan, image + k * N * N, 4.2, -3.7, 20, 0.02, 0.01);
				assert_near(mean_in(&plan, image + k * N * N, 0, 0, 31, 45), 0, 0.005 * 0.02);
				for (int corner = 0; corner < 4; corner++)
					assert_near(image[k * N * N + (corner & 1 ? N - 1 : 0) + (corner & 2 ? N * (N - 1) : 0)],
						    0, 0.01 * 0.02);
			}
		}
	}
}

/* Backprojection of 1 is pi in every pixel that rays cross: each view is used once, and the last row and column are included. */
TEST(backprojection_of_one)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);

	for (int n = 31; n <= 38; n++) {
		struct parallel_scan s = parallel_scan_of(n, 2 * n + 1, 2);
		struct parallel_protocol p = parallel_protocol_of(ALGORITHM_BP, n);
		float *lines = fixture_floats(parallel_size(&s), 1, 1, 1), *image;

		image = parallel_image(&p, &s, dev, lines, NULL);
		for (int i = 0; i < 2 * n * n; i++)
			assert_near(image[i], PI, 1e-5);
	}
}

/* Centre of mass of a small disc, in each quadrant: no shift by a fraction of a pixel. */
TEST(discs_are_not_shifted)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);

	for (int n = 60; n <= 61; n++)
		for (int quadrant = 0; quadrant < 4; quadrant++)
			for (int route = PARALLEL_FOURIER; route <= PARALLEL_CONVOLUTION; route++) {
				struct parallel_scan s = parallel_scan_of(n, 120, 1);
				struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, n);
				double x = quadrant & 1 ? -12.3 : 12.3, y = quadrant & 2 ? -7.8 : 7.8, sum = 0, at[2] = {0, 0};
				const struct parallel_shape point = {.c = {x, y}, .r = {2, 2}, .mu = 1};
				float *lines = parallel_lines(&s, &point, 1, 0), *image;

				p.route = (enum parallel_route)route;
				p.filter = PARALLEL_HANN;
				image = parallel_image(&p, &s, dev, lines, NULL);
				for (int j = 0; j < n; j++)
					for (int i = 0; i < n; i++) {
						double px = i - 0.5 * (n - 1), py = j - 0.5 * (n - 1);

						if (hypot(px - x, py - y) > 7)
							continue;
						sum += image[j * n + i];
						at[0] += px * image[j * n + i];
						at[1] += py * image[j * n + i];
					}
				assert_near(sum, 4 * PI, 0.15 * PI);
				assert_near(at[0] / sum, x, POINT_TOL);
				assert_near(at[1] / sum, y, POINT_TOL);
			}
}

/* Filtered backprojection is linear: negative values are kept. */
TEST(negative_values_are_kept)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(40, 20, 1);

	for (int algorithm = ALGORITHM_BP; algorithm <= ALGORITHM_FBP; algorithm++) {
		struct parallel_protocol p = parallel_protocol_of((enum algorithm)algorithm, 40);
		float *lines = parallel_lines(&s, disc, 1, 0), *plus, *minus;
		double least = 0;

		plus = parallel_image(&p, &s, dev, lines, NULL);
		for (size_t i = 0; i < parallel_size(&s); i++)
			lines[i] = -lines[i];
		minus = parallel_image(&p, &s, dev, lines, NULL);
		for (int i = 0; i < 1600; i++) {
			assert_near(plus[i], -minus[i], 1e-6);
			least = fmin(least, plus[i]);
		}
		assert_true(algorithm == ALGORITHM_BP || least < -1e-4); /* streaks around the disc */
	}
}

/* A circle as field of view: 0 outside, the same inside. */
TEST(field_of_view)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(40, 30, 3);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, 40);
	float *lines = parallel_lines(&s, disc, 1, 0.3), *whole = parallel_image(&p, &s, dev, lines, NULL), *image;

	p.fov_radius = 15;
	image = parallel_image(&p, &s, dev, lines, NULL);
	for (int i = 0; i < 4800; i++) {
		bool in = hypot(i % 40 - 19.5, i / 40 % 40 - 19.5) < 15;

		assert_near(image[i], in ? whole[i] : 0, 1e-7);
	}
}

/* A slice has the same result alone, in parts of the stack, and with all slices at once. */
TEST(stacks_in_parts)
{
	enum { N = 30, SLICES = 7 };
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct parallel_scan s = parallel_scan_of(N, 21, SLICES), one = parallel_scan_of(N, 21, 1);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, N), least;
	size_t slice = (size_t)one.n_radial * 21;
	float *lines = parallel_lines(&s, disc, 1, 0.5), *whole, *image, *radon, *parts;
	struct parallel_plan plan, small;

	whole = parallel_image(&p, &s, dev, lines, NULL);
	radon = parallel_project(&p, &s, dev, whole);
	plan = parallel_plan_made(&p, &s, dev);
	assert_int_equal(plan.part_slices, SLICES);
	least = p;
	least.memory_limit = plan.bytes.total * 2 / 3;
	small = parallel_plan_made(&least, &s, dev);
	assert_true(small.part_slices > 1 && small.part_slices < SLICES);
	assert_true(small.bytes.total <= least.memory_limit);
	image = parallel_image(&least, &s, dev, lines, NULL);
	assert_true(farthest(image, whole, N * N * SLICES) <= 1e-6 * largest(whole, N * N * SLICES));
	least.memory_limit = 2000000;
	parts = parallel_project(&least, &s, dev, whole);
	assert_true(farthest(parts, radon, parallel_size(&s)) <= 1e-6 * largest(radon, parallel_size(&s)));
	for (int k = 0; k < SLICES; k++) {
		image = parallel_image(&p, &one, dev, lines + (size_t)k * slice, NULL);
		assert_true(farthest(image, whole + k * N * N, N * N) <= 1e-6 * largest(whole, N * N));
		parts = parallel_project(&p, &one, dev, whole + k * N * N);
		assert_true(farthest(parts, radon + (size_t)k * slice, slice) <= 1e-6 * largest(radon, slice));
	}
	least.memory_limit = 1000;
	assert_int_equal(parallel_plan(&least, &s, dev, &small, NULL), -ENOMEM);
}

/* With one byte less than work, lines and image need, a stack on the CPU is apart from main memory: in smaller parts, it fits. */
TEST(stacks_apart)
{
	enum { N = 30, SLICES = 40 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 21, SLICES);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, N);
	struct parallel_plan plan = parallel_plan_made(&p, &s, dev), apart;
	size_t own = sizeof(float) * (size_t)(21 * s.n_radial + N * N), all = plan_main_memory(&plan.bytes, dev);

	assert_int_equal(all, plan.bytes.total + plan.bytes.threads + plan.bytes.host);
	for (int host = 0; host < 2; host++)
		for (int less = 0; less < 2; less++) {
			dev->host_memory = host ? all - (size_t)less : 0;
			p.memory_limit = host ? 0 : all - (size_t)less;
			assert_int_equal(parallel_is_too_large(&p, &plan, dev), less);
		}
	dev->host_memory = 0;
	assert_int_equal(parallel_plan_apart(&p, &s, dev, &apart, NULL), 0);
	assert_int_equal(apart.part_slices, SLICES);
	p.memory_limit = all / 3;
	assert_int_equal(parallel_plan_apart(&p, &s, dev, &apart, NULL), 0);
	assert_in_range(apart.part_slices, 2, SLICES - 1);
	assert_true(plan_main_memory(&apart.bytes, dev) <= all / 3);
	assert_true(plan_main_memory(&apart.bytes, dev) + 6 * own > all / 3);
	p.memory_limit = 1000;
	assert_int_equal(parallel_plan_apart(&p, &s, dev, &apart, NULL), -ENOMEM);
}

static void expect(int expected, const struct parallel_protocol *p, const struct parallel_scan *s, const char *word)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct parallel_plan plan;
	struct err err = {0};

	assert_int_equal(parallel_plan(p, s, dev, &plan, &err), expected);
	assert_non_null(strstr(err.msg, word));
}

TEST(refusals)
{
	const struct parallel_scan good = parallel_scan_of(20, 10, 1);
	const struct parallel_protocol fbp = parallel_protocol_of(ALGORITHM_FBP, 20);
	double angle[10] = {0, 1, 2, NAN};
	int twice[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8};
	struct parallel_scan s;
	struct parallel_protocol p;
	struct scan *scan = NULL;

#define SCAN(field, value, word)                                                                                                 \
	s = good, s.field = value;                                                                                               \
	expect(-EINVAL, &fbp, &s, word)
	SCAN(n_slices, 0, "0 slices");
	SCAN(n_angles, 0, "0 angles");
	SCAN(n_radial, -1, "-1 radial");
	SCAN(bin, NAN, "nan mm");
	SCAN(slice, 0, "slices 0 mm");
	SCAN(offset, INFINITY, "inf mm");
	SCAN(arc, 0, "over 0 degrees");
	SCAN(arc, 361, "over 361");
	SCAN(first_angle, NAN, "nan degrees");
	SCAN(angle, angle, "angle 3");
#define PROTOCOL(from, field, value, word)                                                                                       \
	p = from, p.field = value;                                                                                               \
	expect(-EINVAL, &p, &good, word)
	PROTOCOL(fbp, algorithm, (enum algorithm)0, "algorithm");
	PROTOCOL(fbp, filter, (enum parallel_filter)7, "filter");
	PROTOCOL(fbp, route, (enum parallel_route)0, "route");
	PROTOCOL(fbp, matrix, 1, "matrix");
	PROTOCOL(fbp, pixel, -1, "pixel");
	PROTOCOL(fbp, fov_radius, NAN, "fov_radius");
	p = fbp;
	p.filter = PARALLEL_HANN;
	p.filter_cut = 0;
	expect(-EINVAL, &p, &good, "filter_cut");
	p = parallel_protocol_of(ALGORITHM_ART, 20);
	PROTOCOL(p, relaxation, 2, "relaxation");
	p.relaxation = 1;
	PROTOCOL(p, projector, PROJECTION_EXACT, "projector");
	p.projector = PROJECTION_SAMPLED;
	PROTOCOL(p, sampling, -1, "sampling");
	p = parallel_protocol_of(ALGORITHM_OSEM, 20);
	PROTOCOL(p, subsets, 11, "subsets");
	p.subsets = 1;
	PROTOCOL(p, iterations, 0, "iterations");
	p.iterations = 1;
	PROTOCOL(p, projector, PROJECTION_SLICES, "projector");
	assert_int_equal(scan_create_parallel(&good, 1, 20, twice, &scan, NULL), -EINVAL);
	assert_int_equal(scan_create_parallel(&good, 0, 20, NULL, &scan, NULL), -EINVAL);
	assert_int_equal(scan_create_parallel(&good, 1, NAN, NULL, &scan, NULL), -EINVAL);
	assert_null(scan);
}

/* Data that are not finite are refused with their position. */
TEST(bad_data)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct parallel_scan s = parallel_scan_of(20, 10, 3);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, 20);
	struct parallel_plan plan = parallel_plan_made(&p, &s, dev);
	float *lines = fixture_floats(parallel_size(&s), 1, 0, 1), *image = take_memory(parallel_pixels(&plan) * sizeof(*image));
	size_t at = (2 * 10 + 7) * (size_t)s.n_radial + 5;
	struct err err = {0};

	lines[at] = NAN;
	assert_error(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, &err), &err, EINVAL,
		     "slice 2, angle 7, radial bin 5");
	lines[at] = -INFINITY;
	assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, NULL), -EINVAL);
	lines[at] = -1;
	assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, NULL), 0);
	p.algorithm = ALGORITHM_MLEM;
	assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, NULL), -EINVAL);
	p.algorithm = ALGORITHM_MLTR;
	lines[at] = -20;
	assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, NULL), 0);
	lines[at] = -20.01f;
	assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, NULL, NULL), -EINVAL);
}
