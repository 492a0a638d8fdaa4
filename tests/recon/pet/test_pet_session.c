/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour of a PET session: planes in any order from several threads, invalid calls, the cache of sensitivity images,
 * cancelling. Memory and its limit: test_pet_memory.c; failing devices: test_pet_faults.c. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/recon/pet/pet_work_fixture.h"
#include "tests/test.h"

static void session_open(struct work *w)
{
	w->plan = pet_plan_of(&w->p, &w->m, true, true, w->dev);
	work_open(w, PET_FACTORS_SHARED);
}

static int put(struct work *w, int role, int first, int n, struct err *err)
{
	return pet_put(w->s, role, first, n, w->data[role] + (size_t)first * w->plane_bins, err);
}

static void put_all(struct work *w)
{
	for (int role = PET_DATA; role <= PET_BACKGROUND; role++)
		assert_int_equal(put(w, role, 0, PLANES, NULL), 0);
}

static float *result(struct work *w)
{
	float *x = take_memory(pet_voxels(&w->plan) * sizeof(*x));

	assert_int_equal(pet_read_slices(w->s, 0, w->plan.grid.n[2], x, NULL), 0);
	return x;
}

struct crowd {
	struct work *w;
	int order[3 * PLANES];
	atomic_int next, failed;
};

static void *put_planes(void *arg)
{
	struct crowd *c = arg;
	int i;

	while ((i = atomic_fetch_add(&c->next, 1)) < 3 * PLANES)
		if (put(c->w, 1 + c->order[i] / PLANES, c->order[i] % PLANES, 1, NULL) < 0)
			atomic_fetch_add(&c->failed, 1);
	return NULL;
}

/* The result is bitwise equal for any order of planes and any number of threads. */
TEST(any_order_from_threads)
{
	struct work w;
	float *expected, *found;
	uint32_t seed = 4;

	work_make(&w, FIXTURE_POISON);
	expected = image(&w, NULL);
	for (int round = 0; round < 4; round++) {
		struct crowd c = {.w = &w};
		pthread_t thread[4];

		session_open(&w);
		for (int i = 0; i < 3 * PLANES; i++) {
			int j = (int)(fixture_random(&seed) * (float)(i + 1));

			c.order[i] = c.order[j];
			c.order[j] = i;
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, put_planes, &c), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(c.failed, 0);
		assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
		found = result(&w);
		assert_memory_equal(found, expected, pet_voxels(&w.plan) * sizeof(*found));
	}
}

TEST(refusals)
{
	struct pet_session *s = NULL;
	struct err err = {0};
	struct work w;
	float *x;

	work_make(&w, FIXTURE_POISON);
	session_open(&w);
	x = take_memory(pet_voxels(&w.plan) * sizeof(*x));
	assert_error(pet_put(w.s, 4, 0, 1, w.data[1], &err), &err, EINVAL, "role 4 was not announced");
	assert_error(pet_put(w.s, PET_DATA, -1, 1, w.data[1], &err), &err, EINVAL, "planes -1 to -1 of 25");
	assert_error(pet_put(w.s, PET_DATA, 0, 0, w.data[1], &err), &err, EINVAL, "planes 0 to -1 of 25");
	assert_error(pet_put(w.s, PET_DATA, 20, 6, w.data[1], &err), &err, EINVAL, "planes 20 to 25 of 25");
	assert_int_equal(put(&w, PET_DATA, 3, 7, NULL), 0);
	assert_error(put(&w, PET_DATA, 9, 2, &err), &err, EINVAL, "data of plane 9 were already received");
	assert_error(put(&w, PET_DATA, 0, 4, &err), &err, EINVAL, "data of plane 3 were already received");
	assert_error(pet_run(w.s, NULL, NULL, &err), &err, EINVAL, "data of only 7 of 25 planes have been received");
	assert_int_equal(put(&w, PET_DATA, 10, 15, NULL), 0);
	assert_int_equal(put(&w, PET_DATA, 0, 3, NULL), 0);
	assert_int_equal(put(&w, PET_BACKGROUND, 0, PLANES, NULL), 0);
	assert_int_equal(put(&w, PET_FACTORS, 0, PLANES - 1, NULL), 0);
	assert_error(pet_run(w.s, NULL, NULL, &err), &err, EINVAL, "factors of only 24 of 25 planes have been received");
	assert_error(pet_read_slices(w.s, 0, 1, x, &err), &err, EINVAL, "before pet_run()");
	assert_int_equal(put(&w, PET_FACTORS, PLANES - 1, 1, NULL), 0);
	assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
	assert_error(pet_run(w.s, NULL, NULL, &err), &err, EINVAL, "pet_run() was already called");
	assert_error(put(&w, PET_DATA, 0, 1, &err), &err, EINVAL, "planes 0 to 0 of 25 after pet_run()");
	assert_error(pet_read_slices(w.s, -1, 1, x, &err), &err, EINVAL, "slices -1 to -1 of 11");
	assert_error(pet_read_slices(w.s, 10, 2, x, &err), &err, EINVAL, "slices 10 to 11 of 11");
	for (int k = PET_SLICES - 1; k >= 0; k--) { /* in descending order, one by one */
		float *whole = result(&w);
		size_t slice = (size_t)PET_MATRIX * PET_MATRIX;

		assert_int_equal(pet_read_slices(w.s, k, 1, x, NULL), 0);
		assert_memory_equal(x, whole + (size_t)k * slice, slice * sizeof(*x));
	}
	/* a role that was not announced to pet_open() */
	w.plan = pet_plan_of(&w.p, &w.m, false, false, w.dev);
	assert_int_equal(pet_open(&w.p, &w.plan, &w.m, false, false, w.dev, NULL, &s, NULL), 0);
	assert_error(pet_put(s, PET_FACTORS, 0, 1, w.data[1], &err), &err, EINVAL, "factors was not announced");
	pet_close(s);
	w.plan.subsets = 3;
	assert_error(pet_open(&w.p, &w.plan, &w.m, false, false, w.dev, NULL, &s, &err), &err, EINVAL,
		     "the plan is for 3 subsets");
}

/* An invalid bin is refused with its position; then pet_put() accepts the same planes with valid data. */
TEST(bad_bins)
{
	static const struct {
		float value;
		const char *text;
	} bad[] = {{-0.5f, "-0.5"}, {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
	static const char *const names[] = {"", "data", "factors", "background"};
	struct work w;
	float *found, *expected;

	work_make(&w, FIXTURE_POISON);
	expected = image(&w, NULL);
	session_open(&w);
	for (int role = PET_DATA; role <= PET_BACKGROUND; role++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			size_t plane = 4 + i, angle = 39 - i, t = 48 * (i % 2), at = (plane * 40 + angle) * 49 + t;
			float kept = w.data[role][at];
			struct err err = {0};
			char words[160];

			w.data[role][at] = bad[i].value;
			w.data[role][w.bins - 1] = -1; /* the message contains the first one */
			snprintf(words, sizeof(words),
				 "sinogram: %s of plane %zu, angle %zu, radial bin %zu: %s; allowed: finite, not negative",
				 names[role], plane, angle, t, bad[i].text);
			assert_error(put(&w, role, 2, PLANES - 2, &err), &err, EINVAL, words);
			w.data[role][at] = kept;
			w.data[role][w.bins - 1] = 2;
		}
		w.data[role][w.bins - 1] = expected ? w.data[role][w.bins - 2] : 0;
	}
	expected = image(&w, NULL);
	put_all(&w);
	assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
	found = result(&w);
	assert_memory_equal(found, expected, pet_voxels(&w.plan) * sizeof(*found));
}

TEST(no_counts)
{
	for (int algorithm = ALGORITHM_MLEM; algorithm <= ALGORITHM_BSREM; algorithm++)
		for (int role = PET_DATA; role <= PET_FACTORS; role++) {
			struct err err = {0};
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = algorithm;
			memset(w.data[role], 0, w.bins * sizeof(float));
			session_open(&w);
			put_all(&w);
			assert_int_equal(pet_run(w.s, NULL, NULL, &err), role == PET_DATA ? -EDOM : -EBADMSG);
			assert_non_null(strstr(err.msg, role == PET_DATA ? "no counts" : "all factors are 0"));
			assert_error(pet_read_slices(w.s, 0, 1, w.data[1], &err), &err, EINVAL, "before pet_run()");
		}
}

TEST(plan_refusals)
{
	static const struct {
		size_t at; /* offset of the key in struct pet_protocol */
		double value;
		const char *words;
	} bad[] = {
		{offsetof(struct pet_protocol, voxel), -1, "voxel=-1; allowed: a number from 0.1 to 100 mm; 0: "},
		{offsetof(struct pet_protocol, voxel), NAN, "voxel=nan"},
		{offsetof(struct pet_protocol, slice), 0.001, "slice_spacing=0.001; allowed"},
		{offsetof(struct pet_protocol, fov_radius), 124, "fov_radius=124 mm; allowed: more than 0, up to 122.5"},
		{offsetof(struct pet_protocol, fov_radius), NAN, "fov_radius=nan"},
		{offsetof(struct pet_protocol, postfilter), 51, "postfilter=51; allowed"},
		{offsetof(struct pet_protocol, psf), -3, "psf=-3; allowed"},
		{offsetof(struct pet_protocol, prior_weight), -1, "prior_weight=-1; allowed"},
		{offsetof(struct pet_protocol, prior_gamma), NAN, "prior_gamma=nan"},
		{offsetof(struct pet_protocol, relaxation), -1, "relaxation=-1"},
	};
	struct work w;
	struct pet_plan plan;
	struct err err = {0};

	work_make(&w, FIXTURE_CPU);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pet_protocol p = w.p;

		p.algorithm = ALGORITHM_BSREM;
		p.prior_weight = 1;
		memcpy((char *)&p + bad[i].at, &bad[i].value, sizeof(double));
		assert_error(pet_plan(&p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL, bad[i].words);
	}
	w.p.algorithm = ALGORITHM_COUNT;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL, "; allowed: fbp, mlem, osem, bsrem");
	w.p.algorithm = ALGORITHM_OSEM;
	w.p.subsets = 41;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL,
		     "subsets=41; allowed: a whole number from 1 to 40 (all angles)");
	w.p.subsets = 5;
	w.p.iterations = 0;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL, "iterations=0; allowed");
	w.p.iterations = 1;
	w.p.matrix = 1;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL, "matrix=1; allowed");
	w.p.matrix = 0;
	w.p.projector = PROJECTION_SLICES;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL,
		     "projector=2; allowed: siddon, joseph, exact");
	w.p.algorithm = ALGORITHM_FBP;
	w.p.filter_cut = 0;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL, "filter_cut=0; allowed");
	w.p.filter_cut = 1;
	w.p.slice = 2;
	assert_error(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, EINVAL,
		     "slice=2 mm; fbp computes a plane every 3 mm");
}

/* Defaults for the GE Discovery STE: 256 x 256 x 47 voxels over 700 mm. */
TEST(defaults)
{
	struct michelogram m = {
		.scanner = {24, 560, 6.54, 443.1, 8.4, 2.397}, .n_radial = 329, .n_angles = 280, .arc_corrected = true};
	struct pet_protocol p = {.algorithm = ALGORITHM_MLEM, .iterations = 40, .projector = PROJECTION_EXACT};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;

	fixture_segments(&m, 2, 23);
	plan = pet_plan_of(&p, &m, false, false, dev);
	assert_int_equal(plan.grid.n[0], 256);
	assert_int_equal(plan.grid.n[1], 256);
	assert_int_equal(plan.grid.n[2], 47);
	assert_true(plan.grid.z_fastest);
	assert_near(plan.fov_radius, 350, 1e-9);
	assert_near(plan.grid.h[0], 700.0 / 256, 1e-9);
	assert_near(plan.grid.h[2], 3.27, 1e-9);
	for (int c = 0; c < 3; c++)
		assert_near(plan.grid.lo[c], -0.5 * plan.grid.n[c] * plan.grid.h[c], 1e-9);
	/* x, num, a sensitivity image; data, line integrals */
	assert_int_equal(plan.bytes.volumes, 3 * sizeof(float) * 256 * 256 * 48);
	assert_int_equal(plan.bytes.data, 2 * sizeof(float) * 553 * 280 * 329);
}

/* Run a protocol with `fov_radius`; return whether its sensitivity images were in the cache. */
static bool is_cached(struct work *w, double fov_radius)
{
	struct pet_report report;

	w->p.fov_radius = fov_radius;
	image(w, &report);
	return report.sensitivity_cached;
}

/* Without a cache no image is stored; caches share no images; a cache is refused with another device. */
TEST(caches_are_independent)
{
	struct pet_cache *caches[2];
	struct err err = {0};
	struct work w, other;

	work_make(&w, FIXTURE_CPU);
	work_make(&other, FIXTURE_CPU);
	assert_false(is_cached(&w, PET_FOV));
	assert_false(is_cached(&w, PET_FOV));
	caches[1] = cache_of(w.dev, PET_CACHE_BYTES);
	caches[0] = pet_cache_create(w.dev, PET_CACHE_BYTES);
	for (int i = 0; i < 2; i++) {
		w.cache = caches[i];
		assert_false(is_cached(&w, PET_FOV));
		assert_true(is_cached(&w, PET_FOV));
	}
	pet_cache_free(caches[0]);
	assert_true(is_cached(&w, PET_FOV)); /* still in the second cache */
	other.plan = pet_plan_of(&other.p, &other.m, true, true, other.dev);
	assert_error(pet_open(&other.p, &other.plan, &other.m, true, true, other.dev, w.cache, &other.s, &err), &err, EINVAL,
		     "sensitivity images are of device");
}

/* A cache for the images of two protocols: those of a third one replace the least recently used. */
TEST(cache_has_a_limit)
{
	struct pet_plan plan;
	struct work w;

	work_make(&w, FIXTURE_CPU);
	plan = pet_plan_of(&w.p, &w.m, true, true, w.dev);
	w.cache = cache_of(w.dev, 2 * grid_size(&plan.grid) * sizeof(float) * (size_t)plan.subsets);
	assert_false(is_cached(&w, 79));
	assert_false(is_cached(&w, 78));
	assert_true(is_cached(&w, 79));
	assert_false(is_cached(&w, 77)); /* this removes 78 */
	assert_true(is_cached(&w, 79));
	assert_false(is_cached(&w, 78));
}

/* Values under a key of their own: found as they were stored, each under its key; one that is larger than half of the cache is
 * not stored, and one whose content has changed is not used again. */
TEST(values_are_kept_whole)
{
	static const unsigned char one[PET_CACHE_KEY] = {1}, two[PET_CACHE_KEY] = {[PET_CACHE_KEY - 1] = 1};
	static const float values[25] = {1, 2, 3};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_cache *c = cache_of(dev, 96);
	size_t bytes;
	void *found;

	assert_null(pet_cache_value(c, one, &bytes));
	pet_cache_keep(c, one, values, 12);
	pet_cache_keep(c, two, values + 1, 8);
	assert_memory_equal(pet_cache_value(c, one, &bytes), values, 12);
	assert_int_equal(bytes, 12);
	found = (void *)pet_cache_value(c, two, &bytes);
	assert_memory_equal(found, values + 1, 8);
	pet_cache_keep(c, (const unsigned char[PET_CACHE_KEY]){3}, values, 52);
	assert_null(pet_cache_value(c, (const unsigned char[PET_CACHE_KEY]){3}, &bytes));
	assert_int_equal(pet_cache_damaged(c), 0);
	((unsigned char *)found)[5] ^= 1;
	assert_null(pet_cache_value(c, two, &bytes));
	assert_int_equal(pet_cache_damaged(c), 1);
	assert_null(pet_cache_value(c, two, &bytes));
	assert_int_equal(pet_cache_damaged(c), 0);
	assert_non_null(pet_cache_value(c, one, &bytes));
	pet_cache_keep(NULL, one, values, 12);
	assert_null(pet_cache_value(NULL, one, &bytes));
	pet_cache_keep(c, two, values, 8);
	for (int i = 0; i < 4; i++) { /* a newer value replaces the older one, and takes no further memory: `two` stays */
		pet_cache_keep(c, one, values + i, i < 3 ? 40 : 20);
		assert_memory_equal(pet_cache_value(c, one, &bytes), values + i, 20);
		assert_int_equal(bytes, i < 3 ? 40 : 20);
	}
	assert_non_null(pet_cache_value(c, two, &bytes));
}

/* Sensitivity images are computed once for the same geometry and factors; the result is the same with and without the cache. */
TEST(sensitivity_is_cached)
{
	for (int algorithm = ALGORITHM_MLEM; algorithm <= ALGORITHM_BSREM; algorithm++)
		for (int streamed = 0; streamed < 2; streamed++) {
			TEST_BLOCK;
			struct pet_report report;
			struct pet_plan plan;
			float *x[5];
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = algorithm;
			plan = pet_plan_of(&w.p, &w.m, true, true, w.dev);
			w.p.memory_limit = streamed ? plan.bytes.total - 1 : 0;
			w.cache = cache_of(w.dev, PET_CACHE_BYTES);
			x[0] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			x[1] = image(&w, &report);
			assert_true(report.sensitivity_cached);
			assert_memory_equal(x[0], x[1], pet_voxels(&plan) * sizeof(float));
			w.data[PET_FACTORS][1234] *= 1.001f; /* change one bin */
			x[2] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			w.p.fov_radius = 79; /* another geometry */
			x[3] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			w.p.fov_radius = PET_FOV;
			w.data[PET_FACTORS][1234] /= 1.001f;
			w.cache = cache_of(w.dev, PET_CACHE_BYTES);
			x[4] = image(&w, &report);
			assert_false(report.sensitivity_cached);
		}
}

static bool stop(void *ctx)
{
	return --*(int *)ctx < 0;
}

/* The monitor is called before every step; a cancelled session has no result. */
TEST(cancel)
{
	for (int streamed = 0; streamed < 2; streamed++)
		for (int after = 0; after <= 10; after += 5) { /* OSEM, 2 passes of 5 subsets */
			int left = after, r;
			struct monitor monitor = {&left, NULL, stop};
			struct err err = {0};
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = ALGORITHM_OSEM;
			if (streamed)
				w.p.memory_limit = pet_plan_of(&w.p, &w.m, true, true, w.dev).bytes.total - 1;
			session_open(&w);
			put_all(&w);
			r = pet_run(w.s, &monitor, NULL, &err);
			assert_int_equal(r, after < 10 ? -ECANCELED : 0);
			if (r < 0) {
				assert_non_null(strstr(err.msg, "cancelled"));
				assert_error(pet_read_slices(w.s, 0, 1, w.data[1], &err), &err, EINVAL, "before pet_run()");
			} else {
				assert_int_equal(pet_read_slices(w.s, 0, 1, w.data[1], NULL), 0);
			}
		}
}
