/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter correction against a Monte Carlo that shares no formula with it: slabs and breasts of 20 to 80 mm at the angles of
 * a tomosynthesis, with other tissue and another gap than those that its kernels were fitted to. */
#include "recon/core/scan.h"
#include "recon/dbt/scatter.h"
#include "recon/phantom/scatter_mc.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define N_U 80
#define N_V 120
#define PITCH 2.0 /* mm */
#define N ((size_t)N_U * N_V)
#define MC_CELL 4 /* bins */
#define PHOTONS 150000
#define PHOTONS_LOCAL 500000

struct object {
	enum shape_kind kind;
	double thickness, gap, mu, angle;
};

static struct scan *scan_at(double angle)
{
	return fixture_scan_at(N_U, N_V, PITCH, angle);
}

/* A uniform object, or the breast with glandular tissue of simulated exams if `kind` is 0. At all angles its shadow is on the
 * detector. */
static struct phantom *phantom_of(const struct object *o)
{
	struct phantom *p;
	const struct shape body = {.kind = o->kind,
				   .role = ROLE_BODY,
				   .c = {o->kind == SHAPE_BREAST ? 0 : 65, 3, o->gap + o->thickness / 2},
				   .r = {o->kind == SHAPE_BREAST ? 100 : 65, 80, o->thickness / 2},
				   .mu = o->mu};

	assert_int_equal(phantom_create(PHANTOM_ELLIPSOIDS, (double[]){N_U * PITCH, 190}, o->gap, o->thickness, 1, &p, NULL), 0);
	if (o->kind) {
		p->n = 1;
		p->shapes[0] = body;
	}
	return p;
}

/* Compute the primary line integrals and the scattered intensity of the bins, interpolated between cells of the Monte Carlo. */
static void simulate(const struct object *o, const struct scan *scan, size_t photons, float *line, float *scatter)
{
	enum { C_U = N_U / MC_CELL, C_V = N_V / MC_CELL };
	struct phantom *p = phantom_of(o);
	struct scatter_mc_run run = {.cell = MC_CELL, .photons = photons, .seed = 3};
	struct scatter_mc *m;
	float cells[C_U * C_V];

	assert_int_equal(phantom_project(p, scan, 0, line, NULL), 0);
	assert_int_equal(scatter_mc_of_phantom(p, &m, NULL), 0);
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, cells, NULL, NULL), 0);
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++) {
			double x = fmin(fmax((u + 0.5) / MC_CELL - 0.5, 0), C_U - 1.001);
			double y = fmin(fmax((v + 0.5) / MC_CELL - 0.5, 0), C_V - 1.001);
			const float *c = cells + (int)y * C_U + (int)x;
			double a = x - (int)x, b = y - (int)y;

			scatter[v * N_U + u] =
				(float)((1 - b) * ((1 - a) * c[0] + a * c[1]) + b * ((1 - a) * c[C_U] + a * c[C_U + 1]));
		}
	scatter_mc_free(m);
	phantom_free(p);
}

/* Mean, standard deviation and 95th percentile of the relative error of line integrals, where the truth is at least 0.7 of its
 * largest value. */
struct errors {
	double mean, sigma, p95;
};

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static struct errors errors_of(const float *line, const float *truth)
{
	static float all[N];
	double most = 0, sum = 0, squares = 0;
	size_t n = 0;

	for (size_t i = 0; i < N; i++)
		most = fmax(most, (double)truth[i]);
	for (size_t i = 0; i < N; i++)
		if ((double)truth[i] >= 0.7 * most) {
			double e = (double)(line[i] / truth[i]) - 1;

			sum += e;
			squares += e * e;
			all[n++] = (float)fabs(e);
		}
	qsort(all, n, sizeof(*all), compare);
	return (struct errors){sum / (double)n, sqrt(squares / (double)n - sum / (double)n * sum / (double)n),
			       (double)all[n * 95 / 100]};
}

static void check_object(const struct object *o)
{
	static float truth[N], scatter[N], line[N], valid[N];
	struct scatter s = {.thickness = o->thickness, .gap = o->gap, .scale = 1};
	struct scan *scan = scan_at(o->angle);
	struct scatter_report report;
	struct errors before, after;

	simulate(o, scan, PHOTONS, truth, scatter);
	for (size_t i = 0; i < N; i++) {
		line[i] = (float)fmax(0, -log(exp(-(double)truth[i]) + (double)scatter[i]));
		valid[i] = 1;
	}
	before = errors_of(line, truth);
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
	after = errors_of(line, truth);
	print_message(
		"%s %2.0f mm, %.3f/mm, gap %.0f mm, %5.1f degrees: S/P %.2f, most %.2f; error of line integrals %6.1f %% before, "
		"%5.1f +- %.1f %% after, 95 %% within %.1f %%\n",
		o->kind == SHAPE_BREAST ? "breast" : "slab  ", o->thickness, o->mu, o->gap, o->angle, report.mean, report.most,
		100 * before.mean, 100 * after.mean, 100 * after.sigma, 100 * after.p95);
	assert_true(report.air == 0);
	assert_true(before.mean < -0.1);
	assert_true(fabs(after.mean) < 0.03);
	assert_true(after.p95 < 0.08);
}

TEST(test_monte_carlo)
{
	static const struct object objects[] = {
		{SHAPE_BREAST, 20, 17, 0.055, 0},   {SHAPE_BREAST, 20, 17, 0.055, 25},	{SHAPE_BREAST, 40, 17, 0.055, -12},
		{SHAPE_BREAST, 60, 17, 0.055, 0},   {SHAPE_BREAST, 60, 17, 0.055, -25}, {SHAPE_BREAST, 80, 17, 0.055, 0},
		{SHAPE_BREAST, 80, 17, 0.055, 25},  {SHAPE_BREAST, 50, 17, 0.07, 15},	{SHAPE_BREAST, 50, 17, 0.046, 15},
		{SHAPE_BREAST, 50, 25, 0.055, 7.5}, {SHAPE_BOX, 20, 17, 0.05, 0},	{SHAPE_BOX, 40, 17, 0.05, 25},
		{SHAPE_BOX, 60, 17, 0.05, 0},	    {SHAPE_BOX, 80, 17, 0.05, -25},
	};

	enum { ALL = sizeof(objects) / sizeof(*objects), FEW = 4 };

	for (size_t k = 0; k < test_count(ALL, FEW); k++)
		check_object(&objects[test_nth(k, ALL, FEW)]);
}

/* Compute the 5th and 95th percentile of the relative errors of areas of 8 mm, where the truth is at least half of its largest
 * value. */
static void local_errors(const float *line, const float *truth, double ret[2])
{
	static float all[N / (MC_CELL * MC_CELL)];
	double most = 0;
	size_t n = 0;

	for (size_t i = 0; i < N; i++)
		most = fmax(most, (double)truth[i]);
	for (int v = 0; v < N_V; v += MC_CELL)
		for (int u = 0; u < N_U; u += MC_CELL) {
			double sum[2] = {0, 0}, least = INFINITY;

			for (int k = 0; k < MC_CELL * MC_CELL; k++) {
				size_t at = (size_t)(v + k / MC_CELL) * N_U + (size_t)(u + k % MC_CELL);

				sum[0] += (double)line[at];
				sum[1] += (double)truth[at];
				least = fmin(least, (double)truth[at]);
			}
			if (least >= 0.5 * most)
				all[n++] = (float)(sum[0] / sum[1] - 1);
		}
	qsort(all, n, sizeof(*all), compare);
	ret[0] = (double)all[n * 5 / 100];
	ret[1] = (double)all[n * 95 / 100];
}

/* Return the mean scatter in the air. */
static double scatter_of_air(const float *truth, const float *scatter)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < N; i++)
		if (truth[i] == 0) {
			sum += (double)scatter[i];
			n++;
		}
	return sum / (double)n;
}

/* Behind glandular tissue and at the sides the errors are local: nine of ten areas are within 5 %. I0 is measured in the air,
 * which includes scatter. */
static void check_local(const struct object *o)
{
	static float truth[N], scatter[N], line[N], valid[N];
	struct scatter s = {.thickness = o->thickness, .gap = o->gap, .scale = 1, .of_air = true};
	struct scan *scan = scan_at(o->angle);
	struct scatter_report report;
	double air, errors[2];

	simulate(o, scan, PHOTONS_LOCAL, truth, scatter);
	air = scatter_of_air(truth, scatter);
	for (size_t i = 0; i < N; i++) {
		line[i] = (float)fmax(0, -log((exp(-(double)truth[i]) + (double)scatter[i]) / (1 + air)));
		valid[i] = 1;
	}
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
	local_errors(line, truth, errors);
	print_message(
		"%s %2.0f mm, %5.1f degrees: 5 %% to 95 %% of the areas %5.1f to %4.1f %%; scatter in the air %.4f, %.4f found\n",
		o->kind ? "slab  " : "breast", o->thickness, o->angle, 100 * errors[0], 100 * errors[1], air, report.air);
	assert_true(errors[0] > -0.05 && errors[1] < 0.05);
	assert_true(air > 0.005 && fabs(report.air - air) < 0.004);
}

TEST(test_local)
{
	static const struct object objects[] = {
		{0, 20, 17, 0, 25},
		{0, 40, 17, 0, 0},
		{0, 60, 17, 0, -12},
		{0, 80, 17, 0, 0},
		{0, 80, 17, 0, -25},
		{SHAPE_BOX, 20, 17, 0.05, 0},
		{SHAPE_BOX, 80, 17, 0.05, 25},
	};

	enum { ALL = sizeof(objects) / sizeof(*objects), FEW = 2 };

	for (size_t k = 0; k < test_count(ALL, FEW); k++)
		check_local(&objects[test_nth(k, ALL, FEW)]);
}

/* The table's ratio and the sum of a pencil beam's scatter agree. */
TEST(test_ratio)
{
	static const double thickness[] = {20, 50, 80};

	for (int k = 0; k < (test_tier() == 2 ? 3 : 1); k++) { /* all three take part in the sums of test_monte_carlo */
		struct shape slab = {.kind = SHAPE_BOX,
				     .role = ROLE_BODY,
				     .c = {200, 0, 17 + thickness[k] / 2},
				     .r = {200, 250, thickness[k] / 2},
				     .mu = 0.055};
		struct phantom p = {.n = 1, .shapes = &slab};
		struct dbt_geometry g = {.n_u = 40,
					 .n_v = 50,
					 .pitch = 10,
					 .axis_height = 47,
					 .source_axis = 608.5,
					 .source_x = 205,
					 .n_views = 2,
					 .angle = (double[]){0, 1}};
		struct scatter_mc_run run = {.cell = 1, .photons = 60000, .seed = 2, .beam = {20, 21, 25, 26}};
		float scatter[2000];
		double sum = 0, want = scatter_ratio(thickness[k], 0);
		struct scan *scan = fixture_dbt_scan(&g);
		struct scatter_mc *m;

		assert_int_equal(scatter_mc_of_phantom(&p, &m, NULL), 0);
		assert_int_equal(scatter_mc_view(m, scan, 0, &run, scatter, NULL, NULL), 0);
		for (int i = 0; i < 2000; i++)
			sum += (double)scatter[i] * exp(0.055 * thickness[k]);
		print_message("S/P of a wide slab of %.0f mm: %.3f, Monte Carlo %.3f\n", thickness[k], want, sum);
		assert_true(fabs(want / sum - 1) < 0.06);
		scatter_mc_free(m);
	}
	assert_true(scatter_ratio(10, 0) > 0.4 * scatter_ratio(20, 0) && scatter_ratio(10, 0) < 0.6 * scatter_ratio(20, 0));
	assert_true(scatter_ratio(90, 0) > scatter_ratio(80, 0));
	assert_true(scatter_ratio(50, 0.5) > 1.1 * scatter_ratio(50, 0));
}

static void fill_slab(float *line, float *valid)
{
	for (size_t i = 0; i < N; i++) {
		line[i] = i % N_U < 65 ? 3 : 0;
		valid[i] = 1;
	}
}

/* A small disc has the contrast that it has without scatter; without the correction it has P / (P + S) of it. */
TEST(test_contrast)
{
	static float line[N], valid[N], flat[N];
	struct scatter s = {.thickness = 60, .gap = 17, .scale = 1};
	struct scan *scan = scan_at(0);
	const size_t at = 60 * N_U + 30;
	const float ratio = 0.7f, contrast = 0.2f;
	double before, after;

	fill_slab(line, valid);
	for (size_t i = 0; i < N; i++)
		flat[i] = line[i] = line[i] > 0 ? line[i] - logf(1 + ratio) : 0;
	line[at] = -logf(expf(-3 - contrast) + ratio * expf(-3));
	before = (double)(line[at] - flat[at]);
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, NULL, NULL), 0);
	after = (double)(line[at] - line[at + 1]);
	print_message("contrast %.3f: %.4f before, %.4f after\n", (double)contrast, before, after);
	assert_true(before < 0.65 * (double)contrast);
	assert_true(fabs(after / (double)contrast - 1) < 0.1);
}

/* Nothing to correct: air, bins without a datum, a scale of 0. A result does not depend on how the view was merged from bins. */
TEST(test_unchanged)
{
	static float line[N], before[N], valid[N];
	struct scatter s = {.thickness = 60, .gap = 17, .scale = 1};
	struct scan *scan = scan_at(10);
	struct scatter_report report;

	memset(line, 0, sizeof(line));
	for (size_t i = 0; i < N; i++)
		valid[i] = 1;
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
	assert_true(report.mean == 0 && report.most == 0);
	for (size_t i = 0; i < N; i++)
		assert_true(line[i] == 0);
	fill_slab(line, valid);
	for (size_t i = 0; i < N; i++)
		valid[i] = i % 7 == 0 ? 0 : i % 7 == 1 ? -1 : 1;
	memcpy(before, line, sizeof(line));
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
	assert_true(report.mean > 0.2 && report.most < 1);
	for (size_t i = 0; i < N; i++)
		assert_true(valid[i] > 0 && before[i] > 0 ? line[i] > before[i] : line[i] == before[i]);
	memcpy(line, before, sizeof(line));
	s.scale = 0;
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_true(fabsf(line[i] - before[i]) < 2e-6f);
}

/* Half of the rows are without data: the rest is corrected as if they showed what is beside them, without a step at the border.
 * Intensities at the limits of a float give finite numbers. */
TEST(test_hostile)
{
	static float line[N], valid[N];
	struct scatter s = {.thickness = 80, .gap = 17, .scale = 1};
	struct scan *scan = scan_at(-25);

	fill_slab(line, valid);
	for (size_t i = 0; i < N; i++) {
		line[i] = i % 3 == 0 ? 1e6f : i % 3 == 1 ? 0 : 90;
		valid[i] = i < N / 2 ? 0 : 1;
	}
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, NULL, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_true(isfinite(line[i]) && line[i] >= 0);
	for (size_t i = 0; i < N; i++)
		line[i] = 100;
	assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, NULL, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_true(isfinite(line[i]) && line[i] >= 100);
}

/* The functions of one bin are accurate: a uniform view of any line integral is corrected by ln(1 + S / P) of its cell. */
TEST(test_bins)
{
	static float line[N], valid[N];
	struct scatter s = {.thickness = 50, .gap = 17, .scale = 1};
	struct scan *scan = scan_at(0);

	for (int k = 1; k < 60; k++) {
		struct scatter_report report;
		float low = INFINITY, high = 0, first = 0.4f + 0.17f * (float)k;

		for (size_t i = 0; i < N; i++) {
			line[i] = first;
			valid[i] = 1;
		}
		assert_int_equal(scatter_correct_view(&s, scan, 0, 1, line, valid, &report, NULL), 0);
		for (size_t i = 0; i < N; i++) {
			low = fminf(low, line[i] - first);
			high = fmaxf(high, line[i] - first);
		}
		assert_true(fabs((double)high - log(1 + report.most)) < 1e-4);
		assert_true(low > 0.02f && (double)low < log(1 + report.mean));
	}
}

TEST(test_refused)
{
	static float line[N], valid[N];
	const struct scatter good = {.thickness = 50, .gap = 17, .scale = 1};
	struct scatter bad[] = {good, good, good, good};
	struct scan *scan = scan_at(0);
	struct err err;

	bad[0].thickness = 0;
	bad[1].gap = -1;
	bad[2].scale = NAN;
	bad[3].thickness = NAN;
	for (int i = 0; i < 4; i++)
		assert_int_equal(scatter_correct_view(&bad[i], scan, 0, 1, line, valid, NULL, &err), -EINVAL);
	assert_int_equal(scatter_correct_view(&good, scan, 2, 1, line, valid, NULL, &err), -EINVAL);
	assert_int_equal(scatter_correct_view(&good, scan, 0, 0, line, valid, NULL, &err), -EINVAL);
	assert_int_equal(scatter_correct_view(&good, scan, 0, N_U + 1, line, valid, NULL, &err), -EINVAL);
}
