/* SPDX-License-Identifier: Apache-2.0 */
/* PET with time of flight: values and positions, sums, factors with and without a TOF axis, one wide bin compared with no time of
 * flight, gaps, planes in any order, the cache, the sum over TOF bins before filtered backprojection, the plan of a long scanner.
 */
#include "tests/recon/pet/pet_work_fixture.h"
#include "tests/test.h"

#define SUM_TOL 1e-5 /* float32 sums of some thousand terms */

/* The TOF bins reach 4 sigma beyond the field of view, so that their weights add up to 1 inside. */
static const struct scan_tof fine = {7, 40, 14}, wide = {1, 280, 14};

static float *image_of(struct work *w, enum pet_factors which, bool background, struct pet_report *ret_report)
{
	return pet_image_with(&w->p, &w->m, w->dev, w->cache, w->data[PET_DATA], which, which ? w->data[PET_FACTORS] : NULL,
			      background ? w->data[PET_BACKGROUND] : NULL, ret_report);
}

TEST(cylinder)
{
	static const struct shape shape = {SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {60, 60, 200}, 2.0};
	static const struct {
		enum algorithm algorithm;
		enum projection_model projector;
		int iterations;
		bool arc_corrected;
	} ways[] = {{ALGORITHM_MLEM, PROJECTION_EXACT, 8, true},
		    {ALGORITHM_MLEM, PROJECTION_PATHS, 12, false},
		    {ALGORITHM_MLEM, PROJECTION_JOSEPH, 12, true},
		    {ALGORITHM_OSEM, PROJECTION_PATHS, 4, true},
		    {ALGORITHM_BSREM, PROJECTION_PATHS, 4, false}};
	float *y[2] = {NULL, NULL};

	/* The slow projector in tier 2: its bins are those of the other (tests/kernels/cpu/test_tof.c). */
	for (size_t i = test_tier() == 2 ? 0 : 1; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct michelogram m = pet_scanner_small(ways[i].arc_corrected);
		struct device *dev = fixture_device(i > 1 ? FIXTURE_CPU : FIXTURE_POISON, 2);
		struct pet_protocol p = pet_protocol_small;
		struct pet_report report;
		struct pet_plan plan;
		float *x;

		m.tof = (struct scan_tof){13, 20, 10};
		if (!y[m.arc_corrected])
			y[m.arc_corrected] = pet_lines(&m, &shape, 1);
		p.algorithm = ways[i].algorithm;
		p.projector = ways[i].projector;
		p.iterations = ways[i].iterations;
		plan = pet_plan_of(&p, &m, PET_FACTORS_NONE, false, dev);
		x = pet_image(&p, &m, dev, y[m.arc_corrected], NULL, NULL, &report);
		for (int k = 0; k < PET_SLICES; k++)
			assert_near(pet_mean(&plan, x, 45, k, k + 1), 2, 0.02);
		if (p.algorithm == ALGORITHM_MLEM) {
			assert_true(report.sum_data > 1000);
			assert_near(report.sum_model, report.sum_data, SUM_TOL * report.sum_data);
		}
	}
}

/* The hot ball is at its place with few iterations; it is not with TOF bins in the opposite order. */
TEST(positions)
{
	static const struct shape shapes[] = {
		{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {65, 65, 200}, 1},
		{SHAPE_ELLIPSOID, ROLE_LESION, {30, -15, 6}, {14, 14, 10}, 20},
	};
	struct michelogram m = pet_scanner_small(true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = pet_protocol_small;
	size_t plane = (size_t)m.n_angles * (size_t)m.n_radial * PLANES;
	struct pet_report report[2];
	float *y, *turned, *x[2];
	struct pet_plan plan;
	double centre[3];

	m.tof = fine;
	p.projector = PROJECTION_PATHS;
	p.iterations = 5;
	y = pet_lines(&m, shapes, 2);
	turned = take_memory(michelogram_size(&m) * sizeof(*turned));
	for (int k = 0; k < fine.n; k++)
		memcpy(turned + (size_t)k * plane, y + (size_t)(fine.n - 1 - k) * plane, plane * sizeof(*y));
	plan = pet_plan_of(&p, &m, PET_FACTORS_NONE, false, dev);
	x[0] = pet_image(&p, &m, dev, y, NULL, NULL, &report[0]);
	x[1] = pet_image(&p, &m, dev, turned, NULL, NULL, &report[1]);
	pet_centre(&plan, x[0], centre);
	for (int c = 0; c < 3; c++)
		assert_near(centre[c], shapes[1].c[c], 0.3 * plan.grid.h[c]);
	assert_true(fixture_difference(x[1], x[0], pet_voxels(&plan)) > 0.3);
}

/* Factors for each TOF bin, all equal, give the image of shared factors: the sensitivity of one wide bin is the sum over the
 * bins. So do the algorithms that are streamed. */
TEST(factors)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_OSEM, ALGORITHM_BSREM};

	for (int i = 0; i < 2 * 3; i++) {
		TEST_BLOCK;
		struct pet_report report[2];
		struct pet_plan plan;
		struct work w;
		float *x[2];

		work_make_tof(&w, FIXTURE_POISON, fine);
		w.p.algorithm = algorithms[i / 2];
		for (size_t b = 0; b < w.bins && w.p.algorithm == ALGORITHM_MLEM; b++) /* no background, for the sums */
			w.data[PET_DATA][b] = fmaxf(0, w.data[PET_DATA][b] - w.data[PET_BACKGROUND][b]);
		w.p.projector = PROJECTION_PATHS;
		w.p.iterations = 1;
		w.p.prior_weight = 0.01;
		w.p.psf = i % 2 ? 6 : 0;
		for (int k = 0; k < 2; k++) {
			if (k && i % 2)
				w.p.memory_limit = pet_plan_of(&w.p, &w.m, PET_FACTORS_TOF, i / 2 > 0, w.dev).bytes.total / 2;
			plan = pet_plan_of(&w.p, &w.m, k ? PET_FACTORS_TOF : PET_FACTORS_SHARED, i / 2 > 0, w.dev);
			assert_int_equal(plan.group_views > 0, k && i % 2);
			x[k] = image_of(&w, k ? PET_FACTORS_TOF : PET_FACTORS_SHARED, i / 2 > 0, &report[k]);
			if (w.p.algorithm == ALGORITHM_MLEM) {
				assert_true(report[k].sum_data > 1000);
				assert_near(report[k].sum_model, report[k].sum_data, SUM_TOL * report[k].sum_data);
			}
		}
		assert_true(fixture_difference(x[1], x[0], pet_voxels(&plan)) < 1e-5);
		assert_true(report[0].counts == report[1].counts);
	}
}

/* One TOF bin whose weight is 1 in the field of view: the image without time of flight, with factors and background. */
TEST(one_wide_bin)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_OSEM, ALGORITHM_BSREM};

	for (int i = 0; i < 3; i++) {
		TEST_BLOCK;
		struct pet_report report[2];
		struct pet_plan plan;
		struct work w;
		float *x[2];

		work_make(&w, FIXTURE_CPU);
		w.p.algorithm = algorithms[i];
		w.p.projector = PROJECTION_PATHS;
		for (int k = 0; k < 2; k++) {
			w.m.tof = k ? wide : (struct scan_tof){0};
			plan = pet_plan_of(&w.p, &w.m, PET_FACTORS_SHARED, true, w.dev);
			x[k] = image_of(&w, PET_FACTORS_SHARED, true, &report[k]);
		}
		assert_true(fixture_difference(x[1], x[0], pet_voxels(&plan)) < 1e-5);
		assert_near(report[1].counts, report[0].counts, 1e-9 * report[0].counts);
	}
}

/* What the scanner wrote into bins with m = 0 has no effect, with factors for a ray and for each TOF bin. */
TEST(gaps)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_BSREM, ALGORITHM_FBP};

	for (int i = 0; i < 2 * 3; i++) {
		TEST_BLOCK;
		enum pet_factors which = i % 2 ? PET_FACTORS_TOF : PET_FACTORS_SHARED;
		struct pet_report report[2];
		struct pet_plan plan;
		struct work w;
		float *x[2];

		work_make_tof(&w, FIXTURE_CPU, fine);
		w.p.algorithm = algorithms[i / 2];
		w.p.projector = PROJECTION_PATHS;
		w.p.iterations = 1;
		plan = pet_plan_of(&w.p, &w.m, which, true, w.dev);
		for (int k = 0; k < 2; k++) {
			uint32_t seed = 5;

			for (size_t b = 0; b < w.bins; b++) {
				size_t ray = b % (PLANES * w.plane_bins);
				bool gap = which == PET_FACTORS_TOF ? fixture_random(&seed) < 0.1f : ray % 10 == 3;

				if (!gap)
					continue;
				w.data[PET_FACTORS][b] = 0;
				w.data[PET_DATA][b] = k ? 1000 : 0;
				w.data[PET_BACKGROUND][b] = k ? 300 : 0;
			}
			x[k] = image_of(&w, which, true, &report[k]);
		}
		assert_memory_equal(x[0], x[1], pet_voxels(&plan) * sizeof(*x[0]));
		assert_true(report[0].counts == report[1].counts && report[0].counts > 0);
	}
}

/* Filtered backprojection of the TOF bins is bitwise that of their sum. */
TEST(fbp)
{
	size_t all;
	struct pet_plan plan;
	struct work w;
	float *x[2];

	work_make_tof(&w, FIXTURE_CPU, fine);
	all = PLANES * w.plane_bins;
	w.p.algorithm = ALGORITHM_FBP;
	x[0] = image_of(&w, PET_FACTORS_SHARED, true, NULL);
	for (size_t i = all; i < w.bins; i++) {
		w.data[PET_DATA][i % all] += w.data[PET_DATA][i];
		w.data[PET_BACKGROUND][i % all] += w.data[PET_BACKGROUND][i];
	}
	w.m.tof = (struct scan_tof){0};
	plan = pet_plan_of(&w.p, &w.m, PET_FACTORS_SHARED, true, w.dev);
	x[1] = image_of(&w, PET_FACTORS_SHARED, true, NULL);
	assert_memory_equal(x[0], x[1], pet_voxels(&plan) * sizeof(*x[0]));
}

static void put(struct work *w, enum pet_role role, int first, int n)
{
	assert_int_equal(pet_put(w->s, role, first, n, w->data[role] + (size_t)first * w->plane_bins, NULL), 0);
}

/* Planes of all TOF bins in any order, in calls that cross from one TOF bin to the next; invalid bins and calls. */
TEST(planes)
{
	int n = fine.n * PLANES;
	struct err err = {0};
	float *expected, *found, bad;
	struct work w;

	work_make_tof(&w, FIXTURE_POISON, fine);
	w.p.projector = PROJECTION_PATHS;
	w.p.iterations = 1;
	expected = image_of(&w, PET_FACTORS_TOF, true, NULL);
	w.plan = pet_plan_of(&w.p, &w.m, PET_FACTORS_TOF, true, w.dev);
	work_open(&w, PET_FACTORS_TOF);
	for (int role = PET_DATA; role <= PET_BACKGROUND; role++)
		for (int first = (n - 1) / 17 * 17; first >= 0; first -= 17)
			put(&w, role, first, n - first < 17 ? n - first : 17);
	assert_error(pet_put(w.s, PET_DATA, n - 1, 2, w.data[1], &err), &err, EINVAL, "planes 174 to 175 of 175");
	assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
	found = take_memory(pet_voxels(&w.plan) * sizeof(*found));
	assert_int_equal(pet_read_slices(w.s, 0, w.plan.grid.n[2], found, NULL), 0);
	assert_memory_equal(found, expected, pet_voxels(&w.plan) * sizeof(*found));
	work_open(&w, PET_FACTORS_SHARED);
	bad = -1;
	memcpy(&w.data[PET_DATA][(size_t)(3 * PLANES + 4) * w.plane_bins + 49 + 6], &bad, sizeof(bad));
	assert_error(pet_put(w.s, PET_DATA, 0, n, w.data[PET_DATA], &err), &err, EINVAL,
		     "data of TOF bin 3, plane 4, angle 1, radial bin 6: -1");
	assert_error(pet_put(w.s, PET_FACTORS, 0, PLANES + 1, w.data[PET_FACTORS], &err), &err, EINVAL, "planes 0 to 25 of 25");
	w.m.tof.n = 0;
	assert_error(pet_plan(&w.p, &w.m, PET_FACTORS_TOF, true, w.dev, &w.plan, &err), &err, EINVAL,
		     "factors for each TOF bin, but data without time of flight");
	w.m.tof.n = fine.n;
}

static bool is_cached(struct work *w, enum pet_factors which)
{
	struct pet_report report;

	image_of(w, which, false, &report);
	return report.sensitivity_cached;
}

/* Sensitivity images depend on the TOF bins and on the kind of factors. */
TEST(cache)
{
	struct work w;

	work_make_tof(&w, FIXTURE_CPU, fine);
	w.p.projector = PROJECTION_PATHS;
	w.p.iterations = 1;
	w.cache = cache_of(w.dev, PET_CACHE_BYTES);
	assert_false(is_cached(&w, PET_FACTORS_SHARED));
	assert_true(is_cached(&w, PET_FACTORS_SHARED));
	assert_false(is_cached(&w, PET_FACTORS_TOF));
	assert_false(is_cached(&w, PET_FACTORS_NONE));
	w.m.tof.sigma = 11;
	assert_false(is_cached(&w, PET_FACTORS_SHARED));
	w.m.tof.width = 21;
	assert_false(is_cached(&w, PET_FACTORS_SHARED));
	assert_true(is_cached(&w, PET_FACTORS_SHARED));
}

/* Siemens Biograph Vision Quadra: 520 x 50 x 11559 x 33 bins. */
TEST(long_scanner)
{
	static const double bins = 520.0 * 50 * 11559 * 33;
	struct michelogram_segment segments[35] = {{-9, 9, 2 * 323 - 1}};
	struct michelogram m = {.scanner = {323, 798, 3.29114, 410, 7, 1.6},
				.n_radial = 520,
				.n_angles = 50,
				.n_segments = 35,
				.segments = segments,
				.tof = {33, 21.47, 13.62}};
	struct pet_protocol p = {.algorithm = ALGORITHM_OSEM,
				 .iterations = 4,
				 .subsets = 5,
				 .matrix = 440,
				 .voxel = 1.65,
				 .projector = PROJECTION_PATHS,
				 .memory_limit = (size_t)30e9};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;

	dev->memory = (size_t)128e9;
	for (int i = 1; i < 35; i++) {
		int pair = (i - 1) / 2, first = 10 + 19 * pair, last = first + 18 < 322 ? first + 18 : 322;

		segments[i] = (struct michelogram_segment){i % 2 ? first : -last, i % 2 ? last : -first, 2 * (323 - first) - 1};
	}
	assert_int_equal(michelogram_planes(&m), 11559);
	plan = pet_plan_of(&p, &m, PET_FACTORS_SHARED, true, dev);
	print_message("%d angles at a time, %.2f GB on the device (%.2f volumes, %.2f data, %.2f tables), %.2f GB on the host\n",
		      plan.group_views, (double)plan.bytes.total / 1e9, (double)plan.bytes.volumes / 1e9,
		      (double)plan.bytes.data / 1e9, (double)plan.bytes.tables / 1e9, (double)plan.bytes.host / 1e9);
	assert_true(plan.bytes.total <= p.memory_limit);
	assert_in_range(plan.group_views, 1, 9);
	/* y and b of two groups, the line integrals of one */
	assert_int_equal(plan.bytes.data, 4 * ((size_t)520 * 11559 * 33) * 5 * (size_t)plan.group_views);
	/* y and b, shared factors, and volumes: the result and the sensitivity of each subset */
	assert_near((double)plan.bytes.host, 4 * bins * (2 + 1 / 33.0) + 6 * 4 * 440.0 * 440 * 648, 1e6);
}
