/* SPDX-License-Identifier: Apache-2.0 */
/* PET images of a small scanner: properties of every step that theory predicts, values, positions, factors and background,
 * subsets, the resolution model, filtered backprojection, groups of angles under a memory limit. */
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

#define SUM_TOL 1e-5	    /* float32 sums of some thousand terms */
#define LIKELIHOOD_TOL 1e-6 /* relative; a sum of float32 projections */

static const struct shape cylinder[] = {{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {60, 60, 200}, 2.0}};

/* A phantom that differs from each of its mirror images and rotations. */
static const struct shape lopsided[] = {
	{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {65, 65, 200}, 1},
	{SHAPE_ELLIPSOID, ROLE_LESION, {30, -15, 6}, {14, 14, 10}, 20},
	{SHAPE_ELLIPSOID, ROLE_LESION, {-20, 25, -8}, {12, 20, 8}, 5},
};
static const size_t n_lopsided = sizeof(lopsided) / sizeof(lopsided[0]);

/* Many iterations: in tier 1 with the projector that is several times as fast, and differs by its rounding only. */
static struct pet_protocol long_protocol(void)
{
	struct pet_protocol p = pet_protocol_small;

	p.projector = test_tier() == 2 ? PROJECTION_EXACT : PROJECTION_PATHS;
	return p;
}

/* Compute A x with the reference operator; the image is x fastest, the result in the order of the michelogram. */
static float *model(const struct michelogram *m, const struct pet_plan *plan, const float *x)
{
	struct grid grid = plan->grid;
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	size_t plane_bins = (size_t)m->n_angles * (size_t)m->n_radial;
	struct projection_spec spec = {.model = PROJECTION_EXACT, .n_views = m->n_angles, .grid = &grid};
	float *lines, *sorted = take_memory(michelogram_size(m) * sizeof(*sorted));
	struct scan *scan = NULL;
	struct linop *op;
	struct buf b, p;
	int *plane = NULL;

	grid.z_fastest = false;
	scan = fixture_michelogram_scan(m, plan->fov_radius, &plane);
	spec.scan = scan;
	op = fixture_projector(dev, &spec);
	b = fixture_upload(dev, x, op->n_in);
	p = fixture_upload(dev, NULL, op->n_out);
	assert_int_equal(op->apply(op, &b, &p, NULL), 0);
	lines = fixture_download(&p);
	for (size_t i = 0; i < op->n_out; i++) {
		size_t u = i % (size_t)scan->n_u, v = i / (size_t)scan->n_u % (size_t)scan->n_v,
		       a = i / (size_t)scan->n_u / (size_t)scan->n_v;

		sorted[(size_t)plane[u] * plane_bins + a * (size_t)m->n_radial + v] = lines[i];
	}
	return sorted;
}

static double likelihood(const float *y, const float *p, size_t n, double *ret_sum)
{
	double sum = 0, likely = 0;

	for (size_t i = 0; i < n; i++) {
		sum += p[i];
		if (p[i] > 0)
			likely += y[i] * log(p[i]) - p[i];
	}
	*ret_sum = sum;
	return likely;
}

/* An image and its exact projections. */
static float *consistent(const struct michelogram *m, struct device *dev, float **ret_y)
{
	struct pet_plan plan = pet_plan_of(&pet_protocol_small, m, false, false, dev);
	float *y = pet_lines(m, lopsided, n_lopsided), *x = pet_image(&pet_protocol_small, m, dev, y, NULL, NULL, NULL);

	*ret_y = model(m, &plan, x);
	return x;
}

/* After every iteration the sum of the model equals the sum of the data, and the likelihood does not decrease. New memory
 * contains NaN. */
TEST(mlem_identities)
{
	struct michelogram m = pet_scanner_small(true);
	float *y = pet_lines(&m, lopsided, n_lopsided);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = pet_protocol_small;
	struct pet_plan plan = pet_plan_of(&p, &m, false, false, dev);
	double before = -INFINITY;

	for (int k = 1; k <= 8; k++) {
		struct pet_report report;
		double sum, likely;
		float *x, *lines;

		p.iterations = k;
		x = pet_image(&p, &m, dev, y, NULL, NULL, &report);
		assert_true(report.sum_data > 1000);
		assert_near(report.sum_model, report.sum_data, SUM_TOL * report.sum_data);
		lines = model(&m, &plan, x);
		likely = likelihood(y, lines, michelogram_size(&m), &sum);
		assert_near(sum, report.sum_model, SUM_TOL * sum);
		assert_true(likely >= before - LIKELIHOOD_TOL * fabs(likely));
		before = likely;
		for (size_t i = 0; i < pet_voxels(&plan); i++)
			assert_true(x[i] >= 0 && isfinite(x[i]));
	}
}

TEST(algorithms_on_a_cylinder)
{
	static const struct {
		enum algorithm algorithm;
		enum projection_model projector;
		int iterations;
		double tolerance;
	} ways[] = {
		{ALGORITHM_MLEM, PROJECTION_EXACT, 30, 0.01},  {ALGORITHM_MLEM, PROJECTION_PATHS, 30, 0.01},
		{ALGORITHM_MLEM, PROJECTION_JOSEPH, 30, 0.01}, {ALGORITHM_OSEM, PROJECTION_EXACT, 6, 0.01},
		{ALGORITHM_BSREM, PROJECTION_EXACT, 6, 0.01},  {ALGORITHM_FBP, PROJECTION_EXACT, 1, 0.02},
	};

	for (int arc = 0; arc < 2; arc++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			struct michelogram m = pet_scanner_small(arc);
			float *y = pet_lines(&m, cylinder, 1), *x;
			struct device *dev = fixture_device(arc ? FIXTURE_CPU : FIXTURE_POISON, 2);
			struct pet_protocol p = pet_protocol_small;
			struct pet_plan plan;

			p.algorithm = ways[i].algorithm;
			p.projector = ways[i].projector;
			p.iterations = ways[i].iterations;
			plan = pet_plan_of(&p, &m, false, false, dev);
			x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
			for (int k = 0; k < PET_SLICES; k++)
				assert_near(pet_mean(&plan, x, 45, k, k + 1), 2, 2 * ways[i].tolerance);
			for (size_t v = 0; v < pet_voxels(&plan); v += (size_t)PET_MATRIX * PET_MATRIX)
				assert_true(x[v] == 0); /* outside the field of view */
		}
}

/* x to the right, y down, z into the gantry: positions are correct with every algorithm. */
TEST(positions_of_a_hot_ball)
{
	struct michelogram m = pet_scanner_small(true);
	float *y = pet_lines(&m, lopsided, n_lopsided);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);

	for (enum algorithm algorithm = 1; algorithm < ALGORITHM_COUNT; algorithm++) {
		struct pet_protocol p = pet_protocol_small;
		struct pet_plan plan;
		double centre[3];
		float *x;

		if (!pet_supports(algorithm))
			continue;
		p.algorithm = algorithm;
		plan = pet_plan_of(&p, &m, false, false, dev);
		x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
		pet_centre(&plan, x, centre);
		for (int c = 0; c < 3; c++)
			assert_near(centre[c], lopsided[1].c[c], 0.3 * plan.grid.h[c]);
	}
}

/* Known m and b, consistent data: MLEM with m and b results in the same image as MLEM of corrected data; so does FBP. */
TEST(factors_and_background)
{
	struct michelogram m = pet_scanner_small(true);
	size_t n = michelogram_size(&m);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	float *line, *factors = fixture_floats(n, 5, 0.2f, 1), *background = fixture_floats(n, 7, 20, 40),
		     *y = take_memory(n * sizeof(*y)), *x = consistent(&m, dev, &line);

	for (size_t i = 0; i < n; i++)
		y[i] = factors[i] * line[i] + background[i];
	for (int fbp = 0; fbp < 2; fbp++) {
		struct pet_protocol p = long_protocol();
		struct pet_plan plan;
		float *plain, *modelled, *scaled;
		double centre[3];

		p.algorithm = fbp ? ALGORITHM_FBP : ALGORITHM_MLEM;
		p.iterations = 60;
		plan = pet_plan_of(&p, &m, true, true, dev);
		plain = pet_image(&p, &m, dev, line, NULL, NULL, NULL);
		modelled = pet_image(&p, &m, dev, y, factors, background, NULL);
		if (!fbp)
			assert_true(fixture_difference(plain, x, pet_voxels(&plan)) < 0.01);
		assert_true(fixture_difference(modelled, plain, pet_voxels(&plan)) < (fbp ? 0.03 : 0.01));
		assert_near(pet_mean(&plan, modelled, 60, 2, 9), pet_mean(&plan, plain, 60, 2, 9), fbp ? 0.01 : 2e-3);
		pet_centre(&plan, modelled, centre);
		for (int c = 0; c < 3; c++)
			assert_near(centre[c], lopsided[1].c[c], 0.3 * plan.grid.h[c]);
		/* factors in a different unit: the image is in a different unit */
		for (size_t i = 0; i < n; i++)
			factors[i] *= 0.125f;
		scaled = pet_image(&p, &m, dev, y, factors, background, NULL);
		for (size_t i = 0; i < n; i++)
			factors[i] *= 8;
		for (size_t i = 0; i < pet_voxels(&plan); i++)
			scaled[i] /= 8;
		assert_true(fixture_difference(scaled, modelled, pet_voxels(&plan)) < 1e-5);
	}
}

/* The start is the level that explains the data beside the background: if the image is a uniform disk, it is that image already,
 * and an iteration does not change it. */
TEST(start_beside_a_background)
{
	struct michelogram m = pet_scanner_small(true);
	size_t n = michelogram_size(&m);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	float *ones = take_memory(n * sizeof(*ones)), *background = fixture_floats(n, 7, 20, 400);
	struct pet_protocol p = pet_protocol_small;
	struct pet_plan plan = pet_plan_of(&p, &m, false, true, dev);
	float *x, *y, *first;

	for (size_t i = 0; i < n; i++)
		ones[i] = 1;
	p.iterations = 1;
	x = pet_image(&p, &m, dev, ones, NULL, NULL, NULL);
	for (size_t i = 0; i < pet_voxels(&plan); i++)
		x[i] = x[i] > 0 ? 2 : 0;
	y = model(&m, &plan, x);
	for (size_t i = 0; i < n; i++)
		y[i] += background[i];
	first = pet_image(&p, &m, dev, y, NULL, background, NULL);
	for (size_t i = 0; i < pet_voxels(&plan); i++)
		assert_near(first[i], x[i], 1e-3);
}

/* Bins with m = 0 are ignored for any value of y. */
TEST(ignored_bins)
{
	struct michelogram m = pet_scanner_small(true);
	size_t n = michelogram_size(&m);
	float *y = pet_lines(&m, cylinder, 1), *factors = take_memory(n * sizeof(*factors));
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = pet_protocol_small;
	struct pet_plan plan = pet_plan_of(&p, &m, true, false, dev);
	struct pet_report report;
	uint32_t seed = 3;
	float *x;

	for (size_t i = 0; i < n; i++) {
		factors[i] = fixture_random(&seed) < 0.8f;
		if (factors[i] == 0)
			y[i] = 1000;
	}
	for (int fbp = 0; fbp < 2; fbp++) {
		p.algorithm = fbp ? ALGORITHM_FBP : ALGORITHM_MLEM;
		p.iterations = 30;
		x = pet_image(&p, &m, dev, y, factors, NULL, &report);
		assert_near(pet_mean(&plan, x, 45, 0, PET_SLICES), 2, fbp ? 0.04 : 0.02);
		if (!fbp)
			assert_near(report.sum_model, report.sum_data, SUM_TOL * report.sum_data);
	}
}

/* What the scanner wrote into bins with m = 0 has no effect: with a background, 1000 counts and 300 background counts there give
 * the image and the report of zeros, bit for bit, after one iteration and after several, resident and with groups of angles. */
TEST(gaps_do_not_count)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_OSEM, ALGORITHM_BSREM, ALGORITHM_FBP};
	struct michelogram m = pet_scanner_small(true);
	size_t n = michelogram_size(&m);
	float *line = pet_lines(&m, cylinder, 1), *y[2], *add[2], *factors = take_memory(n * sizeof(*factors));
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	uint32_t seed = 5;

	for (int k = 0; k < 2; k++) {
		y[k] = take_memory(n * sizeof(*y[k]));
		add[k] = take_memory(n * sizeof(*add[k]));
	}
	for (size_t i = 0; i < n; i++) {
		bool gap = fixture_random(&seed) < 0.1f;

		factors[i] = gap ? 0 : 0.5f;
		for (int k = 0; k < 2; k++) {
			add[k][i] = gap ? 300 * (float)k : 40;
			y[k][i] = gap ? 1000 * (float)k : 0.5f * line[i] + 40;
		}
	}
	for (size_t i = 0; i < 4 * 4; i++) {
		struct pet_protocol p = long_protocol();
		struct pet_report report[2];
		struct pet_plan plan;
		float *x[2];

		p.algorithm = algorithms[i / 4];
		p.iterations = i % 2 ? 1 : 4;
		p.prior_weight = 0.01;
		if (i % 4 >= 2)
			p.memory_limit = pet_plan_of(&p, &m, true, true, dev).bytes.total / 2;
		plan = pet_plan_of(&p, &m, true, true, dev);
		assert_int_equal(plan.group_views > 0, i % 4 >= 2);
		for (int k = 0; k < 2; k++)
			x[k] = pet_image(&p, &m, dev, y[k], factors, add[k], &report[k]);
		assert_memory_equal(x[0], x[1], pet_voxels(&plan) * sizeof(*x[0]));
		assert_true(report[0].counts == report[1].counts);
	}
}

/* Counts and background in units 2^40 times larger or smaller result in the same image in that unit. */
TEST(any_unit)
{
	struct michelogram m = pet_scanner_small(true);
	size_t n = michelogram_size(&m);
	float *y = pet_lines(&m, lopsided, n_lopsided), *other = take_memory(n * sizeof(*other)),
	      *add = take_memory(n * sizeof(*add));
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = pet_protocol_small;
	struct pet_plan plan = pet_plan_of(&p, &m, false, true, dev);
	float *x;

	for (size_t i = 0; i < n; i++) {
		add[i] = 30 + (float)(i % 7);
		y[i] += add[i];
	}
	x = pet_image(&p, &m, dev, y, NULL, add, NULL);
	for (int sign = -1; sign <= 1; sign += 2) {
		double unit = exp2(40 * sign);
		float *scaled, *scaled_add = take_memory(n * sizeof(*add));

		for (size_t i = 0; i < n; i++) {
			other[i] = (float)(y[i] * unit);
			scaled_add[i] = (float)(add[i] * unit);
		}
		scaled = pet_image(&p, &m, dev, other, NULL, scaled_add, NULL);
		for (size_t i = 0; i < pet_voxels(&plan); i++)
			scaled[i] = (float)(scaled[i] / unit);
		/* the least value of a voxel does not scale */
		assert_true(fixture_difference(scaled, x, pet_voxels(&plan)) < 1e-6);
	}
}

/* Filtered backprojection divides oblique rays by their length: with them, a cylinder has the value that direct rays give.
 * Without the division it would be 0.3 % higher. */
TEST(oblique_rays)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = pet_protocol_small;
	double mean[2];

	p.algorithm = ALGORITHM_FBP;
	for (int all = 0; all < 2; all++) {
		struct michelogram m = pet_scanner_small(true);
		struct pet_plan plan;
		float *y, *x;

		if (!all)
			m.n_segments = 1;
		y = pet_lines(&m, cylinder, 1);
		plan = pet_plan_of(&p, &m, false, false, dev);
		x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
		mean[all] = pet_mean(&plan, x, 45, 3, 8);
	}
	if (!(fabs(mean[1] / mean[0] - 1) < 5e-4))
		fail_msg("%.6f with oblique rays, %.6f without", mean[1], mean[0]);
}

/* One pass over subsets reaches the same image as one iteration of MLEM per subset. BSREM without a penalty does too, also with
 * decreasing steps. */
TEST(subsets)
{
	static const struct {
		enum algorithm algorithm;
		int iterations;
		double relaxation, apart, from_truth;
	} ways[] = {
		{ALGORITHM_MLEM, 100, 0, 0, 0.01},
		{ALGORITHM_OSEM, 20, 0, 0.005, 0.01},
		{ALGORITHM_BSREM, 20, 0, 0.01, 0.01},
		{ALGORITHM_BSREM, 40, 0.05, 0.01, 0.01},
	};
	struct michelogram m = pet_scanner_small(true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	float *y, *truth = consistent(&m, dev, &y), *mlem = NULL;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pet_protocol p = long_protocol();
		struct pet_plan plan;
		float *x;

		p.algorithm = ways[i].algorithm;
		p.iterations = ways[i].iterations;
		p.relaxation = ways[i].relaxation;
		plan = pet_plan_of(&p, &m, false, false, dev);
		x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
		mlem = mlem ? mlem : x;
		assert_true(fixture_difference(x, truth, pet_voxels(&plan)) < ways[i].from_truth);
		assert_true(fixture_difference(x, mlem, pet_voxels(&plan)) <= ways[i].apart);
	}
}

/* Return the roughness: mean squared difference of neighbours along x. */
static double roughness(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 1; i < n; i++)
		sum += ((double)x[i] - x[i - 1]) * ((double)x[i] - x[i - 1]);
	return sum / (double)n;
}

/* With a penalty and few counts: the same maximum for any number of subsets; a larger weight is smoother; the sum is unchanged.
 */
TEST(penalty)
{
	static const double weights[] = {0, 0.03, 0.1};
	struct michelogram m = pet_scanner_small(true);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = long_protocol();
	struct pet_plan plan = pet_plan_of(&p, &m, false, false, dev);
	size_t n = pet_voxels(&plan), bins = michelogram_size(&m);
	float *y = pet_lines(&m, lopsided, n_lopsided);
	double before = INFINITY, mean = 0;

	for (size_t i = 0; i < bins; i++)
		y[i] *= 0.05f;
	assert_int_equal(pet_phantom_noise(y, bins, 0, 7, NULL), 0);
	p.algorithm = ALGORITHM_BSREM;
	p.prior_gamma = 2;
	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		float *x, *other;

		p.prior_weight = weights[i];
		p.subsets = 5;
		p.iterations = 20;
		p.relaxation = 0.1;
		x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
		if (i) {
			p.subsets = 1;
			p.iterations = 50;
			p.relaxation = 0;
			other = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
			assert_true(fixture_difference(x, other, n) < 0.02);
			assert_near(pet_mean(&plan, x, 60, 0, PET_SLICES), mean, 0.05 * mean);
		} else {
			mean = pet_mean(&plan, x, 60, 0, PET_SLICES);
		}
		assert_true(roughness(x, n) < before);
		before = roughness(x, n);
	}
}
