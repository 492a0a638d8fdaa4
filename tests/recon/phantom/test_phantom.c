/* SPDX-License-Identifier: Apache-2.0 */
/* Phantoms: the closed line integrals compared with sums of phantom_value, the shadow bounds, the noise's statistics,
 * determinism. */
#include "recon/phantom/phantom.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/phantom/phantom_line.h"
#include "tests/test.h"

static const double size[2] = {239.36, 304.64};

static double uniform(uint64_t *stream, double lo, double hi)
{
	return lo + (hi - lo) * poisson_uniform(stream);
}

TEST_GIVES_BACK(phantom_free);

static struct phantom *make(enum phantom_kind kind, double support, double thickness, unsigned seed)
{
	struct phantom *p = NULL;
	struct err err = {0};

	assert_done(phantom_create(kind, size, support, thickness, seed, &p, &err), &err);
	test_later(give_back_phantom_free, p);
	return p;
}

static struct phantom one_shape(struct shape *s)
{
	return (struct phantom){.name = "one", .n = 1, .shapes = s};
}

/* Chords that can be computed by hand. */
TEST(test_hand)
{
	struct shape s = {.kind = SHAPE_ELLIPSOID, .role = ROLE_BEAD, .c = {10, 20, 30}, .r = {1, 2, 3}, .mu = 0.5};
	struct phantom p = one_shape(&s);

	assert_true(fabs(phantom_line(&p, (double[]){10, 20, 100}, (double[]){10, 20, 0}) - 0.5 * 6) < 1e-12);
	assert_true(fabs(phantom_line(&p, (double[]){-100, 20, 30}, (double[]){100, 20, 30}) - 0.5 * 2) < 1e-12);
	assert_true(fabs(phantom_line(&p, (double[]){10, 20, 100}, (double[]){10, 20, 30}) - 0.5 * 3) <
		    1e-12); /* ends in the middle */
	assert_true(phantom_line(&p, (double[]){11.001, 20, 100}, (double[]){11.001, 20, 0}) == 0);

	s.kind = SHAPE_BOX;
	assert_true(fabs(phantom_line(&p, (double[]){0, 20, 30}, (double[]){20, 20, 30}) - 0.5 * 2) < 1e-12);
	/* From corner to corner of the box: sqrt(2^2 + 4^2 + 6^2). */
	assert_true(fabs(phantom_line(&p, (double[]){9, 18, 27}, (double[]){11, 22, 33}) - 0.5 * sqrt(56)) < 1e-12);
	assert_true(phantom_line(&p, (double[]){9, 22.5, 27}, (double[]){11, 22.5, 33}) == 0);

	s.kind = SHAPE_CYLINDER_Z;
	assert_true(fabs(phantom_line(&p, (double[]){10.5, 20, 100}, (double[]){10.5, 20, 0}) - 0.5 * 6) <
		    1e-12); /* along its axis */
	assert_true(fabs(phantom_line(&p, (double[]){0, 20, 32.9}, (double[]){20, 20, 32.9}) - 0.5 * 2) < 1e-12);
	assert_true(phantom_line(&p, (double[]){0, 20, 33.1}, (double[]){20, 20, 33.1}) == 0);

	s = (struct shape){.kind = SHAPE_BREAST, .role = ROLE_BODY, .c = {0, 0, 25}, .r = {100, 80, 25}, .mu = 1};
	assert_true(fabs(phantom_line(&p, (double[]){-200, 0, 25}, (double[]){200, 0, 25}) - 100) < 1e-9); /* x from 0 to 100 */
	assert_true(fabs(phantom_line(&p, (double[]){-200, 0, 49.9999999}, (double[]){200, 0, 49.9999999}) - 80) <
		    1e-6); /* flat face */
	assert_true(fabs(phantom_line(&p, (double[]){10, 5, 100}, (double[]){10, 5, 0}) - 50) < 1e-9);
	assert_true(phantom_value(&p, (double[]){-0.001, 0, 25}) == 0);
	assert_true(phantom_value(&p, (double[]){0.001, 0, 25}) == 1);
}

/* The line integral against the midpoint rule over phantom_value. With n steps each end of each chord is off by at most one half
 * step: n_shapes * 2 ends * mu_max * length / (2 n). */
static void check_lines(const struct phantom *p, double support, double thickness, unsigned seed)
{
	enum { STEPS = 20000 };
	uint64_t stream = poisson_stream(seed, 77);
	int hit = 0;

	for (int i = 0; i < 60; i++) {
		double a[3] = {uniform(&stream, -5, 60), uniform(&stream, -260, 260), uniform(&stream, 500, 660)};
		double b[3] = {uniform(&stream, 1, size[0]), uniform(&stream, -size[1] / 2, size[1] / 2), 0};
		const struct shape *s = &p->shapes[(size_t)i % p->n];
		double sum = 0, bound = 0, length = sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));

		if (i % 2) { /* aim at a shape's middle, so that small ones are met */
			double t = a[2] / (a[2] - s->c[2]);

			b[0] = a[0] + (s->c[0] + 0.1 * s->r[0] - a[0]) * t;
			b[1] = a[1] + (s->c[1] - a[1]) * t;
		}
		/* Sample only the part between support and paddle, which contains all shapes, so that the steps are finer. */
		double t0 = (a[2] - (support + thickness) - 0.5) / a[2], t1 = (a[2] - support + 0.5) / a[2];
		for (int k = 0; k < STEPS; k++) {
			double t = t0 + (t1 - t0) * (k + 0.5) / STEPS;

			sum += phantom_value(
				p, (double[]){a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])});
		}
		length = sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
		double step = (t1 - t0) * length / STEPS;
		for (size_t k = 0; k < p->n; k++)
			bound += p->shapes[k].mu * step;
		double line = phantom_line(p, a, b);
		if (fabs(line - sum * step) > bound + 1e-12)
			fail_msg("%s ray %d: closed %.9g, summed %.9g, bound %.3g", p->name, i, line, sum * step, bound);
		hit += line > 0;
	}
	assert_true(hit > 30);
}

TEST(test_lines)
{
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB, PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_CALIBRATION};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct phantom *p = make(kinds[i], 17, 50, 3);

		check_lines(p, 17, 50, (unsigned)i);
	}
}

/* phantom_project() evaluates a shape only in its shadow; even so every bin must equal phantom_line(). */
TEST(test_project)
{
	const struct scan_view views[] = {
		{{0, -257.2, 598.5}, {0, 0}},
		{{3, 0, 655.5}, {0, 0}},
		{{0, 250, 600}, {2.5, -4}},
		{{60, 40, 60}, {0, 0}}, /* below the paddle */
	};
	const struct scan scan = {SCAN_DBT, 281, 179, 4, {0.85, 1.7}, {0, -152.15}, views};
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB, PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_CALIBRATION};
	float *line = take_memory(scan_view_size(&scan) * sizeof *line);
	struct err err = {0};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct phantom *p = make(kinds[k], 17, 50, 5);

		for (int view = 0; view < scan.n_views; view++) {
			assert_int_equal(phantom_project(p, &scan, view, line, &err), 0);
			for (int v = 0; v < scan.n_v; v++)
				for (int u = 0; u < scan.n_u; u++) {
					double a[3], b[3];

					scan_ray(&scan, &views[view], u, v, a, b);
					float want = (float)phantom_line(p, a, b);
					float have = line[(size_t)v * (size_t)scan.n_u + (size_t)u];
					/* The compiler may contract the two differently: one rounding of the float. */
					if (fabsf(have - want) > 1.2e-7f * want)
						fail_msg("%s view %d bin %d %d: %.9g, not %.9g", p->name, view, u, v, have, want);
				}
		}
		assert_int_equal(phantom_project(p, &scan, 4, line, &err), -EINVAL);
	}
}

/* Nothing is its own mirror image, in x or in y, about the middle of the detector or of the body. */
TEST(test_no_symmetry)
{
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB, PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_CALIBRATION};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct phantom *p = make(kinds[k], 17, 50, 1);
		int differs_x = 0, differs_y = 0;
		double z = 17 + 21.5;

		for (int i = 0; i < 200; i++)
			for (int j = 0; j < 200; j++) {
				double x = (i + 0.5) * size[0] / 200, y = ((j + 0.5) / 200 - 0.5) * size[1];
				double here = phantom_value(p, (double[]){x, y, z});

				differs_x += here != phantom_value(p, (double[]){size[0] - x, y, z});
				differs_y += here != phantom_value(p, (double[]){x, -y, z});
			}
		assert_true(differs_x > 100);
		assert_true(differs_y > 100);
	}
}

/* Beads project onto the detector in all views between -25 and 25 degrees, and do not touch each other. */
TEST(test_coverage)
{
	static const enum phantom_kind kinds[] = {PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_CALIBRATION};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct phantom *p = make(kinds[k], 17, 60, 9);
		int beads = 0;

		phantom_grow_beads(p, 1.5);
		for (size_t i = 0; i < p->n; i++) {
			const struct shape *s = &p->shapes[i];

			if (s->role != ROLE_BEAD)
				continue;
			beads++;
			assert_true(s->r[0] >= 1.5);
			for (int a = -25; a <= 25; a += 5) {
				double src_y = 608.5 * sin(a * M_PI / 180), src_z = 47 + 608.5 * cos(a * M_PI / 180);
				double scale = src_z / (src_z - s->c[2]);
				double x = s->c[0] * scale, y = src_y + (s->c[1] - src_y) * scale;

				assert_true(x > 5 && x < size[0] - 5);
				assert_true(fabs(y) < size[1] / 2 - 5);
			}
			for (size_t j = 0; j < i; j++)
				if (p->shapes[j].role == ROLE_BEAD)
					assert_true(hypot(s->c[0] - p->shapes[j].c[0], s->c[1] - p->shapes[j].c[1]) > 6);
		}
		assert_true(beads >= 6);
	}
}

/* Every view shows air in at least 5.5 % of its bins, so that the intensity without an object can be read off the view. */
TEST(test_air)
{
	static const enum phantom_kind kinds[] = {PHANTOM_SLAB, PHANTOM_BEADS, PHANTOM_ELLIPSOIDS, PHANTOM_CALIBRATION};
	struct scan_view view = {{0, 0, 0}, {0, 0}};
	const struct scan scan = {SCAN_DBT, 88, 112, 1, {2.72, 2.72}, {0, -152.32}, &view};
	float line[88 * 112];
	struct err err = {0};

	for (int k = 0; k < 12; k++) {
		struct phantom *p = make(kinds[k % 4], 17, 30 + 25 * (k / 4), 2);

		for (int a = -25; a <= 25; a += 5) {
			int air = 0;

			view.src[1] = 608.5 * sin(a * M_PI / 180);
			view.src[2] = 47 + 608.5 * cos(a * M_PI / 180);
			assert_int_equal(phantom_project(p, &scan, 0, line, &err), 0);
			for (int i = 0; i < 88 * 112; i++)
				air += line[i] == 0;
			if (air < 0.055 * 88 * 112)
				fail_msg("%s of %d mm at %d degrees: air in %.1f %%", p->name, 30 + 25 * (k / 3), a, air / 98.56);
		}
	}
}

TEST(test_same_seed)
{
	struct phantom *p = make(PHANTOM_ELLIPSOIDS, 17, 50, 4), *q = make(PHANTOM_ELLIPSOIDS, 17, 50, 4),
		       *r = make(PHANTOM_ELLIPSOIDS, 17, 50, 5);

	assert_int_equal(p->n, q->n);
	assert_memory_equal(p->shapes, q->shapes, p->n * sizeof *p->shapes);
	assert_memory_not_equal(p->shapes, r->shapes, p->n * sizeof *p->shapes);
}

/* Mean, variance and third central moment of a Poisson number are its mean m. Of N draws the sample mean has standard deviation
 * sqrt(m/N), the sample variance sqrt((m + 2 m^2)/N), the third moment about sqrt((15 m^3 + 25 m^2 + m)/N); five of them. */
TEST(test_noise)
{
	static const double means[] = {0.02, 0.7, 4, 9.99, 10.01, 13, 50, 300, 2500, 30000};
	enum { N = 400000 };
	float *line = take_memory(N * sizeof *line);
	uint16_t *counts = take_memory(N * sizeof *counts);
	struct err err = {0};

	for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
		double i0 = 40000, m, sum = 0, var = 0, third = 0;

		for (int i = 0; i < N; i++)
			line[i] = (float)log(i0 / means[k]);
		m = i0 * exp(-(double)line[0]);
		assert_int_equal(phantom_counts(line, N, i0, 11 + k, 1, 65535, counts, &err), 0);
		for (int i = 0; i < N; i++)
			sum += counts[i];
		for (int i = 0; i < N; i++) {
			double d = counts[i] - m;

			var += d * d;
			third += d * d * d;
		}
		sum /= N;
		var /= N;
		third /= N;
		if (fabs(sum - m) > 5 * sqrt(m / N))
			fail_msg("mean %g: sample mean %g", m, sum);
		if (fabs(var - m) > 5 * sqrt((m + 2 * m * m) / N))
			fail_msg("mean %g: sample variance %g", m, var);
		if (fabs(third - m) > 5 * sqrt((15 * m * m * m + 25 * m * m + m) / N))
			fail_msg("mean %g: third moment %g", m, third);
	}
}

/* Every probability of the distribution, not only its moments: chi-square over the values that are expected at least 50 times.
 * For f degrees of freedom it has mean f and variance 2 f; five standard deviations. */
TEST(test_noise_distribution)
{
	static const double means[] = {3.3, 9.5, 10.5, 27};
	enum { N = 1000000, TOP = 200 };

	for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
		int seen[TOP] = {0}, freedom = -1;
		double chi = 0, p = exp(-means[k]);

		for (int i = 0; i < N; i++) {
			double count = poisson_draw(means[k], poisson_stream(k, (uint64_t)i));

			assert_true(count >= 0 && count < TOP);
			seen[(int)count]++;
		}
		for (int c = 0; c < TOP; c++) {
			if (N * p >= 50) {
				chi += (seen[c] - N * p) * (seen[c] - N * p) / (N * p);
				freedom++;
			}
			p *= means[k] / (c + 1);
		}
		if (fabs(chi - freedom) > 5 * sqrt(2.0 * freedom))
			fail_msg("mean %g: chi-square %g for %d degrees of freedom", means[k], chi, freedom);
	}
}

TEST(test_counts)
{
	enum { N = 100000 };
	float *line = take_memory(N * sizeof *line);
	uint16_t *a = take_memory(N * sizeof *a), *b = take_memory(N * sizeof *b);
	struct err err = {0};

	for (int i = 0; i < N; i++)
		line[i] = (float)(i % 700) * 0.01f;
	/* Without noise, a count is the rounded expected value. */
	assert_int_equal(phantom_counts(line, N, 1000, 1, 0, 65535, a, &err), 0);
	assert_int_equal(a[0], 1000);
	assert_int_equal(a[100], 368); /* 1000 / e = 367.9 */
	/* Limited. */
	assert_int_equal(phantom_counts(line, N, 1e6, 1, 1, 4095, a, &err), 0);
	assert_int_equal(a[0], 4095);
	/* Each bin is a function of seed, index and mean, so threads cannot matter; another seed gives other noise. */
	assert_int_equal(phantom_counts(line, N, 5000, 42, 1, 65535, a, &err), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(a[i], (int)poisson_draw(5000 * exp(-(double)line[i]), poisson_stream(42, i)));
	assert_int_equal(phantom_counts(line, N, 5000, 43, 1, 65535, b, &err), 0);
	assert_memory_not_equal(a, b, N * sizeof *a);
	/* Refused. */
	assert_int_equal(phantom_counts(line, N, 0, 1, 1, 65535, a, &err), -EINVAL);
	assert_int_equal(phantom_counts(line, N, NAN, 1, 1, 65535, a, &err), -EINVAL);
	assert_int_equal(phantom_counts(line, N, 1000, 1, 1, 65536, a, &err), -EINVAL);
	assert_int_equal(phantom_counts(line, N, 1000, 1, 1, 0, a, &err), -EINVAL);
	assert_int_equal(phantom_counts(line, N, nextafter(POISSON_MEAN_MAX, INFINITY), 1, 1, 65535, a, &err), -EINVAL);
	assert_int_equal(phantom_counts(line, N, POISSON_MEAN_MAX, 1, 1, 1, a, &err), 0);
	line[7] = NAN;
	assert_error(phantom_counts(line, N, 1000, 1, 1, 65535, a, &err), &err, EINVAL, "bin 7");
}

TEST(test_refused)
{
	struct phantom *p = NULL;
	struct err err = {0};

	assert_int_equal(phantom_create((enum phantom_kind)9, size, 17, 50, 1, &p, &err), -EINVAL);
	assert_int_equal(phantom_create(PHANTOM_SLAB, (double[]){NAN, 10}, 17, 50, 1, &p, &err), -EINVAL);
	assert_int_equal(phantom_create(PHANTOM_SLAB, size, -1, 50, 1, &p, &err), -EINVAL);
	assert_int_equal(phantom_create(PHANTOM_SLAB, size, 17, NAN, 1, &p, &err), -EINVAL);
	assert_null(p);
	assert_null(phantom_free(NULL));
}
