/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans share: the ranges of parameters, which memory limit counts, which choice is taken, and the room for the threads
 * of the device. */
#include <errno.h>
#include <math.h>

#include "recon/core/plan.h"
#include "tests/test.h"

static const struct device_ops ops = {.kind = "cpu"};

struct keys {
	int number, choice;
	double real;
};
#define KEY(member) PLAN_PARAMETER(keys, member)

/* Every form of a range, at its ends and beyond. */
TEST(ranges)
{
	static const struct {
		struct plan_range range;
		double good[3], bad[3];
		const char *allowed;
	} rows[] = {
		{{KEY(number), 0, 1, 1000}, {1, 500, 1000}, {0, 1001, -1}, "number=0; allowed: 1 to 1000"},
		{{KEY(number), 0, 2, 16, .zero = "all"}, {0, 2, 16}, {1, 17, -1}, "number=1; allowed: 0 (all), 2 to 16"},
		{{KEY(number), .zero = "each", .of = "views"},
		 {0, 1, 7},
		 {8, 9, -1},
		 "=8; allowed: 0 (each) to 7, the number of views"},
		{{KEY(real), 0, 0.02, 5, .unit = " mm"}, {0.02, 1, 5}, {0.019, 5.01, NAN}, "real=0.019; allowed: 0.02 to 5 mm"},
		{{KEY(real), .highest = 1e6}, {0, 1, 1e6}, {-1e-9, 1.1e6, INFINITY}, "real=-1e-09; allowed: 0 to 1000000"},
		{{KEY(real), .highest = 1, .above = true}, {1e-9, 0.5, 1}, {0, 1.01, NAN}, "allowed: more than 0, up to 1"},
		{{KEY(real), .highest = 2, .above = true, .below = true},
		 {1e-9, 1, 1.99},
		 {0, 2, NAN},
		 "more than 0, less than 2"},
		{{KEY(choice), .choices = 1 << 2 | 1 << 5, .words = "two, five"},
		 {2, 5, 2},
		 {0, 3, 37},
		 "choice=0; allowed: two, five"},
		{{KEY(choice), .choices = 1 << 2, .words = "two"}, {2, 2, 2}, {-1, 34, 1}, "choice=-1; allowed: two"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan_range range[2] = {rows[i].range, {0}};
		struct err err = {0};

		for (int k = 2; k >= 0; k--) {
			struct keys good = {(int)rows[i].good[k], (int)rows[i].good[k], rows[i].good[k]},
				    bad = {isfinite(rows[i].bad[k]) ? (int)rows[i].bad[k] : 0,
					   isfinite(rows[i].bad[k]) ? (int)rows[i].bad[k] : 0, rows[i].bad[k]};

			assert_int_equal(plan_check(&good, range, 0, 7, NULL), 0);
			assert_int_equal(plan_check(&bad, range, 0, 7, &err), -EINVAL);
			range[0].when = PLAN_SUBSETS | PLAN_OWN; /* not both: the parameter is not used */
			assert_int_equal(plan_check(&bad, range, PLAN_OWN, 7, NULL), 0);
			assert_int_equal(plan_check(&bad, range, PLAN_OWN | PLAN_SUBSETS | PLAN_RAYS, 7, NULL), -EINVAL);
			range[0].when = 0;
		}
		assert_non_null(strstr(err.msg, rows[i].allowed));
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
	assert_int_equal(plan_threads(&dev, 701, 100, &further, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "4 threads"));
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
		size_t limit, memory, host, beside;
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
		{.limit = 12, .host = 1000},
		{.limit = 60, .fails_at = 10, .units = -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int falling = 0; falling < 2; falling++) {
			struct device dev = {
				.ops = &ops, .memory = rows[i].memory, .host_memory = rows[i].host, .threads = rows[i].threads};
			struct parts p = {.dev = &dev, .fails_at = rows[i].fails_at};
			struct plan_choices c = {10, falling, "one unit", rows[i].beside, count, &p, &p.bytes};
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
