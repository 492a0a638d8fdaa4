/* SPDX-License-Identifier: Apache-2.0 */
/* Single scatter simulation: the formula against a slow one that shares no code with it, totals of a sphere that a Monte Carlo
 * gave, symmetries, time of flight, and how the samples converge. */
#include "kernels/tof.h"
#include "recon/scatter/single_scatter_internal.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/recon/scatter/scatter_fixture.h"
#include "tests/test.h"

/* ---- the slow reference ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define CUTS_MOST 256

/* Compute where the line from a to b crosses planes of voxels: sorted parameters, 0 and 1 included; return their number. */
static int cuts_of(const struct grid *g, const double a[3], const double b[3], double cut[CUTS_MOST])
{
	int n = 0;

	cut[n++] = 0;
	cut[n++] = 1;
	for (int c = 0; c < 3; c++)
		for (int i = 0; i <= g->n[c]; i++) {
			double t = (g->lo[c] + i * g->h[c] - a[c]) / (b[c] - a[c]);

			if (t > 0 && t < 1)
				cut[n++] = t;
		}
	qsort(cut, (size_t)n, sizeof(*cut), by_value);
	return n;
}

static double value_at(const struct grid *g, const float *x, const double a[3], const double b[3], double t)
{
	int at[3];

	for (int c = 0; c < 3; c++) {
		double voxel = floor((a[c] + t * (b[c] - a[c]) - g->lo[c]) / g->h[c]);

		if (voxel < 0 || voxel >= g->n[c])
			return 0;
		at[c] = (int)voxel;
	}
	return x[at[0] + g->n[0] * (at[1] + g->n[1] * at[2])];
}

/* Return the integral of x from a to b; with `tof` weighted with TOF bin k, the point at p mm from a being at p + shift on the
 * ray. */
static double integral_of(const struct grid *g, const float *x, const double a[3], const double b[3], const struct scan_tof *tof,
			  int k, double shift)
{
	double cut[CUTS_MOST], sum = 0, length = 0;
	int n = cuts_of(g, a, b, cut);

	for (int c = 0; c < 3; c++)
		length += (b[c] - a[c]) * (b[c] - a[c]);
	length = sqrt(length);
	for (int i = 0; i + 1 < n; i++) {
		double value = value_at(g, x, a, b, 0.5 * (cut[i] + cut[i + 1])), from = cut[i] * length,
		       to = cut[i + 1] * length;

		sum += value * (tof ? tof_weight_integral(tof, k, from + shift, to + shift) : to - from);
	}
	return sum;
}

/* Numerically integrated, and independent of the tables: the Klein-Nishina cross section over r_e^2. */
static double differential(double kev, double cosine)
{
	double p = 1 / (1 + kev / 511 * (1 - cosine));

	return 0.5 * p * p * (p + 1 / p - 1 + cosine * cosine);
}

static double total(double kev)
{
	static double last[2][2]; /* energy, value: of 511 keV, and of the energy that was asked for last */
	double *kept = last[kev == 511], sum = 0;

	if (kept[0] != kev) {
		for (int i = 0; i < 2000; i++)
			sum += differential(kev, -1 + (i + 0.5) / 1000) / 1000;
		kept[0] = kev;
		kept[1] = 2 * M_PI * sum;
	}
	return kept[1];
}

static double seen(double kev)
{
	double u = 0.12 * sqrt(511 * kev) / 2.35482 * sqrt(2);

	return 0.5 * (erf((650 - kev) / u) - erf((435 - kev) / u));
}

/* Return S of the first point alone for the detectors a and b. */
static double slow(const struct scatter_case *c, int point, const float *da, const float *db, int k, double *ret_first)
{
	const struct scan_tof *tof = c->spec.tof.n > 0 ? &c->spec.tof : NULL;
	double s[3], a[3], b[3], to_a[3], to_b[3], ab[3], r_a = 0, r_b = 0, r_ab = 0, cosine = 0, face[4] = {0};
	double i_a, i_b, m_a, m_b, q, kev, delta;

	for (int i = 0; i < 3; i++) {
		s[i] = (double)c->points[point][i];
		a[i] = (double)da[i];
		b[i] = (double)db[i];
		to_a[i] = a[i] - s[i];
		to_b[i] = b[i] - s[i];
		ab[i] = b[i] - a[i];
		r_a += to_a[i] * to_a[i];
		r_b += to_b[i] * to_b[i];
		r_ab += ab[i] * ab[i];
		cosine -= to_a[i] * to_b[i];
		face[0] -= to_a[i] * (double)da[3 + i];
		face[1] -= to_b[i] * (double)db[3 + i];
		face[2] += ab[i] * (double)da[3 + i];
		face[3] -= ab[i] * (double)db[3 + i];
	}
	r_a = sqrt(r_a);
	r_b = sqrt(r_b);
	r_ab = sqrt(r_ab);
	cosine /= r_a * r_b;
	kev = 511 / (2 - cosine);
	q = total(kev) / total(511);
	delta = 0.5 * (r_b - r_a);
	m_a = integral_of(&c->grid, c->mu, s, a, NULL, 0, 0);
	m_b = integral_of(&c->grid, c->mu, s, b, NULL, 0, 0);
	i_a = integral_of(&c->grid, c->activity, s, a, tof, k, delta);
	i_b = integral_of(&c->grid, c->activity, s, b, tof, tof ? tof->n - 1 - k : 0, -delta);
	*ret_first = r_ab * r_ab / (face[2] / r_ab * face[3] / r_ab) * (double)c->points[point][3] * differential(511, cosine) /
		     total(511) * seen(kev) / seen(511) * (face[0] / r_a) * (face[1] / r_b) / (r_a * r_a * r_b * r_b);
	return *ret_first * (i_a * exp(-m_a - q * m_b) + i_b * exp(-m_b - q * m_a));
}

/* The device's sums over 5 points against the reference, for random activity and mu. */
TEST(formula)
{
	static const struct scan_tof tofs[] = {{0}, {15, 60, 25}, {61, 12, 30}};

	for (int t = 0; t < 3; t++) {
		struct scatter_case *c = scatter_case(5, tofs[t]);
		int bins = tofs[t].n > 0 ? tofs[t].n : 1, compared = 0;
		float *found[FIXTURE_DEVICES];

		for (int which = 0; which < FIXTURE_DEVICES; which++) {
			struct device *dev = fixture_device(which, 2);

			found[which] = scatter_pairs_of(dev, &c->spec, c->activity, c->mu);
		}
		for (int i = 0; i < SCATTER_PAIRS; i += 13) {
			double most = 0, first, expected[64] = {0};

			for (int p = 0; p < 5; p++)
				for (int k = 0; k < bins; k++)
					expected[k] +=
						slow(c, p, c->detectors[c->pairs[i][0]], c->detectors[c->pairs[i][1]], k, &first);
			for (int k = 0; k < bins; k++)
				most = fmax(most, expected[k]);
			compared += most > 1e-3;
			for (int k = 0; k < bins; k++) /* TOF: linear between samples half a sigma apart */
				for (int which = 0; which < FIXTURE_DEVICES; which++)
					assert_near((double)found[which][k * SCATTER_PAIRS + i], expected[k],
						    most * (tofs[t].n ? 0.03 : 1e-4) + 1e-6);
		}
		assert_true(compared > 60);
	}
}

/* A source of one voxel and one scatter point: where the TOF bins must be. */
TEST(one_point)
{
	const struct scan_tof tof = {41, 15, 8};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct scatter_case *c = scatter_case(1, tof);
	const int32_t pairs[2][2] = {{0, 1}, {1, 0}};
	const double source = 60; /* mm from the point, towards the first detector */
	double sum[2] = {0}, mean[2] = {0}, first;
	float *found;

	/* the point at the origin; A at (300, 0, 0), B at an angle of scatter of 45 degrees */
	memset(c->activity, 0, grid_size(&c->grid) * sizeof(float));
	c->grid = (struct grid){{151, 3, 3}, {1, 1, 1}, {-0.5, -1.5, -1.5}, false};
	c->activity = take_zeros(grid_size(&c->grid), sizeof(float));
	c->mu = take_zeros(grid_size(&c->grid), sizeof(float));
	c->activity[60 + 151 * (1 + 3 * 1)] = 5;
	memcpy(c->points[0], (float[]){0, 0, 0, 100}, sizeof(c->points[0]));
	memcpy(c->detectors[0], (float[]){300, 0, 0, -1, 0, 0}, sizeof(c->detectors[0]));
	memcpy(c->detectors[1], (float[]){-141.42136f, 141.42136f, 0, 0.70710678f, -0.70710678f, 0}, sizeof(c->detectors[1]));
	c->spec.n_detectors = 2;
	c->spec.n_pairs = 2;
	c->spec.pairs = pairs;
	found = scatter_pairs_of(dev, &c->spec, c->activity, c->mu);
	for (int k = 0; k < tof.n; k++)
		for (int i = 0; i < 2; i++) {
			sum[i] += (double)found[k * 2 + i];
			mean[i] += (double)found[k * 2 + i] * (k - 20) * tof.width;
		}
	c->spec.tof.n = 0;
	slow(c, 0, c->detectors[0], c->detectors[1], 0, &first);
	assert_near(sum[0], 5 * first, 1e-4 * sum[0]);
	assert_near(sum[1], sum[0], 1e-5 * sum[0]);
	assert_near(mean[0] / sum[0], source + 0.5 * (200 - 300), 0.05);
	assert_near(mean[1] / sum[1], -(source + 0.5 * (200 - 300)), 0.05);
}

/* Detectors exchanged: the same, with the TOF bins in the opposite order. The sum over TOF bins that cover everything is the
 * value without time of flight. */
TEST(reciprocity_and_sum)
{
	const struct scan_tof tof = {51, 21, 14};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct scatter_case *c = scatter_case(300, tof);
	float *found = scatter_pairs_of(dev, &c->spec, c->activity, c->mu), *plain;
	float most = 0;

	c->spec.tof = (struct scan_tof){0};
	plain = scatter_pairs_of(dev, &c->spec, c->activity, c->mu);
	for (int i = 0; i < SCATTER_PAIRS; i++)
		most = fmaxf(most, plain[i]);
	for (int i = 0; i < SCATTER_DETECTORS; i++)
		for (int j = 0; j < i; j++) {
			int one = i * (SCATTER_DETECTORS - 1) + j, other = j * (SCATTER_DETECTORS - 1) + i - 1;
			double sum = 0;

			assert_int_equal(c->pairs[one][0], c->pairs[other][1]);
			assert_near((double)plain[one], (double)plain[other], 1e-6 * (double)most);
			for (int k = 0; k < tof.n; k++) {
				sum += (double)found[k * SCATTER_PAIRS + one];
				assert_near((double)found[k * SCATTER_PAIRS + one],
					    (double)found[(tof.n - 1 - k) * SCATTER_PAIRS + other], 1e-6 * (double)most);
			}
			assert_near(sum, (double)plain[one], 1e-5 * (double)most);
		}
}

/* ---- a uniform sphere inside a sphere of detectors ---- */

#define SPHERE 100.0
#define MU 0.0096
#define AROUND 400.0
#define BALL 320 /* detectors */

/* A uniform ball: activity 1, mu MU; voxels at its surface have the share that is inside. */
static float *ball(const struct grid *g)
{
	float *x = take_memory(grid_size(g) * sizeof(*x));

	for (int k = 0; k < g->n[2]; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++) {
				int inside = 0;

				for (int s = 0; s < 64; s++) {
					double a = g->lo[0] + (i + (s % 4 + 0.5) / 4) * g->h[0];
					double b = g->lo[1] + (j + (s / 4 % 4 + 0.5) / 4) * g->h[1];
					double c = g->lo[2] + (k + (s / 16 + 0.5) / 4) * g->h[2];

					inside += a * a + b * b + c * c < SPHERE * SPHERE;
				}
				x[i + g->n[0] * (j + g->n[1] * k)] = (float)inside / 64;
			}
	return x;
}

/* A Monte Carlo gave: of the annihilations, 0.2557 leave the ball with both photons unscattered, 0.0854 with one photon scattered
 * once and above 425 keV. A pair of detectors of the areas dA, dB sees integral(activity) dA dB cos cos / (2 pi R^2). */
TEST(sphere)
{
	const struct single_scatter_conf sharp = {.energy_low = 425, .energy_high = 1e4, .energy_resolution = 0.01};
	const struct grid g = {{40, 40, 40}, {5.25, 5.25, 5.25}, {-105, -105, -105}, false};
	const double volume = 4.0 / 3 * M_PI * SPHERE * SPHERE * SPHERE, area = 4 * M_PI * AROUND * AROUND / BALL;
	float(*detectors)[6] = take_memory(BALL * sizeof(*detectors)),
	(*angles)[2] = take_memory((SCATTER_ANGLES + 1) * sizeof(*angles));
	float(*points)[4] = take_memory(2000 * sizeof(*points)), *activity = ball(&g),
	*mu = take_memory(grid_size(&g) * sizeof(float));
	int32_t(*pairs)[2] = take_memory(BALL * (BALL - 1) / 2 * sizeof(*pairs));
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct scatter_spec spec = {.grid = &g,
				    .n_detectors = BALL,
				    .detectors = (const float(*)[6])detectors,
				    .pairs = (const int32_t(*)[2])pairs,
				    .points = (const float(*)[4])points,
				    .angles = (const float(*)[2])angles};
	double scatter = 0, trues = 0;
	float *found;

	for (size_t i = 0; i < grid_size(&g); i++)
		mu[i] = (float)MU * activity[i];
	assert_int_equal(single_scatter_angles(&sharp, angles, NULL), 0);
	for (int i = 0; i < BALL; i++) {
		double z = 1 - (2 * i + 1.0) / BALL, r = sqrt(1 - z * z), turn = M_PI * (3 - sqrt(5)) * i;
		const double n[3] = {r * cos(turn), r * sin(turn), z};

		for (int k = 0; k < 3; k++) {
			detectors[i][k] = (float)(AROUND * n[k]);
			detectors[i][3 + k] = (float)-n[k];
		}
		for (int j = 0; j < i; j++) {
			pairs[spec.n_pairs][0] = i;
			pairs[spec.n_pairs++][1] = j;
		}
	}
	for (int i = 0; i < 1000; i++) { /* a lattice of cells of 21 mm */
		double p[3] = {21 * (i % 10) - 94.5, 21 * (i / 10 % 10) - 94.5, 21 * (i / 100) - 94.5}; /* NOLINT: whole cells */
		int inside = 0;

		for (int s = 0; s < 1000; s++) {
			double a = p[0] + 2.1 * (s % 10) - 9.45, b = p[1] + 2.1 * (s / 10 % 10) - 9.45, /* NOLINT */
				c = p[2] + 2.1 * (s / 100) - 9.45;					/* NOLINT */

			inside += a * a + b * b + c * c < SPHERE * SPHERE;
		}
		if (inside > 0) {
			double r = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]), into = r > 96 ? 96 / r : 1;

			for (int k = 0; k < 3; k++)
				points[spec.n_points][k] = (float)(p[k] * into);
			points[spec.n_points++][3] = (float)(MU * 2.1 * 2.1 * 2.1 * inside);
		}
	}
	found = scatter_pairs_of(dev, &spec, activity, mu);
	for (size_t i = 0; i < spec.n_pairs; i++) {
		const float *a = detectors[pairs[i][0]], *b = detectors[pairs[i][1]];
		double dot = -((double)a[3] * (double)b[3] + (double)a[4] * (double)b[4] + (double)a[5] * (double)b[5]);
		double distance = AROUND * sqrt(2 + 2 * dot), cosine = distance / (2 * AROUND);
		double near = AROUND * AROUND - 0.25 * distance * distance;
		double chord = near < SPHERE * SPHERE ? 2 * sqrt(SPHERE * SPHERE - near) : 0;
		double share = area * area * cosine * cosine / (2 * M_PI * distance * distance) / volume;

		trues += share * chord * exp(-MU * chord);
		scatter += share * (double)found[i];
	}
	print_message("trues %.4f, scatter %.4f\n", trues, scatter);
	assert_near(trues, 0.2557, 0.002);
	assert_near(scatter, 0.0854, 0.001);
}

/* ---- whole sinograms ---- */

/* A scanner of the size of a patient's: 25 rings of 8 mm, oblique planes to a ring difference of 22. */
static struct michelogram scanner(struct scan_tof tof)
{
	struct michelogram m = {.scanner = {.rings = 25, .detectors = 320, .ring_spacing = 8, .radius = 400, .bin = 7.85},
				.n_radial = 81,
				.n_angles = 32,
				.tof = tof};

	fixture_segments(&m, 9, 22);
	return m;
}

static const struct grid body_grid = {{40, 40, 25}, {8, 8, 8}, {-160, -160, -100}, true};

/* Make activity and mu of a body: an elliptic cylinder of water with a hot rod and a cold one, or, if it is to be symmetric, a
 * round one. */
static void body(bool symmetric, float **ret_activity, float **ret_mu)
{
	const struct grid *g = &body_grid;
	float *activity = take_zeros(grid_size(g), sizeof(float)), *mu = take_zeros(grid_size(g), sizeof(float));

	for (int k = 0; k < g->n[2]; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++) {
				double x = g->lo[0] + (i + 0.5) * g->h[0], y = g->lo[1] + (j + 0.5) * g->h[1];
				size_t at = (size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1) + (size_t)k;

				if (symmetric ? x * x + y * y > 110 * 110 : x * x / (140 * 140) + y * y / (95 * 95) > 1)
					continue;
				activity[at] = mu[at] = 1;
				if (!symmetric && (x - 60) * (x - 60) + y * y < 900 && k > 8 && k < 16)
					activity[at] = 8;
				if (!symmetric && (x + 60) * (x + 60) + y * y < 1600) {
					activity[at] = 0.2f;
					mu[at] = 0.3f;
				}
				mu[at] *= (float)MU;
			}
	*ret_activity = activity;
	*ret_mu = mu;
}

/* Single values are those of the planes, in all TOF bins. */
static void check_values(const struct single_scatter *s, const struct michelogram *m, const float *planes)
{
	size_t n = (size_t)m->n_angles * (size_t)m->n_radial;
	int n_planes = (int)michelogram_planes(m);

	for (size_t i = 0; i < michelogram_size(m); i += 97) {
		int plane = (int)(i / n);

		assert_near((double)single_scatter_value(s, plane / n_planes, plane % n_planes, i % n), (double)planes[i],
			    1e-5 * (double)planes[i]);
	}
}

/* Return all planes; the caller frees them. */
static float *planes_of(const struct michelogram *m, const struct single_scatter_conf *conf, bool symmetric)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct single_scatter_report report;
	struct single_scatter *s;
	float *activity, *mu, *out = take_memory(michelogram_size(m) * sizeof(*out));

	body(symmetric, &activity, &mu);
	assert_int_equal(single_scatter_open(m, conf, dev, &s, NULL), 0);
	assert_int_equal(single_scatter_planes(s, 0, 1, 1, out, NULL), -EINVAL); /* nothing to read yet */
	assert_int_equal(single_scatter_run(s, &body_grid, activity, mu, NULL, &report, NULL), 0);
	assert_int_equal(single_scatter_planes(s, 0, (int)michelogram_data_planes(m), 2, out, NULL), 0);
	assert_int_equal(single_scatter_planes(s, 0, (int)michelogram_data_planes(m) + 1, 2, out, NULL), -EINVAL);
	print_message("%zu points, %zu pairs, %.2f s\n", report.points, report.pairs, report.seconds);
	check_values(s, m, out);
	single_scatter_close(s);
	return out;
}

/* Return the root of the mean square difference over that of b. */
static double rms_gap(const float *a, const float *b, size_t n)
{
	double gap = 0, whole = 0;

	for (size_t i = 0; i < n; i++) {
		gap += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
		whole += (double)b[i] * (double)b[i];
	}
	return sqrt(gap / whole);
}

/* Detectors: 32, 64 and 128 with the same few points and rings. Points: two seeds and three times as many, with 32 detectors. */
TEST(convergence)
{
	struct michelogram m = scanner((struct scan_tof){0});
	size_t n = michelogram_size(&m);
	struct single_scatter_conf conf = usual_window;
	float *fine, *usual, *coarse, *points, *seeded, *dense;

	conf.point_distance = 28;
	conf.ring_distance = 40;
	usual = planes_of(&m, &conf, false);
	conf.detectors = 128;
	fine = planes_of(&m, &conf, false);
	conf.detectors = 32;
	coarse = planes_of(&m, &conf, false);
	conf.point_distance = 0;
	conf.ring_distance = test_tier() == 2 ? 0 : 40;
	points = planes_of(&m, &conf, false);
	conf.seed = 2;
	seeded = planes_of(&m, &conf, false);
	conf.point_distance = 14;
	dense = planes_of(&m, &conf, false);
	print_message("rms: 32 detectors %.4f, 64: %.4f; another seed %.4f; points every 14 mm %.4f\n", rms_gap(coarse, fine, n),
		      rms_gap(usual, fine, n), rms_gap(seeded, points, n), rms_gap(points, dense, n));
	assert_true(rms_gap(coarse, fine, n) < 0.04);
	assert_true(rms_gap(usual, fine, n) < 0.009);
	assert_true(rms_gap(usual, fine, n) < 0.5 * rms_gap(coarse, fine, n));
	assert_true(rms_gap(seeded, points, n) < 0.027);
	assert_true(rms_gap(points, dense, n) < 0.013);
}

/* In tier 1 with a third of the pairs. */
static struct single_scatter_conf few_detectors(void)
{
	struct single_scatter_conf conf = usual_window;

	conf.detectors = test_tier() == 2 ? conf.detectors : 32;
	return conf;
}

/* A round body: equal at all angles and at both signs of the radius, and above and below the middle. */
TEST(symmetry)
{
	struct michelogram m = scanner((struct scan_tof){0});
	struct single_scatter_conf conf = few_detectors();
	float *planes = planes_of(&m, &conf, true);
	size_t size = (size_t)m.n_angles * (size_t)m.n_radial;
	int n = m.segments[0].n_planes;

	for (int p = 0; p < n; p++) {
		const float *plane = planes + (size_t)p * size, *mirrored = planes + (size_t)(n - 1 - p) * size;
		double mean[81] = {0}, other[81] = {0}, most = 0;

		for (size_t i = 0; i < size; i++) {
			mean[i % 81] += (double)plane[i] / m.n_angles;
			other[i % 81] += (double)mirrored[i] / m.n_angles;
		}
		for (int t = 0; t < 81; t++)
			most = fmax(most, mean[t]);
		assert_true(most > 0);
		for (int t = 1; t < 81; t++) {
			assert_near(mean[t], mean[80 - t], 0.03 * most);
			assert_near(mean[t], other[t], 0.03 * most);
		}
		for (size_t i = 0; i < size; i++)
			assert_near((double)plane[i], mean[i % 81], 0.06 * most);
	}
}

/* The TOF bins of every bin add up to its value without time of flight, point by point: two batches of points are enough. So does
 * one bin that is as wide as the field of view. */
TEST(planes_tof_sum)
{
	struct michelogram m = scanner((struct scan_tof){35, 25, 14}), plain_m = m;
	struct single_scatter_conf conf = few_detectors();
	float *found, *plain, *one, most = 0;
	size_t n = michelogram_size(&m) / 35;

	conf.point_distance = 40;
	found = planes_of(&m, &conf, false);
	plain_m.tof = (struct scan_tof){0};
	plain = planes_of(&plain_m, &conf, false);
	plain_m.tof = (struct scan_tof){1, 1400, 14};
	one = planes_of(&plain_m, &conf, false);
	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, plain[i]);
	for (size_t i = 0; i < n; i++) {
		double sum = 0;

		for (size_t k = 0; k < 35; k++)
			sum += (double)found[k * n + i];
		assert_near(sum, (double)plain[i], 1e-5 * (double)most);
		assert_near((double)one[i], (double)plain[i], 1e-5 * (double)most);
	}
}

/* The fine TOF bins of a leg reach over the diagonal of the activity, whatever its longest axis. */
TEST(bins_reach_over_the_diagonal)
{
	const struct scan_tof tof = {.n = 5, .width = 40, .sigma = 30};

	for (int c = 0; c < 3; c++) {
		struct grid g = {{3, 3, 3}, {4, 4, 4}, {0, 0, 0}};
		struct scatter_model m;
		double reach;

		g.n[c] = 20;
		g.h[c] = 9;
		assert_int_equal(scatter_model_size(&g, &tof, 10, &m, NULL), 0);
		reach = (m.n_bins - 1) * m.step - sqrt(180 * 180 + 2 * 12 * 12);
		assert_true(reach >= 0 && reach < m.step);
	}
}

/* A bin whose ends are sampled detectors of sampled rings has exactly the value of that pair, in its TOF bin: oblique planes of
 * both signs, and direct ones. */
TEST(bins_are_pairs)
{
	struct michelogram m = {.scanner = {.rings = 3, .detectors = 64, .ring_spacing = 20, .radius = 400, .bin = 40},
				.n_radial = 31,
				.n_angles = 32,
				.angle_offset = 7,
				.tof = {15, 60, 25}};
	const struct grid g = {{8, 7, 5}, {30, 30, 20}, {-110, -100, -50}, false};
	const int angle = 5, radial = 15 + 2; /* an even one: its ends are detectors */
	const double phi = 7 + 5 * 180.0 / 32, beta = 2 * 180.0 / 64;
	struct single_scatter_conf conf = {435, 650, 12, 64, 20, 20, 0.001, 1};
	struct scatter_case *c = scatter_case(1, m.tof);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	float *activity = fixture_floats(grid_size(&g), 3, 0, 1), *mu = fixture_floats(grid_size(&g), 4, 0, 0.01f), *out;
	const int32_t ends[1][2] = {{0, 1}};
	struct single_scatter_report report;
	struct single_scatter *s;
	float(*points)[4];

	fixture_segments(&m, 1, 2);
	out = take_memory(michelogram_size(&m) * sizeof(*out));
	assert_int_equal(single_scatter_open(&m, &conf, dev, &s, NULL), 0);
	assert_int_equal(single_scatter_run(s, &g, activity, mu, NULL, &report, NULL), 0);
	assert_int_equal(single_scatter_planes(s, 0, (int)michelogram_data_planes(&m), 1, out, NULL), 0);
	c->spec.grid = &g;
	assert_int_equal(single_scatter_points(&conf, &g, mu, &points, &c->spec.n_points, NULL), 0);
	test_later(free, points);
	assert_int_equal(report.points, c->spec.n_points);
	c->spec.points = (const float(*)[4])points;
	c->spec.n_detectors = 2;
	c->spec.n_pairs = 1;
	c->spec.pairs = ends;
	for (int rings = 0; rings < 9; rings++) {
		const struct michelogram_segment *segment = m.segments;
		size_t plane = (size_t)(rings / 3 < rings % 3 ? rings / 3 : rings % 3);
		float *expected;

		for (; segment->first != rings / 3 - rings % 3; segment++)
			plane += (size_t)segment->n_planes;
		for (int end = 0; end < 2; end++) {
			double turn = (phi + (end ? beta - 90 : 90 - beta)) * M_PI / 180;
			const double d[6] = {400 * cos(turn), 400 * sin(turn), 20.0 * ((end ? rings % 3 : rings / 3) - 1),
					     -cos(turn),      -sin(turn),      0};

			for (int i = 0; i < 6; i++)
				c->detectors[end][i] = (float)d[i];
		}
		expected = scatter_pairs_of(dev, &c->spec, activity, mu);
		for (size_t k = 0; k < 15; k++)
			assert_near((double)out[((k * 9 + plane) * 32 + (size_t)angle) * 31 + (size_t)radial],
				    (double)expected[k], 2e-4 * (double)expected[7]);
		assert_true(expected[7] > 0);
	}
	single_scatter_close(s);
}
