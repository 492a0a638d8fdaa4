/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans share: the ranges of parameters, which memory limit counts, which choice is taken, and the room for the threads
 * of the device. */
#include "recon/core/plan.h"
#include "recon/dbt/dbt.h"
#include "recon/pet/pet_list.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

static const struct device_ops ops = {.kind = "cpu"};

struct own {
	int algorithm, number, subsets, choice;
	double real, unused, needy;
};

/* Each type at its ends and beyond; a key without effect, one with a wider range, the number of subsets. */
TEST(ranges)
{
	const struct key keys[] = {
		{"algorithm", AS_CHOICE(own, algorithm, KEY_CHOICES({"osem", 1}, {"fbp", 2}))},
		{"number", AS_INT(own, number, 2, 16), .zero = "all"},
		{"subsets", AS_INT(own, subsets, 1, 1000), .only = "osem"},
		{"choice", AS_CHOICE(own, choice, KEY_CHOICES({"two", 2}, {"five", 5}))},
		{"real", AS_REAL(own, real, 0.02, 5), .unit = "mm"},
		{"unused", AS_REAL(own, unused, 1, 2), .only = "fbp"},
		{"needy", AS_REAL(own, needy, 1, 2), .needs = "choice=five"},
	};
	static const struct plan_range wider[] = {{"real", 0.01, 50, "none"}, {NULL}};
	static const struct {
		struct own protocol;
		const char *refused, *wider; /* NULL: accepted */
	} rows[] = {
		{{1, 2, 1, 2, 0.02}, NULL, NULL},
		{{1, 0, 7, 5, 5, 0, 1}, NULL, NULL},
		{{2, 16, 8, 2, 5, 1}, NULL, NULL},
		{{1, 1, 1, 2, 1}, "number=1; allowed: a whole number from 2 to 16; 0: all", "number=1"},
		{{1, 17, 1, 2, 1}, "number=17", "number=17"},
		{{1, 2, 8, 2, 1}, "subsets=8; allowed: a whole number from 1 to 7 (all views)", "subsets=8"},
		{{1, 2, 0, 2, 1}, "subsets=0", "subsets=0"},
		{{1, 2, 1, 3, 1}, "choice=3; allowed: two, five", "choice=3"},
		{{1, 2, 1, -1, 1}, "choice=-1", "choice=-1"},
		{{1, 2, 1, 2, 0.019}, "real=0.019; allowed: a number from 0.02 to 5 mm", NULL},
		{{1, 2, 1, 2, 0}, "real=0", NULL},
		{{1, 2, 1, 2, 50.1}, "real=50.1", "real=50.1; allowed: a number from 0.01 to 50 mm; 0: none"},
		{{1, 2, 1, 2, NAN}, "real=nan", "real=nan"},
		{{2, 2, 0, 2, 1, 3}, "unused=3", "unused=3"},
		{{1, 2, 1, 5, 1, 0, 3}, "needy=3", "needy=3"},
	};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *refused = i % 2 ? rows[i / 2].wider : rows[i / 2].refused;
		struct err err = {0};

		assert_int_equal(plan_check(&rows[i / 2].protocol, keys, sizeof(keys) / sizeof(keys[0]), i % 2 ? wider : NULL, 7,
					    "views", &err),
				 refused ? -EINVAL : 0);
		assert_non_null(strstr(err.msg, refused ? refused : ""));
	}
}

TEST(test_limit)
{
	struct device dev = {.ops = &ops, .memory = 1000}, unknown = {.ops = &ops};

	assert_int_equal(plan_limit(&dev, 0), 1000);
	assert_int_equal(plan_limit(&dev, 999), 999);
	assert_int_equal(plan_limit(&dev, 1001), 1000); /* not more than the device has */
	assert_int_equal(plan_limit(&unknown, 0), 0);
	assert_int_equal(plan_limit(&unknown, 77), 77);
	assert_string_equal(plan_limit_name(&dev, 1000), "the device's memory");
	assert_string_equal(plan_limit_name(&dev, 999), "memory_limit");
}

/* A plan counts the working memory of one thread; the device needs room for that of the others, too. */
TEST(test_threads)
{
	struct device dev = {.ops = &ops, .memory = 1000, .threads = 4};
	struct err err = {0};
	size_t further = 7;

	assert_int_equal(plan_threads(&dev, 700, 100, &further, &err), 0);
	assert_int_equal(further, 300);
	assert_error(plan_threads(&dev, 701, 100, &further, &err), &err, ENOMEM, "4 threads");
	assert_int_equal(plan_threads(&dev, 1001, 0, &further, &err), -ENOMEM);
	assert_int_equal(further, 300);
	dev.threads = 1;
	assert_int_equal(plan_threads(&dev, 1000, 100, &further, &err), 0);
	assert_int_equal(further, 0);
	dev.memory = 0; /* not known */
	dev.threads = 4;
	assert_int_equal(plan_threads(&dev, 5000, 100, &further, &err), 0);
	assert_int_equal(further, 300);
}

/* Parts of 10, 9 ... 1 units of 10 bytes, beside working memory of 3 bytes and, on the host, 50 bytes. */
struct parts {
	const struct device *dev;
	struct plan_bytes bytes;
	int units, counted, fails_at;
};

static int count(void *ctx, int choice, struct err *err)
{
	struct parts *p = ctx;

	p->counted++;
	p->units = 10 - choice;
	if (p->units == p->fails_at)
		return err_set(err, ENOTSUP, "fails");
	p->bytes = (struct plan_bytes){.volumes = 10 * (size_t)p->units, .scratch = 3, .host = 50};
	plan_sum(&p->bytes, p->dev);
	return 0;
}

/* The choice that is taken is the first that fits, by bisection the same as one by one, whatever the limit. */
TEST(choices)
{
	static const struct {
		size_t limit, memory, host, beside, most;
		int threads, fails_at, units; /* units: of the plan; 0: -ENOMEM, -1: the error of count() */
	} rows[] = {
		{.units = 10},
		{.limit = 103, .units = 10},
		{.limit = 102, .units = 9},
		{.limit = 13, .units = 1},
		{.limit = 12},
		{.memory = 60, .units = 5},
		{.limit = 100, .memory = 60, .units = 5},
		{.limit = 40, .memory = 60, .units = 3},
		{.limit = 70, .threads = 4, .units = 6}, /* a limit does not count further threads */
		{.memory = 70, .threads = 4},		 /* but the machine does */
		{.memory = 72, .threads = 4, .units = 6},
		{.host = 153, .units = 10}, /* the host: 10 units, working memory, 50 bytes */
		{.host = 152, .units = 9},
		{.host = 152, .beside = 10, .units = 8},
		{.host = 152, .threads = 6, .units = 8}, /* it counts further threads */
		{.limit = 50, .host = 152, .units = 4},
		{.host = 62, .units = 10}, /* none fits: as without it, and the caller refuses it */
		{.host = 62, .limit = 80, .units = 7},
		{.most = 153, .units = 10}, /* the same limit of the caller */
		{.most = 152, .units = 9},
		{.most = 62, .units = 10},
		{.limit = 12, .host = 1000},
		{.limit = 60, .fails_at = 10, .units = -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int falling = 0; falling < 2; falling++) {
			struct device dev = {
				.ops = &ops, .memory = rows[i].memory, .host_memory = rows[i].host, .threads = rows[i].threads};
			struct parts p = {.dev = &dev, .fails_at = rows[i].fails_at};
			struct plan_choices c = {10, falling, "one unit", rows[i].beside, count, &p, &p.bytes, rows[i].most};
			struct err err = {0};
			int r = plan_fit(&c, &dev, rows[i].limit, &err);

			assert_int_equal(r, rows[i].units < 0 ? -ENOTSUP : rows[i].units == 0 ? -ENOMEM : 0);
			if (r < 0)
				continue;
			assert_int_equal(p.units, rows[i].units);
			assert_int_equal(p.bytes.total, 10 * p.units + 3);
			assert_int_equal(p.bytes.threads, dev.threads > 1 ? 3 * (dev.threads - 1) : 0);
		}
}

/* The sentence has the bytes of all at once, of the smallest part, and the limit. */
TEST(refusal)
{
	struct device dev = {.ops = &ops, .memory = 10};
	struct parts p = {.dev = &dev};
	struct plan_choices c = {10, false, "one unit", 0, count, &p, &p.bytes};
	struct err err = {0};

	assert_int_equal(plan_fit(&c, &dev, 0, &err), -ENOMEM);
	assert_string_equal(err.msg,
			    "the plan needs 0.0 MB on cpu (volumes 0.0, data 0.0, tables 0.0), and with one unit at a time 0.0 "
			    "MB (0.0, 0.0, 0.0); the limit is 0.0 MB (the device's memory)");
	assert_int_equal(p.counted, 12);
	assert_int_equal(p.units, 1);
}

/* ---- the plans of all kinds ---- */

struct made {
	struct plan_bytes bytes;
	size_t parts[3]; /* how the work is divided */
};

static int plan_slabs(int variant, size_t limit, struct device *dev, struct made *ret)
{
	static const enum algorithm algorithms[] = {ALGORITHM_OSEM, ALGORITHM_MLEM, ALGORITHM_SART, ALGORITHM_FBP};
	struct dbt_protocol p = {.algorithm = algorithms[variant],
				 .iterations = 2,
				 .relaxation = 0.5,
				 .filter = DBT_FILTER_HANN,
				 .filter_cut = 1,
				 .slice_spacing = 2,
				 .tile = {variant == 1 ? 16 : 0, 16},
				 .projector = PROJECTION_SLICES,
				 .memory_limit = limit};
	struct scan *scan = fixture_scan(64, 80, 0.34, 5);
	struct dbt_plan plan;
	int r = dbt_plan(&p, scan, 17, 22, dev, &plan, NULL);

	*ret = (struct made){plan.bytes, {(size_t)plan.slab_slices, (size_t)plan.group_views, (size_t)plan.tile[0]}};
	return r;
}

static int plan_groups(int variant, size_t limit, struct device *dev, struct made *ret)
{
	static const enum algorithm algorithms[] = {ALGORITHM_MLEM, ALGORITHM_OSEM, ALGORITHM_BSREM, ALGORITHM_FBP};
	struct pet_protocol p = pet_protocol_small;
	struct michelogram m = pet_scanner_small(true);
	struct pet_plan plan;
	int r;

	p.algorithm = algorithms[variant];
	p.memory_limit = limit;
	r = pet_plan(&p, &m, PET_FACTORS_SHARED, true, dev, &plan, NULL);
	*ret = (struct made){plan.bytes, {(size_t)plan.group_views, plan.keep_tables}};
	return r;
}

static int no_rewind(void *ctx, struct err *err)
{
	(void)ctx;
	return err_set(err, EIO, "a plan reads nothing");
}

static int no_read(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	(void)ret;
	(void)most;
	(void)ret_n;
	return no_rewind(ctx, err);
}

static int plan_batches(int variant, size_t limit, struct device *dev, struct made *ret)
{
	struct pet_protocol p = pet_protocol_small;
	struct michelogram m = pet_scanner_small(false);
	float at[3 * PET_RINGS * 96];
	struct pet_list list = {
		.detectors = at, .n_detectors = PET_RINGS * 96, .n_events = 300000, .slice = 3, .michelogram = &m};
	struct pet_plan plan;
	int r;

	m.n_angles = 48; /* half of the detectors of a ring */
	assert_int_equal(pet_list_detectors(&m, at, NULL), 0);
	list.events = (struct pet_list_reader){NULL, no_rewind, no_read};
	if (variant % 2) {
		list.michelogram = NULL;
		list.lors = list.events;
	}
	p.subsets = 1 + variant;
	p.algorithm = ALGORITHM_OSEM;
	p.memory_limit = limit;
	r = pet_list_plan(&p, &list, dev, &plan, NULL);
	*ret = (struct made){plan.bytes, {plan.batch, plan.resident}};
	return r;
}

static int plan_slices(int variant, size_t limit, struct device *dev, struct made *ret)
{
	static const enum algorithm algorithms[] = {ALGORITHM_FBP, ALGORITHM_ART, ALGORITHM_SART, ALGORITHM_OSEM};
	struct parallel_scan s = parallel_scan_of(30, 21, 7);
	struct parallel_protocol p = parallel_protocol_of(algorithms[variant], 30);
	struct parallel_plan plan;
	int r;

	p.memory_limit = limit;
	r = parallel_plan(&p, &s, dev, &plan, NULL);
	*ret = (struct made){plan.bytes, {(size_t)plan.part_slices}};
	return r;
}

static const struct {
	int (*plan)(int variant, size_t limit, struct device *dev, struct made *ret);
	bool any_threads; /* the working memory of threads is not in the tables */
} kinds[] = {{plan_slabs, true}, {plan_groups, true}, {plan_batches, false}, {plan_slices, true}};
#define VARIANTS 4

static size_t memory_of(const struct made *m)
{
	return m->bytes.total + m->bytes.threads + m->bytes.host;
}

/* A plan fits into exactly the bytes that it states; with one byte less it is another one, until none fits. All are the same for
 * any number of threads. */
TEST(limits_are_sharp)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int variant = 0; variant < VARIANTS; variant++) {
			struct device *dev = fixture_device(FIXTURE_CPU, 1), *others = fixture_device(FIXTURE_CPU, 8);
			size_t limit = 0, plans = 0;
			struct made one, again;

			for (; kinds[i].plan(variant, limit, dev, &one) == 0; plans++) {
				assert_true(limit == 0 || one.bytes.total <= limit);
				assert_int_equal(one.bytes.total, one.bytes.volumes + one.bytes.data + one.bytes.tables);
				assert_int_equal(kinds[i].plan(variant, one.bytes.total, dev, &again), 0);
				assert_memory_equal(&again, &one, sizeof(one));
				if (kinds[i].any_threads) {
					assert_int_equal(kinds[i].plan(variant, limit, others, &again), 0);
					assert_memory_equal(again.parts, one.parts, sizeof(one.parts));
					assert_int_equal(again.bytes.total, one.bytes.total);
					assert_int_equal(again.bytes.threads, 7 * one.bytes.scratch);
				}
				limit = one.bytes.total - 1;
			}
			assert_int_equal(kinds[i].plan(variant, limit, dev, &again), -ENOMEM);
			assert_true(plans > 2);
		}
}

/* Under the limit of a control group the plan, its threads and all memory on the host fit together; a plan that did fit is the
 * same as without it. If none fits, the plan is that without the limit, which the caller refuses. */
TEST(host_counts)
{
	int same = 0, smaller = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int variant = 0; variant < VARIANTS; variant++) {
			struct device *dev = fixture_device(FIXTURE_CPU, 2);
			struct made whole, one, before;
			size_t least, most;

			assert_int_equal(kinds[i].plan(variant, 0, dev, &whole), 0);
			least = most = memory_of(&whole);
			for (size_t limit = whole.bytes.total; kinds[i].plan(variant, limit, dev, &one) == 0;
			     limit = one.bytes.total - 1)
				least = memory_of(&one) < least ? memory_of(&one) : least;
			most = most * 5 / 4;
			for (size_t k = 0; k <= 20; k++) {
				int r;

				dev->memory = least + (most - least) * k / 20;
				dev->host_memory = 0;
				r = kinds[i].plan(variant, 0, dev, &before);
				dev->host_memory = dev->memory;
				assert_int_equal(kinds[i].plan(variant, 0, dev, &one), 0);
				assert_true(memory_of(&one) <= dev->host_memory);
				if (r == 0 && memory_of(&before) <= dev->host_memory) {
					assert_memory_equal(&one, &before, sizeof(one));
					same++;
				} else {
					smaller++;
				}
			}
			dev->memory = 0;
			dev->host_memory = 1;
			assert_int_equal(kinds[i].plan(variant, 0, dev, &one), 0);
			assert_int_equal(one.bytes.total, whole.bytes.total);
		}
	print_message("%d plans are the same, %d need less memory\n", same, smaller);
	assert_true(same > 0 && smaller > 0);
}
