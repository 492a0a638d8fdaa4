/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans share: which memory limit counts, and the room for the threads of the device. */
#include <errno.h>

#include "recon/core/plan.h"
#include "tests/test.h"

static const struct device_ops ops = {.kind = "cpu"};

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
