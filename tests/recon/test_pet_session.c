/* A PET session's manners: planes in any order from several threads, what it refuses, memory and its limit, groups of angles,
 * sensitivity images that are kept, cancelling, devices that fail. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/recon/pet_fixture.h"

#define PLANES 25

/* What every test here works with: data, factors and background. */
struct work {
	struct michelogram m;
	struct pet_protocol p;
	struct device *dev;
	struct pet_plan plan;
	struct pet_session *s;
	size_t bins, plane_bins;
	float *data[PET_BACKGROUND + 1];
};

static void work_make(struct work *w, int device)
{
	static const struct shape shapes[] = {
		{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {65, 65, 200}, 1},
		{SHAPE_ELLIPSOID, ROLE_LESION, {30, -15, 6}, {14, 14, 10}, 20},
	};

	*w = (struct work){.m = pet_scanner_small(true), .p = pet_protocol_small, .dev = fixture_device(device, 2)};
	w->p.iterations = 2;
	w->bins = michelogram_size(&w->m);
	w->plane_bins = w->bins / PLANES;
	assert_int_equal(michelogram_planes(&w->m), PLANES);
	w->data[PET_DATA] = pet_lines(&w->m, shapes, 2);
	w->data[PET_FACTORS] = fixture_floats(w->bins, 1, 0.2f, 1);
	w->data[PET_BACKGROUND] = fixture_floats(w->bins, 2, 1, 3);
	for (size_t i = 0; i < w->bins; i++)
		w->data[PET_DATA][i] = w->data[PET_DATA][i] * w->data[PET_FACTORS][i] + w->data[PET_BACKGROUND][i];
}

static void session_open(struct work *w)
{
	w->plan = pet_plan_of(&w->p, &w->m, true, true, w->dev);
	assert_int_equal(pet_open(&w->p, &w->plan, &w->m, true, true, w->dev, &w->s, NULL), 0);
}

static void work_close(struct work *w)
{
	pet_close(w->s);
	pet_forget(w->dev);
	device_close(w->dev);
	for (int role = 0; role <= PET_BACKGROUND; role++)
		free(w->data[role]);
	free(w->m.segments);
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
	float *x = malloc(pet_voxels(&w->plan) * sizeof(*x));

	assert_non_null(x);
	assert_int_equal(pet_read_slices(w->s, 0, w->plan.grid.n[2], x, NULL), 0);
	return x;
}

static float *image(struct work *w, struct pet_report *ret_report)
{
	return pet_image(&w->p, &w->m, w->dev, w->data[PET_DATA], w->data[PET_FACTORS], w->data[PET_BACKGROUND], ret_report);
}

struct crowd {
	struct work *w;
	int order[3 * PLANES];
	atomic_int next, failed;
};

static void *bring_planes(void *arg)
{
	struct crowd *c = arg;
	int i;

	while ((i = atomic_fetch_add(&c->next, 1)) < 3 * PLANES)
		if (put(c->w, 1 + c->order[i] / PLANES, c->order[i] % PLANES, 1, NULL) < 0)
			atomic_fetch_add(&c->failed, 1);
	return NULL;
}

/* The same bits, whatever the order and the threads. */
static void any_order_from_threads(void **state)
{
	struct work w;
	float *expected, *found;
	uint32_t seed = 4;

	(void)state;
	work_make(&w, FIXTURE_POISON);
	expected = image(&w, NULL);
	for (int round = 0; round < 4; round++) {
		struct crowd c = {.w = &w};
		pthread_t thread[4];

		pet_forget(w.dev);
		session_open(&w);
		for (int i = 0; i < 3 * PLANES; i++) {
			int j = (int)(fixture_random(&seed) * (float)(i + 1));

			c.order[i] = c.order[j];
			c.order[j] = i;
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, bring_planes, &c), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(c.failed, 0);
		assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
		found = result(&w);
		assert_memory_equal(found, expected, pet_voxels(&w.plan) * sizeof(*found));
		free(found);
		w.s = pet_close(w.s);
	}
	assert_int_equal(device_poison_check(w.dev, NULL), 0);
	free(expected);
	work_close(&w);
}

static void refused(int r, const struct err *err, const char *words)
{
	assert_int_equal(r, -EINVAL);
	if (!strstr(err->msg, words))
		print_error("'%s' does not say '%s'\n", err->msg, words);
	assert_non_null(strstr(err->msg, words));
}

static void refusals(void **state)
{
	struct pet_session *s = NULL;
	struct err err = {0};
	struct work w;
	float *x;

	(void)state;
	work_make(&w, FIXTURE_POISON);
	session_open(&w);
	x = malloc(pet_voxels(&w.plan) * sizeof(*x));
	assert_non_null(x);
	refused(pet_put(w.s, 4, 0, 1, w.data[1], &err), &err, "role 4 was not announced");
	refused(pet_put(w.s, PET_DATA, -1, 1, w.data[1], &err), &err, "planes -1 to -1 of 25");
	refused(pet_put(w.s, PET_DATA, 0, 0, w.data[1], &err), &err, "planes 0 to -1 of 25");
	refused(pet_put(w.s, PET_DATA, 20, 6, w.data[1], &err), &err, "planes 20 to 25 of 25");
	assert_int_equal(put(&w, PET_DATA, 3, 7, NULL), 0);
	refused(put(&w, PET_DATA, 9, 2, &err), &err, "data of plane 9 are here already");
	refused(put(&w, PET_DATA, 0, 4, &err), &err, "data of plane 3 are here already");
	refused(pet_run(w.s, NULL, NULL, &err), &err, "data of 7 of 25 planes are here");
	assert_int_equal(put(&w, PET_DATA, 10, 15, NULL), 0);
	assert_int_equal(put(&w, PET_DATA, 0, 3, NULL), 0);
	assert_int_equal(put(&w, PET_BACKGROUND, 0, PLANES, NULL), 0);
	assert_int_equal(put(&w, PET_FACTORS, 0, PLANES - 1, NULL), 0);
	refused(pet_run(w.s, NULL, NULL, &err), &err, "factors of 24 of 25 planes are here");
	refused(pet_read_slices(w.s, 0, 1, x, &err), &err, "before it was run");
	assert_int_equal(put(&w, PET_FACTORS, PLANES - 1, 1, NULL), 0);
	assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
	refused(pet_run(w.s, NULL, NULL, &err), &err, "has been run");
	refused(put(&w, PET_DATA, 0, 1, &err), &err, "planes 0 to 0 of 25 after the run");
	refused(pet_read_slices(w.s, -1, 1, x, &err), &err, "slices -1 to -1 of 11");
	refused(pet_read_slices(w.s, 10, 2, x, &err), &err, "slices 10 to 11 of 11");
	for (int k = PET_SLICES - 1; k >= 0; k--) { /* backwards, one by one */
		float *whole = result(&w);
		size_t slice = (size_t)PET_MATRIX * PET_MATRIX;

		assert_int_equal(pet_read_slices(w.s, k, 1, x, NULL), 0);
		assert_memory_equal(x, whole + (size_t)k * slice, slice * sizeof(*x));
		free(whole);
	}
	free(x);
	/* a role that was not announced */
	w.plan = pet_plan_of(&w.p, &w.m, false, false, w.dev);
	assert_int_equal(pet_open(&w.p, &w.plan, &w.m, false, false, w.dev, &s, NULL), 0);
	refused(pet_put(s, PET_FACTORS, 0, 1, w.data[1], &err), &err, "factors was not announced");
	pet_close(s);
	w.plan.subsets = 3;
	refused(pet_open(&w.p, &w.plan, &w.m, false, false, w.dev, &s, &err), &err, "the plan is for 3 subsets");
	work_close(&w);
}

/* A bin that is no count is named, and the planes can be put again. */
static void bad_bins(void **state)
{
	static const struct {
		float value;
		const char *text;
	} bad[] = {{-0.5f, "-0.5"}, {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
	static const char *const names[] = {"", "data", "factors", "background"};
	struct work w;
	float *found, *expected;

	(void)state;
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
			w.data[role][w.bins - 1] = -1; /* the first one is named */
			snprintf(words, sizeof(words),
				 "sinogram: %s of plane %zu, angle %zu, radial bin %zu: %s; allowed: finite, not negative",
				 names[role], plane, angle, t, bad[i].text);
			refused(put(&w, role, 2, PLANES - 2, &err), &err, words);
			w.data[role][at] = kept;
			w.data[role][w.bins - 1] = 2;
		}
		w.data[role][w.bins - 1] = expected ? w.data[role][w.bins - 2] : 0;
	}
	free(expected);
	expected = image(&w, NULL);
	put_all(&w);
	assert_int_equal(pet_run(w.s, NULL, NULL, NULL), 0);
	found = result(&w);
	assert_memory_equal(found, expected, pet_voxels(&w.plan) * sizeof(*found));
	free(found);
	free(expected);
	work_close(&w);
}

static void nothing_there(void **state)
{
	(void)state;
	for (int algorithm = PET_MLEM; algorithm <= PET_BSREM; algorithm++)
		for (int role = PET_DATA; role <= PET_FACTORS; role++) {
			struct err err = {0};
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = algorithm;
			memset(w.data[role], 0, w.bins * sizeof(float));
			session_open(&w);
			put_all(&w);
			assert_int_equal(pet_run(w.s, NULL, NULL, &err), -EDOM);
			assert_non_null(strstr(err.msg, role == PET_DATA ? "no counts" : "all factors are 0"));
			refused(pet_read_slices(w.s, 0, 1, w.data[1], &err), &err, "before it was run");
			work_close(&w);
		}
}

static void plan_refusals(void **state)
{
	static const struct {
		size_t at; /* of the key in the protocol */
		double value;
		const char *words;
	} bad[] = {
		{offsetof(struct pet_protocol, voxel), -1, "voxel=-1; allowed: 0"},
		{offsetof(struct pet_protocol, voxel), NAN, "voxel=nan"},
		{offsetof(struct pet_protocol, slice), 0.001, "slice=0.001; allowed: 0"},
		{offsetof(struct pet_protocol, fov_radius), 124, "fov_radius=124 mm; allowed: more than 0, up to 122.5"},
		{offsetof(struct pet_protocol, fov_radius), NAN, "fov_radius=nan"},
		{offsetof(struct pet_protocol, postfilter), 51, "postfilter=51; allowed: 0 (none) to 50 mm"},
		{offsetof(struct pet_protocol, psf), -3, "psf=-3; allowed"},
		{offsetof(struct pet_protocol, prior_weight), -1, "prior_weight=-1; allowed: 0 to 1e6"},
		{offsetof(struct pet_protocol, prior_gamma), NAN, "prior_gamma=nan"},
		{offsetof(struct pet_protocol, relaxation), -1, "relaxation=-1"},
	};
	struct work w;
	struct pet_plan plan;
	struct err err = {0};

	(void)state;
	work_make(&w, FIXTURE_CPU);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pet_protocol p = w.p;

		p.algorithm = PET_BSREM;
		memcpy((char *)&p + bad[i].at, &bad[i].value, sizeof(double));
		refused(pet_plan(&p, &w.m, false, false, w.dev, &plan, &err), &err, bad[i].words);
	}
	w.p.algorithm = 9;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "algorithm=9; allowed: mlem, osem, bsrem, fbp");
	w.p.algorithm = PET_OSEM;
	w.p.subsets = 41;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "subsets=41; allowed: 1 to 40");
	w.p.subsets = 5;
	w.p.iterations = 0;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "iterations=0; allowed: 1 to 1000");
	w.p.iterations = 1;
	w.p.matrix = 1;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "matrix=1; allowed");
	w.p.matrix = 0;
	w.p.projector = PROJECTION_SLICES;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "projector=2; allowed: paths, joseph, exact");
	w.p.algorithm = PET_FBP;
	w.p.filter_cut = 0;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "filter_cut=0; allowed");
	w.p.filter_cut = 1;
	w.p.slice = 2;
	refused(pet_plan(&w.p, &w.m, false, false, w.dev, &plan, &err), &err, "slice=2 mm; fbp has a plane every 3 mm");
	work_close(&w);
}

/* The seed's scanner with nothing said: 256 x 256 x 47 voxels over 700 mm. */
static void defaults(void **state)
{
	struct michelogram m = {
		.scanner = {24, 560, 6.54, 443.1, 8.4, 2.397}, .n_radial = 329, .n_angles = 280, .arc_corrected = true};
	struct pet_protocol p = {.algorithm = PET_MLEM, .iterations = 40, .projector = PROJECTION_EXACT};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;

	(void)state;
	assert_int_equal(michelogram_segments(24, 2, 23, &m.segments, &m.n_segments, NULL), 0);
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
	/* x, num and a sensitivity image; data and line integrals */
	assert_int_equal(plan.bytes_volume, 3 * sizeof(float) * 256 * 256 * 48);
	assert_int_equal(plan.bytes_data, 2 * sizeof(float) * 553 * 280 * 329);
	free(m.segments);
	device_close(dev);
}

/* A device that counts. */
static struct {
	const struct device_ops *ops;
	size_t floats, most; /* of vectors */
	int tables, most_tables;
	size_t host;
} meter;

static int metered_alloc(struct device *dev, size_t n, struct buf *ret, struct err *err)
{
	meter.floats += n;
	meter.most = meter.floats > meter.most ? meter.floats : meter.most;
	return meter.ops->alloc(dev, n, ret, err);
}

static void metered_release(struct buf *b)
{
	meter.floats -= b->n;
	meter.ops->release(b);
}

static int metered_host_alloc(struct device *dev, size_t bytes, void **ret, struct err *err)
{
	meter.host += bytes;
	return meter.ops->host_alloc(dev, bytes, ret, err);
}

static int metered_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	meter.tables++;
	meter.most_tables = meter.tables > meter.most_tables ? meter.tables : meter.most_tables;
	return meter.ops->projection_create(dev, spec, ret, err);
}

static void metered_free(struct projection *a)
{
	meter.tables -= a != NULL;
	meter.ops->projection_free(a);
}

/* Tables of a size that matters, which no CPU device would tell. */
static size_t metered_bytes(struct device *dev, const struct projection_spec *spec)
{
	(void)dev;
	return (size_t)spec->n_views * 40000;
}

/* Under every limit down to where it is refused: the image of the resident run, in the memory that was announced. */
static void limits(void **state)
{
	static const struct {
		enum pet_algorithm algorithm;
		double prior_weight, psf, postfilter;
	} ways[] = {{PET_MLEM, 0, 0, 0}, {PET_OSEM, 0, 0, 6},	 {PET_BSREM, 0, 0, 0},
		    {PET_MLEM, 0, 8, 0}, {PET_BSREM, 0.1, 8, 0}, {PET_FBP, 0, 0, 5}};
	int grouped = 0, anew = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pet_report report;
		struct err err = {0};
		struct work w;
		size_t whole, all;
		float *expected;

		work_make(&w, FIXTURE_POISON);
		w.p.algorithm = ways[i].algorithm;
		w.p.prior_weight = ways[i].prior_weight;
		w.p.psf = ways[i].psf;
		w.p.postfilter = ways[i].postfilter;
		expected = image(&w, &report);
		pet_forget(w.dev);
		meter.ops = w.dev->ops;
		{
			struct device_ops metered = *w.dev->ops;

			metered.alloc = metered_alloc;
			metered.release = metered_release;
			metered.host_alloc = metered_host_alloc;
			metered.projection_create = metered_create;
			metered.projection_free = metered_free;
			metered.projection_bytes = metered_bytes;
			w.dev->ops = &metered;
			all = whole = pet_plan_of(&w.p, &w.m, true, true, w.dev).bytes_total;
			for (size_t limit = whole;; limit = whole - 1) {
				struct pet_plan plan;
				struct pet_report found_report;
				float *x;
				int r;

				w.p.memory_limit = limit;
				r = pet_plan(&w.p, &w.m, true, true, w.dev, &plan, &err);
				if (r < 0) {
					assert_int_equal(r, -ENOMEM);
					assert_non_null(strstr(err.msg, "with one angle at a time"));
					break;
				}
				assert_true(plan.bytes_total <= limit);
				assert_int_equal(plan.bytes_total, plan.bytes_volume + plan.bytes_data + plan.bytes_projection);
				whole = plan.bytes_total;
				if (limit < all && plan.group_views > 1 && plan.group_views % 3)
					continue; /* every third plan and the last ones */
				meter.floats = meter.most = meter.host = 0;
				meter.tables = meter.most_tables = 0;
				x = image(&w, &found_report);
				/* the resolution model rounds once more for each group */
				assert_true(fixture_difference(x, expected, pet_voxels(&plan)) < (w.p.psf > 0 ? 3e-6 : 1e-6));
				assert_near(found_report.sum_data, report.sum_data, 1e-6 * report.sum_data);
				assert_near(found_report.sum_model, report.sum_model, 1e-5 * report.sum_model);
				assert_int_equal(meter.most * sizeof(float), plan.bytes_volume + plan.bytes_data);
				assert_true(meter.host <= plan.bytes_host);
				assert_int_equal(meter.floats, 0);
				assert_int_equal(meter.tables, 0);
				if (!plan.keep_tables)
					assert_int_equal(meter.most_tables, 1);
				grouped += plan.group_views > 0;
				anew += !plan.keep_tables;
				free(x);
				pet_forget(w.dev);
			}
			assert_true(whole < all / 2);
			w.dev->ops = meter.ops;
		}
		assert_int_equal(device_poison_check(w.dev, NULL), 0);
		free(expected);
		work_close(&w);
	}
	assert_true(grouped > 8 && anew > 2);
}

/* Subsets of one angle each cannot be cut further, but streamed they need one sensitivity image on the device instead of all. */
static void subsets_of_an_angle(void **state)
{
	struct pet_report report;
	struct pet_plan whole, plan;
	float *expected, *found;
	struct work w;

	(void)state;
	work_make(&w, FIXTURE_POISON);
	w.p.algorithm = PET_OSEM;
	w.p.subsets = w.m.n_angles;
	w.p.iterations = 1;
	whole = pet_plan_of(&w.p, &w.m, true, true, w.dev);
	expected = image(&w, &report);
	w.p.memory_limit = whole.bytes_total / 2;
	plan = pet_plan_of(&w.p, &w.m, true, true, w.dev);
	assert_int_equal(plan.group_views, 1);
	assert_true(plan.bytes_total <= whole.bytes_total / 2);
	found = image(&w, &report);
	assert_true(fixture_difference(found, expected, pet_voxels(&plan)) < 1e-6);
	free(expected);
	free(found);
	work_close(&w);
}

/* Made once for the same geometry and factors; the image does not change by it. */
static void sensitivity_is_kept(void **state)
{
	(void)state;
	for (int algorithm = PET_MLEM; algorithm <= PET_BSREM; algorithm++)
		for (int streamed = 0; streamed < 2; streamed++) {
			struct pet_report report;
			struct pet_plan plan;
			float *x[5];
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = algorithm;
			plan = pet_plan_of(&w.p, &w.m, true, true, w.dev);
			w.p.memory_limit = streamed ? plan.bytes_total - 1 : 0;
			x[0] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			x[1] = image(&w, &report);
			assert_true(report.sensitivity_cached);
			assert_memory_equal(x[0], x[1], pet_voxels(&plan) * sizeof(float));
			w.data[PET_FACTORS][1234] *= 1.001f; /* one bin */
			x[2] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			w.p.fov_radius = 79; /* another geometry */
			x[3] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			w.p.fov_radius = PET_FOV;
			w.data[PET_FACTORS][1234] /= 1.001f;
			pet_forget(w.dev);
			x[4] = image(&w, &report);
			assert_false(report.sensitivity_cached);
			for (int i = 0; i < 5; i++)
				free(x[i]);
			work_close(&w);
		}
}

static bool stop(void *ctx)
{
	return --*(int *)ctx < 0;
}

/* Asked before every step; a session that was cancelled has no result. */
static void cancel(void **state)
{
	(void)state;
	for (int streamed = 0; streamed < 2; streamed++)
		for (int after = 0; after <= 10; after += 5) { /* OSEM, 2 passes of 5 subsets */
			int left = after, r;
			struct monitor monitor = {&left, NULL, stop};
			struct err err = {0};
			struct work w;

			work_make(&w, FIXTURE_POISON);
			w.p.algorithm = PET_OSEM;
			if (streamed)
				w.p.memory_limit = pet_plan_of(&w.p, &w.m, true, true, w.dev).bytes_total - 1;
			session_open(&w);
			put_all(&w);
			r = pet_run(w.s, &monitor, NULL, &err);
			assert_int_equal(r, after < 10 ? -ECANCELED : 0);
			if (r < 0) {
				assert_non_null(strstr(err.msg, "cancelled"));
				refused(pet_read_slices(w.s, 0, 1, w.data[1], &err), &err, "before it was run");
			} else {
				assert_int_equal(pet_read_slices(w.s, 0, 1, w.data[1], NULL), 0);
			}
			work_close(&w);
		}
}

/* A device of which the n-th call fails. */
static struct {
	const struct device_ops *ops;
	int left;
} fault;

#define FAULTY(name, parameters, ...)                                                                                            \
	static int faulty_##name parameters                                                                                      \
	{                                                                                                                        \
		return fault.left-- == 0 ? err_set(err, EIO, #name) : fault.ops->name(__VA_ARGS__);                              \
	}

FAULTY(alloc, (struct device * dev, size_t n, struct buf *ret, struct err *err), dev, n, ret, err)
FAULTY(host_alloc, (struct device * dev, size_t n, void **ret, struct err *err), dev, n, ret, err)
FAULTY(upload, (struct buf * to, const float *from, struct err *err), to, from, err)
FAULTY(upload_begin, (struct buf * to, const float *from, struct err *err), to, from, err)
FAULTY(download, (const struct buf *from, float *to, struct err *err), from, to, err)
FAULTY(order, (struct device * dev, enum device_queue a, enum device_queue b, struct err *err), dev, a, b, err)
FAULTY(wait, (struct device * dev, enum device_queue queue, struct err *err), dev, queue, err)
FAULTY(fill, (struct buf * x, float value, struct err *err), x, value, err)
FAULTY(copy, (const struct buf *x, struct buf *ret, struct err *err), x, ret, err)
FAULTY(multiply, (const struct buf *x, const struct buf *y, struct buf *ret, struct err *err), x, y, ret, err)
FAULTY(axpy, (float a, const struct buf *x, struct buf *y, struct err *err), a, x, y, err)
FAULTY(threshold, (struct buf * x, float at, float value, struct err *err), x, at, value, err)
FAULTY(sum, (const struct buf *x, double *ret, struct err *err), x, ret, err)
FAULTY(dot, (const struct buf *x, const struct buf *y, double *ret, struct err *err), x, y, ret, err)
FAULTY(blur, (const struct buf *x, const struct grid *g, const double s[3], struct buf *work, struct buf *ret, struct err *err),
       x, g, s, work, ret, err)
FAULTY(prior_gradient, (const struct prior *prior, const struct buf *x, const struct grid *g, struct buf *ret, struct err *err),
       prior, x, g, ret, err)
FAULTY(rule_voxels, (const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err), rule,
       num, den, x, err)
FAULTY(rule_bins,
       (const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row, const struct buf *mult,
	const struct buf *add, struct buf *ret, struct err *err),
       rule, y, p, row, mult, add, ret, err)
FAULTY(projection_create, (struct device * dev, const struct projection_spec *spec, struct projection **ret, struct err *err),
       dev, spec, ret, err)
FAULTY(forward, (struct projection * a, const struct buf *x, bool add, struct buf *y, struct err *err), a, x, add, y, err)
FAULTY(adjoint, (struct projection * a, const struct buf *y, bool add, struct buf *x, struct err *err), a, y, add, x, err)
FAULTY(back_interpolated, (struct projection * a, const struct buf *y, bool add, struct buf *x, struct err *err), a, y, add, x,
       err)

static struct device_ops faulty_ops(const struct device_ops *ops)
{
	struct device_ops f = *ops;

	f.alloc = faulty_alloc;
	f.host_alloc = faulty_host_alloc;
	f.upload = faulty_upload;
	f.upload_begin = faulty_upload_begin;
	f.download = faulty_download;
	f.order = faulty_order;
	f.wait = faulty_wait;
	f.fill = faulty_fill;
	f.copy = faulty_copy;
	f.multiply = faulty_multiply;
	f.axpy = faulty_axpy;
	f.threshold = faulty_threshold;
	f.sum = faulty_sum;
	f.dot = faulty_dot;
	f.blur = faulty_blur;
	f.prior_gradient = faulty_prior_gradient;
	f.rule_voxels = faulty_rule_voxels;
	f.rule_bins = faulty_rule_bins;
	f.projection_create = faulty_projection_create;
	f.forward = faulty_forward;
	f.adjoint = faulty_adjoint;
	f.back_interpolated = faulty_back_interpolated;
	return f;
}

/* Every call of a run fails once: the error comes out, memory is given back, and in the end a run passes. */
static void faults(void **state)
{
	static const struct {
		enum pet_algorithm algorithm;
		int group_views, subsets;
		bool keep;
		int least; /* calls that such a run has at least */
	} ways[] = {
		{PET_MLEM, 0, 1, true, 30}, {PET_BSREM, 2, 2, false, 60}, {PET_OSEM, 2, 2, true, 60}, {PET_FBP, 2, 1, true, 12}};

	(void)state;
	for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
		struct work w;
		int calls = 0, r;

		work_make(&w, FIXTURE_POISON);
		w.m.n_angles = 4; /* the first of the data, as planes of fewer angles */
		w.p.matrix = 8;
		w.p.algorithm = ways[k].algorithm;
		w.p.subsets = ways[k].subsets;
		w.p.iterations = 1;
		w.p.prior_weight = 0.1;
		w.p.psf = 6;
		w.p.postfilter = 5;
		w.dev = device_close(w.dev);
		do {
			struct device *dev = fixture_device(FIXTURE_POISON, 1);
			struct device_ops faulty = faulty_ops(dev->ops);
			struct err err = {0};
			float *x;

			w.plan = pet_plan_of(&w.p, &w.m, true, true, dev);
			w.plan.group_views = ways[k].group_views;
			w.plan.keep_tables = ways[k].keep;
			x = malloc(pet_voxels(&w.plan) * sizeof(*x));
			assert_non_null(x);
			fault.ops = dev->ops;
			fault.left = calls++;
			dev->ops = &faulty;
			r = pet_reconstruct(&w.p, &w.plan, &w.m, dev, w.data[1], w.data[2], w.data[3], NULL, x, NULL, &err);
			if (r == -ENOTSUP && w.p.algorithm == PET_FBP)
				skip();
			if (r < 0) {
				assert_int_equal(r, -EIO);
				assert_true(err.msg[0]);
			}
			dev->ops = fault.ops;
			free(x);
			pet_forget(dev);
			device_close(dev);
			assert_true(calls < 5000);
		} while (r < 0);
		print_message("algorithm %d: %d calls\n", (int)ways[k].algorithm, calls - 1);
		assert_true(calls > ways[k].least);
		w.dev = fixture_device(FIXTURE_POISON, 1);
		work_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_from_threads),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bad_bins),
		cmocka_unit_test(nothing_there),
		cmocka_unit_test(plan_refusals),
		cmocka_unit_test(defaults),
		cmocka_unit_test(limits),
		cmocka_unit_test(subsets_of_an_angle),
		cmocka_unit_test(sensitivity_is_kept),
		cmocka_unit_test(cancel),
		cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
