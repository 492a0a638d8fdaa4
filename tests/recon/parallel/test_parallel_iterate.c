/* SPDX-License-Identifier: Apache-2.0 */
/* The iterative algorithms of parallel beams: order of the rays, the solution of a small system, residuals, likelihood, negative
 * values, parts, cancelling. */
#include "kernels/lines.h"
#include "recon/parallel/parallel_session.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

static const enum projection_model models[] = {PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_SAMPLED};

static const struct parallel_shape ellipses[] = {{.c = {3, -2}, .r = {9, 6}, .turn = 30, .mu = 0.02},
						 {.c = {-5, 4}, .r = {3, 4}, .turn = -70, .mu = 0.03}};

/* Compute the line integrals of a picture of pixels along the same rays, so that an exact solution exists. */
static float *consistent(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev, float lo, float hi,
			 float **ret_lines)
{
	struct parallel_plan plan = parallel_plan_made(p, s, dev);
	float *truth = fixture_floats(parallel_pixels(&plan), 11, lo, hi);

	*ret_lines = parallel_project(p, s, dev, truth);
	return truth;
}

/* Compute the matrix of one slice, rays by pixels, from pictures with a single pixel. */
static double *dense(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev)
{
	size_t n = (size_t)p->matrix * (size_t)p->matrix, rays = (size_t)s->n_angles * (size_t)s->n_radial;
	struct parallel_scan stack = *s;
	float *pixels = take_zeros(n * n, sizeof(*pixels)), *lines;
	double *a = take_memory(rays * n * sizeof(*a));

	for (size_t i = 0; i < n; i++)
		pixels[i * n + i] = 1;
	stack.n_slices = (int)n;
	lines = parallel_project(p, &stack, dev, pixels);
	for (size_t i = 0; i < n; i++)
		for (size_t r = 0; r < rays; r++)
			a[r * n + i] = lines[i * rays + r];
	return a;
}

/* Update x by one ray with Kaczmarz' method. */
static void kaczmarz(const double *a, size_t n, size_t ray, double relaxation, double y, double *x)
{
	double along = 0, norm = 0;

	for (size_t i = 0; i < n; i++) {
		along += a[ray * n + i] * x[i];
		norm += a[ray * n + i] * a[ray * n + i];
	}
	for (size_t i = 0; norm > 0 && i < n; i++)
		x[i] += relaxation * (y - along) / norm * a[ray * n + i];
}

/* Order of rays: views in sequence, in each view bins 0, s, 2 s ..., 1, s + 1 ... (kernels/device.h). The data are inconsistent,
 * so the result depends on the order. */
TEST(order_of_rays)
{
	enum { N = 14, ANGLES = 9 };

	for (int device = 0; device < FIXTURE_DEVICES; device++)
		for (int m = 0; m < 3; m++) {
			struct device *dev = fixture_device(device, 2);
			struct parallel_scan s = parallel_scan_of(N, ANGLES, 1);
			struct parallel_protocol p = parallel_protocol_of(ALGORITHM_ART, N);
			struct parallel_plan plan;
			struct scan *scan = NULL;
			double *a, x[N * N] = {0}, most = 0, apart = 0;
			float *lines = fixture_floats(parallel_size(&s), 5, 0, 1), *image;
			int stride;

			s.bin = 0.8;
			s.offset = 0.15;
			p.projector = models[m];
			p.relaxation = 0.7;
			p.iterations = 3;
			p.in_sequence = true;
			a = dense(&p, &s, dev);
			plan = parallel_plan_made(&p, &s, dev);
			assert_int_equal(scan_create_parallel(&s, 1, plan.fov_radius, NULL, &scan, NULL), 0);
			test_later(give_back_scan_free, scan);
			stride = lines_stride(models[m], scan, &plan.grid);
			assert_true(stride > 1 && stride < s.n_radial);
			for (int k = 0; k < p.iterations; k++)
				for (int view = 0; view < ANGLES; view++)
					for (int first = 0; first < stride; first++)
						for (int v = first; v < s.n_radial; v += stride) {
							size_t ray = (size_t)(view * s.n_radial + v);

							kaczmarz(a, N * N, ray, p.relaxation, lines[ray], x);
						}
			for (int i = 0; i < N * N; i++)
				most = fmax(most, fabs(x[i]));
			image = parallel_image(&p, &s, dev, lines, NULL);
			for (int i = 0; i < N * N; i++)
				assert_near(image[i], x[i], 1e-5 * most);
			p.in_sequence = false;
			image = parallel_image(&p, &s, dev, lines, NULL);
			for (int i = 0; i < N * N; i++)
				apart = fmax(apart, fabs(image[i] - x[i]));
			assert_true(apart > 0.01 * most);
		}
}

/* Solve A'A x = A'y by elimination; n unknowns. */
static void solve(const double *a, size_t rays, size_t n, const float *y, double *ret_x)
{
	double *m = take_zeros(n * (n + 1), sizeof(*m));

	for (size_t r = 0; r < rays; r++)
		for (size_t i = 0; i < n; i++) {
			for (size_t j = 0; j < n; j++)
				m[i * (n + 1) + j] += a[r * n + i] * a[r * n + j];
			m[i * (n + 1) + n] += a[r * n + i] * y[r];
		}
	for (size_t i = 0; i < n; i++) {
		assert_true(m[i * (n + 1) + i] > 1e-6); /* positive definite: no pivoting */
		for (size_t k = i + 1; k < n; k++) {
			double f = m[k * (n + 1) + i] / m[i * (n + 1) + i];

			for (size_t j = i; j <= n; j++)
				m[k * (n + 1) + j] -= f * m[i * (n + 1) + j];
		}
	}
	for (size_t i = n; i-- > 0;) {
		double sum = m[i * (n + 1) + n];

		for (size_t j = i + 1; j < n; j++)
			sum -= m[i * (n + 1) + j] * ret_x[j];
		ret_x[i] = sum / m[i * (n + 1) + i];
	}
}

/* ART and SART converge to the solution of a system with more rays than pixels and negative values. */
TEST(small_system)
{
	enum { N = 7 };
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct parallel_scan s = parallel_scan_of(N, 16, 1);

	s.bin = 0.6;
	s.n_radial = 19;
	for (int algorithm = ALGORITHM_ART; algorithm <= ALGORITHM_SART; algorithm++) {
		struct parallel_protocol p = parallel_protocol_of((enum algorithm)algorithm, N);
		size_t rays = (size_t)(s.n_angles * s.n_radial);
		float *lines, *truth = consistent(&p, &s, dev, -0.5, 1, &lines), *image;
		struct parallel_report report;
		double *a = dense(&p, &s, dev), x[N * N];

		solve(a, rays, N * N, lines, x);
		p.iterations = 400;
		p.subsets = 4;
		image = parallel_image(&p, &s, dev, lines, &report);
		for (int i = 0; i < N * N; i++) {
			assert_near(x[i], truth[i], 1e-4);
			assert_near(image[i], x[i], 2e-3);
		}
		assert_true(report.residual < 1e-3);
	}
}

/* Consistent data: every sweep decreases the residual, and the reported residual is that of the image. */
TEST(residual_falls)
{
	enum { N = 31, SLICES = 3 };

	for (int device = 0; device < FIXTURE_DEVICES; device++)
		for (int m = 0; m < 3; m++)
			for (int algorithm = ALGORITHM_ART; algorithm <= ALGORITHM_SART; algorithm++) {
				struct device *dev = fixture_device(device, 2);
				struct parallel_scan s = parallel_scan_of(N, 20, SLICES);
				struct parallel_protocol p = parallel_protocol_of((enum algorithm)algorithm, N);
				float *lines;
				double before = 1;

				p.projector = models[m];
				p.subsets = 5;
				consistent(&p, &s, dev, 0, 1, &lines);
				for (int k = 1; k <= 6; k++) {
					struct parallel_report report;
					float *image, *again;
					double gap = 0, all = 0;

					p.iterations = k;
					image = parallel_image(&p, &s, dev, lines, &report);
					again = parallel_project(&p, &s, dev, image);
					for (size_t i = 0; i < parallel_size(&s); i++) {
						gap += (again[i] - lines[i]) * (again[i] - lines[i]);
						all += lines[i] * lines[i];
					}
					assert_near(report.residual, sqrt(gap / all), 1e-6 + 1e-3 * report.residual);
					assert_true(report.residual < before);
					before = report.residual;
				}
				assert_true(before < 0.1);
			}
}

/* Negative values are kept, except with non_negative; then no value is below 0. */
TEST(negative_values)
{
	enum { N = 24 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 24, 2);

	for (int algorithm = ALGORITHM_ART; algorithm <= ALGORITHM_SART; algorithm++) {
		struct parallel_protocol p = parallel_protocol_of((enum algorithm)algorithm, N);
		float *lines = parallel_lines(&s, ellipses, 2, 0), *plus, *minus, *cut;
		double least = 0, sum = 0;
		size_t n = 2 * N * N;

		p.subsets = 6;
		plus = parallel_image(&p, &s, dev, lines, NULL);
		p.non_negative = true;
		cut = parallel_image(&p, &s, dev, lines, NULL);
		p.non_negative = false;
		for (size_t i = 0; i < parallel_size(&s); i++)
			lines[i] = -lines[i];
		minus = parallel_image(&p, &s, dev, lines, NULL);
		for (size_t i = 0; i < n; i++) {
			assert_near(plus[i], -minus[i], 1e-6);
			assert_true(cut[i] >= 0);
			least = fmin(least, plus[i]);
			sum += cut[i];
		}
		assert_true(least < -1e-4);
		assert_true(sum > 0.5);
		p.non_negative = true;
		minus = parallel_image(&p, &s, dev, lines, NULL);
		for (size_t i = 0; i < n; i++)
			assert_true(algorithm == ALGORITHM_SART ? minus[i] == 0
								: minus[i] >= 0); /* ART: set to 0 once per sweep */
	}
}

/* The value of a disc is correct in all algorithms, and for any unit of the data except in the transmission model. */
TEST(values)
{
	static const struct {
		enum algorithm algorithm;
		int iterations, subsets;
	} ways[] = {{ALGORITHM_ART, 10, 1},  {ALGORITHM_SART, 30, 1}, {ALGORITHM_SART, 10, 6}, {ALGORITHM_MLEM, 60, 1},
		    {ALGORITHM_OSEM, 6, 10}, {ALGORITHM_MLTR, 60, 1}, {ALGORITHM_OSTR, 6, 10}};
	static const double units[] = {1, 1e-9, 1e12};
	enum { N = 40 };
	const struct parallel_shape disc = {.c = {2.3, -1.4}, .r = {12, 12}, .mu = 0.02};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = parallel_scan_of(N, 60, 1);

	for (int a = 0; a < 7; a++)
		for (int u = 0; u < (ways[a].algorithm >= ALGORITHM_OSTR ? 1 : 3); u++) {
			struct parallel_protocol p = parallel_protocol_of(ways[a].algorithm, N);
			float *lines = parallel_lines(&s, &disc, 1, 0), *image;
			double sum = 0;
			int n = 0;

			for (size_t i = 0; i < parallel_size(&s); i++)
				lines[i] *= (float)units[u];
			p.iterations = ways[a].iterations;
			p.subsets = ways[a].subsets;
			p.relaxation = ways[a].algorithm == ALGORITHM_ART ? 0.2 : 1;
			image = parallel_image(&p, &s, dev, lines, NULL);
			for (int i = 0; i < N * N; i++)
				if (hypot(i % N - 19.5 - 2.3, i / N - 19.5 + 1.4) < 9) {
					sum += image[i] / units[u];
					n++;
					assert_near(image[i] / units[u], 0.02, 0.003);
				}
			assert_near(sum / n, 0.02, 0.0003);
		}
}

/* The transmission model takes the line integrals of few photons, below 0 too: the likelihood of the photons, the sum of
 * -e^-p - p e^-y, rises with every iteration, to more than that of the truth, which the noise did not make. */
TEST(mltr_likelihood)
{
	enum { N = 24 };
	const double photons = 300;

	for (int device = 0; device < FIXTURE_DEVICES; device++)
		for (int m = 0; m < 3; m++) {
			struct device *dev = fixture_device(device, 2);
			struct parallel_scan s = parallel_scan_of(N, 30, 2);
			struct parallel_protocol p = parallel_protocol_of(ALGORITHM_MLTR, N);
			float *truth, *lines = parallel_lines(&s, ellipses, 2, 0.5);
			size_t n = parallel_size(&s), negative = 0;
			double before = -HUGE_VAL, of_truth = 0;

			p.projector = models[m];
			truth = take_memory(n * sizeof(*truth));
			for (size_t i = 0; i < n; i++) {
				truth[i] = lines[i];
				lines[i] = (float)-log(fmax(poisson_draw(photons * exp(-lines[i]), poisson_stream(7, i)), 1) /
						       photons);
				negative += lines[i] < 0;
			}
			assert_true(negative > n / 10);
			for (size_t i = 0; i < n; i++)
				of_truth -= exp(-truth[i]) + truth[i] * exp(-lines[i]);
			for (p.iterations = 1; p.iterations <= 256; p.iterations *= 2) {
				float *image = parallel_image(&p, &s, dev, lines, NULL),
				      *model = parallel_project(&p, &s, dev, image);
				double likelihood = 0;

				for (size_t i = 0; i < n; i++)
					likelihood -= exp(-model[i]) + model[i] * exp(-lines[i]);
				assert_true(likelihood > before);
				before = likelihood;
			}
			assert_true(before > of_truth);
		}
}

/* After every iteration of MLEM the sums of model and data are equal in each slice; a slice without data is 0. */
TEST(mlem_keeps_sums)
{
	enum { N = 24, SLICES = 3 };
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct parallel_scan s = parallel_scan_of(N, 18, SLICES);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_MLEM, N);
	size_t slice = parallel_size(&s) / SLICES;
	float *lines = parallel_lines(&s, ellipses, 2, 0.6);

	for (size_t i = 0; i < slice; i++)
		lines[slice + i] = 0;
	for (p.iterations = 1; p.iterations < 5; p.iterations++) {
		float *image = parallel_image(&p, &s, dev, lines, NULL), *model = parallel_project(&p, &s, dev, image);

		for (size_t k = 0; k < SLICES; k++) {
			double data = 0, sum = 0;

			for (size_t i = 0; i < slice; i++) {
				data += lines[k * slice + i];
				sum += model[k * slice + i];
			}
			assert_near(sum, data, 2e-5 * data);
		}
		for (int i = 0; i < N * N; i++)
			assert_true(image[N * N + i] == 0);
	}
}

TEST(parts_change_nothing)
{
	enum { N = 26, SLICES = 5 };

	for (enum algorithm algorithm = ALGORITHM_ART; algorithm < ALGORITHM_COUNT; algorithm++) {
		struct device *dev = fixture_device(FIXTURE_POISON, 2);
		struct parallel_scan s = parallel_scan_of(N, 20, SLICES);
		struct parallel_protocol p = parallel_protocol_of(algorithm, N);
		float *lines = parallel_lines(&s, ellipses, 2, 0.5), *whole, *image;
		struct parallel_report all, parts;
		struct parallel_plan plan;
		size_t n = N * N * SLICES;

		if (!parallel_supports(algorithm))
			continue;
		p.subsets = 4;
		p.iterations = 4;
		p.non_negative = true;
		plan = parallel_plan_made(&p, &s, dev);
		whole = parallel_image(&p, &s, dev, lines, &all);
		for (int part = SLICES; part > 0; part--) {
			plan.part_slices = part;
			image = take_memory(n * sizeof(*image));
			assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, NULL, image, &parts, NULL), 0);
			assert_true(farthest(image, whole, n) <= 3e-6 * largest(whole, n));
			assert_near(parts.residual, all.residual, 1e-5);
		}
	}
}

struct watch {
	int calls, stop_at;
	double last;
};

static void watch_progress(void *ctx, const char *stage, double fraction)
{
	struct watch *w = ctx;

	assert_string_equal(stage, "reconstruct");
	assert_true(fraction >= w->last && fraction <= 1 + 1e-9);
	w->last = fraction;
	w->calls++;
}

static bool watch_cancelled(void *ctx)
{
	struct watch *w = ctx;

	return w->stop_at && w->calls >= w->stop_at;
}

/* A bin without datum: iterative algorithms do not see its value, one slice or a stack in parts, on all devices; filtered
 * backprojection does. Two values change so that their sum, the start of EM and the transmission model, stays. */
TEST(gaps_are_left_out)
{
	enum { N = 20, ANGLES = 16, SLICES = 5 };
	static const enum algorithm algorithms[] = {ALGORITHM_ART,  ALGORITHM_SART, ALGORITHM_MLEM, ALGORITHM_OSEM,
						    ALGORITHM_MLTR, ALGORITHM_OSTR, ALGORITHM_FBP};

	for (int device = 0; device < FIXTURE_DEVICES; device++)
		for (int slices = 1; slices <= SLICES; slices += SLICES - 1)
			for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
				struct device *dev = fixture_device(device, 2);
				struct parallel_gap gap[] = {{0, 12, -1}, {slices - 1, 9, 3}, {slices - 1, 15, 11}};
				const struct parallel_gaps gaps = {3, 3, gap};
				struct parallel_scan s = parallel_scan_of(N, ANGLES, slices);
				struct parallel_protocol p = parallel_protocol_of(algorithms[i], N);
				float *lines = parallel_lines(&s, ellipses, 2, 0), *with, *other, *all;
				const size_t last = (size_t)(slices - 1) * ANGLES * (size_t)s.n_radial, row = (size_t)s.n_radial;
				struct parallel_plan plan;
				bool same, filtered = algorithms[i] == ALGORITHM_FBP;

				for (size_t j = 0; j < parallel_size(&s); j++) /* no negative values, sums without rounding */
					lines[j] = roundf((lines[j] + 1) * 64) / 64;
				p.iterations = 3;
				p.subsets = algorithms[i] == ALGORITHM_MLEM || algorithms[i] == ALGORITHM_MLTR ? 1 : 4;
				s.gaps = &gaps;
				plan = parallel_plan_made(&p, &s, dev);
				p.memory_limit = slices > 1 ? plan.bytes.total - 1 : 0; /* parts */
				with = parallel_image(&p, &s, dev, lines, NULL);
				for (size_t a = 0; a < ANGLES; a++)
					lines[a * row + 12] += a % 2 ? 0.5f : -0.5f;
				lines[last + 3 * row + 9] += 0.25f;
				lines[last + 11 * row + 15] -= 0.25f;
				other = parallel_image(&p, &s, dev, lines, NULL);
				s.gaps = NULL;
				all = parallel_image(&p, &s, dev, lines, NULL);
				same = !memcmp(with, other, parallel_pixels(&plan) * sizeof(*with));
				if (same == filtered)
					fail_msg("%s, %d slices: %s", algorithm_info(algorithms[i])->word, slices,
						 same ? "the same" : "others");
				assert_true(memcmp(other, all, parallel_pixels(&plan) * sizeof(*all)) || filtered);
			}
}

TEST(progress_and_cancel)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 1);
	struct parallel_scan s = parallel_scan_of(20, 10, 3);
	float *lines = parallel_lines(&s, ellipses, 2, 0), *image = take_memory(1200 * sizeof(*image));

	for (enum algorithm algorithm = ALGORITHM_BP; algorithm < ALGORITHM_COUNT; algorithm++) {
		struct parallel_protocol p = parallel_protocol_of(parallel_supports(algorithm) ? algorithm : ALGORITHM_BP, 20);
		struct parallel_plan plan = parallel_plan_made(&p, &s, dev);
		struct watch w = {0};
		struct monitor monitor = {&w, watch_progress, watch_cancelled};

		plan.part_slices = 2;
		assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, &monitor, image, NULL, NULL), 0);
		assert_near(w.last, 1, 1e-9);
		w = (struct watch){.stop_at = 1};
		assert_int_equal(parallel_reconstruct(&p, &plan, &s, dev, lines, &monitor, image, NULL, NULL), -ECANCELED);
		assert_true(w.last < 1);
	}
}

/* Two views of pixels as large as bins: the first one has the sums of columns, the second those of rows. */
TEST(two_projections)
{
	enum { N = 40 };
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct parallel_scan s = {.n_slices = 1, .n_angles = 2, .n_radial = N, .bin = 1, .slice = 1, .arc = 180};
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_ART, N);
	float *lines, *image;
	struct parallel_report report;

	consistent(&p, &s, dev, 0, 1, &lines);
	p.iterations = 100;
	image = parallel_image(&p, &s, dev, lines, &report);
	assert_true(report.residual < 1e-5);
	for (int i = 0; i < N; i++) {
		double row = 0, column = 0;

		for (int j = 0; j < N; j++) {
			column += image[j * N + i];
			row += image[i * N + j];
		}
		assert_near(column, lines[i], 1e-3);
		assert_near(row, lines[N + i], 1e-3);
	}
}

/* Rays at theta and theta + 180 degrees are the same: over a whole turn, the views of a subset are not opposite to each other. */
TEST(opposite_views)
{
	enum { ANGLES = 8 };
	struct parallel_scan s = parallel_scan_of(16, ANGLES, 1);
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_OSEM, 16);
	struct subsets v;

	s.arc = 360;
	p.subsets = ANGLES / 2;
	assert_int_equal(parallel_views_make(&p, &s, PARALLEL_WORK_RULE, &v, NULL), 0);
	assert_int_equal(v.n_subsets, ANGLES / 2);
	for (int i = 0; i < v.n_subsets; i++) {
		assert_int_equal(v.first[i + 1] - v.first[i], 2);
		assert_true((v.order[v.first[i]] - v.order[v.first[i] + 1]) % (ANGLES / 2) != 0);
	}
	subsets_release(&v);
}
