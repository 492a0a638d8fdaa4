/* SPDX-License-Identifier: Apache-2.0 */
/* PET with little memory: for every memory limit the image equals that of the resident run; groups of angles. */
#include "tests/recon/pet/pet_work_fixture.h"
#include "tests/test.h"

#define TOF                                                                                                                      \
	{                                                                                                                        \
		3, 60, 40                                                                                                        \
	}

#define TABLES_MOST 64

/* A device that counts the allocated memory. */
static struct {
	const struct device_ops *ops;
	size_t floats, most; /* of vectors */
	int tables, most_tables;
	size_t table_bytes, most_table_bytes; /* as metered_bytes() counts them */
	struct {
		const struct projection *a;
		size_t bytes;
	} table[TABLES_MOST];
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

/* Return a size of tables large enough to affect the plan; the CPU device's own tables are too small. */
static size_t metered_bytes(struct device *dev, const struct projection_spec *spec)
{
	(void)dev;
	return (size_t)spec->n_views * 40000;
}

static int metered_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	int r = meter.ops->projection_create(dev, spec, ret, err), at = 0;

	if (r < 0)
		return r;
	while (meter.table[at].a)
		assert_true(++at < TABLES_MOST);
	meter.table[at].a = *ret;
	meter.table[at].bytes = metered_bytes(dev, spec);
	meter.table_bytes += meter.table[at].bytes;
	meter.tables++;
	meter.most_tables = meter.tables > meter.most_tables ? meter.tables : meter.most_tables;
	meter.most_table_bytes = meter.table_bytes > meter.most_table_bytes ? meter.table_bytes : meter.most_table_bytes;
	return 0;
}

static void metered_free(struct projection *a)
{
	for (int i = 0; a && i < TABLES_MOST; i++)
		if (meter.table[i].a == a) {
			meter.table_bytes -= meter.table[i].bytes;
			meter.table[i].a = NULL;
		}
	meter.tables -= a != NULL;
	meter.ops->projection_free(a);
}

/* For every memory limit down to the first that is refused: the image equals that of the resident run, and the allocated memory
 * is that of the plan. */
TEST(limits)
{
	static const struct {
		enum algorithm algorithm;
		double prior_weight, psf, postfilter;
		struct scan_tof tof;
	} ways[] = {{ALGORITHM_MLEM, 0, 0, 0},	    {ALGORITHM_OSEM, 0, 0, 6},	       {ALGORITHM_BSREM, 0, 0, 0},
		    {ALGORITHM_MLEM, 0, 8, 0},	    {ALGORITHM_BSREM, 0.1, 8, 0},      {ALGORITHM_FBP, 0, 0, 5},
		    {ALGORITHM_MLEM, 0, 0, 0, TOF}, {ALGORITHM_BSREM, 0.1, 8, 0, TOF}, {ALGORITHM_FBP, 0, 0, 0, TOF}};
	int grouped = 0, anew = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pet_report report;
		struct err err = {0};
		struct work w;
		size_t whole, all;
		float *expected;

		work_make_tof(&w, FIXTURE_POISON, ways[i].tof);
		w.p.algorithm = ways[i].algorithm;
		if (ways[i].tof.n > 0) {
			w.p.projector = PROJECTION_PATHS;
			w.p.iterations = 1;
		}
		w.p.prior_weight = ways[i].prior_weight;
		w.p.psf = ways[i].psf;
		w.p.postfilter = ways[i].postfilter;
		expected = image(&w, &report);
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
			all = whole = pet_plan_of(&w.p, &w.m, true, true, w.dev).bytes.total;
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
				assert_true(plan.bytes.total <= limit);
				assert_int_equal(plan.bytes.total, plan.bytes.volumes + plan.bytes.data + plan.bytes.tables);
				whole = plan.bytes.total;
				if (limit < all && plan.group_views > 1 && plan.group_views % 3)
					continue; /* test every third plan, and the last ones */
				meter.floats = meter.most = meter.host = 0;
				meter.tables = meter.most_tables = 0;
				meter.table_bytes = meter.most_table_bytes = 0;
				x = image(&w, &found_report);
				/* the resolution model adds one rounding per group */
				assert_true(fixture_difference(x, expected, pet_voxels(&plan)) < (w.p.psf > 0 ? 3e-6 : 1e-6));
				assert_near(found_report.sum_data, report.sum_data, 1e-6 * report.sum_data);
				assert_near(found_report.sum_model, report.sum_model, 1e-5 * report.sum_model);
				assert_int_equal(meter.most * sizeof(float), plan.bytes.volumes + plan.bytes.data);
				assert_true(meter.most_table_bytes <= plan.bytes.tables - plan.bytes.scratch);
				if (w.p.algorithm != ALGORITHM_FBP) /* has no tables; its groups follow each other */
					assert_int_equal(meter.most_table_bytes, plan.bytes.tables - plan.bytes.scratch);
				assert_true(meter.host <= plan.bytes.host);
				assert_int_equal(meter.floats, 0);
				assert_int_equal(meter.tables, 0);
				if (!plan.keep_tables)
					assert_int_equal(meter.most_tables, 1);
				grouped += plan.group_views > 0;
				anew += !plan.keep_tables;
			}
			assert_true(whole < all / 2);
			w.dev->ops = meter.ops;
		}
	}
	assert_true(grouped > 8 && anew > 2);
}

/* Subsets of one angle cannot be divided, but streaming needs one sensitivity image on the device instead of all of them. */
TEST(subsets_of_an_angle)
{
	struct pet_report report;
	struct pet_plan whole, plan;
	float *expected, *found;
	struct work w;

	work_make(&w, FIXTURE_POISON);
	w.p.algorithm = ALGORITHM_OSEM;
	w.p.subsets = w.m.n_angles;
	w.p.iterations = 1;
	whole = pet_plan_of(&w.p, &w.m, true, true, w.dev);
	expected = image(&w, &report);
	w.p.memory_limit = whole.bytes.total / 2;
	plan = pet_plan_of(&w.p, &w.m, true, true, w.dev);
	assert_int_equal(plan.group_views, 1);
	assert_true(plan.bytes.total <= whole.bytes.total / 2);
	found = image(&w, &report);
	assert_true(fixture_difference(found, expected, pet_voxels(&plan)) < 1e-6);
}

/* The plan, and every bit of the image, are the same for any number of threads, whatever the limit. */
TEST(threads_do_not_matter)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_OSEM, ALGORITHM_BSREM, ALGORITHM_FBP};
	static const int threads[] = {1, 2, 3, 8, 64};
	int streamed = 0;

	for (int i = 0; i < 4 * 6; i++) {
		TEST_BLOCK;
		struct pet_report report;
		struct work w;
		struct pet_plan plans[5];
		float *images[5] = {0};
		size_t whole;

		work_make(&w, FIXTURE_CPU);
		w.p.algorithm = algorithms[i / 6];
		w.p.iterations = 1;
		whole = pet_plan_of(&w.p, &w.m, true, true, w.dev).bytes.total;
		w.p.memory_limit = whole - whole * (size_t)(i % 6) / 10;
		for (int k = 0; k < 5; k++) {
			w.dev = fixture_device(FIXTURE_CPU, threads[k]);
			assert_int_equal(pet_plan(&w.p, &w.m, true, true, w.dev, &plans[k], NULL), 0);
			assert_int_equal(plans[k].group_views, plans[0].group_views);
			assert_int_equal(plans[k].keep_tables, plans[0].keep_tables);
			assert_int_equal(plans[k].bytes.total, plans[0].bytes.total);
			assert_int_equal(plans[k].bytes.threads, (size_t)(threads[k] - 1) * plans[0].bytes.scratch);
			if (threads[k] != 1 && threads[k] != 3)
				continue;
			images[k] = image(&w, &report);
			assert_memory_equal(images[k], images[0], pet_voxels(&plans[0]) * sizeof(float));
		}
		streamed += plans[0].group_views > 0;
	}
	assert_true(streamed > 10);
}
