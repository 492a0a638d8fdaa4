/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what holds on every device:
 *
 *     ON_DEVICES(name, dev) { assert_int_equal(dev->ops->fill(...), 0); }
 *
 * runs the body on the CPU, with memory full of NaN (poison), and, where there is one, on CUDA; without one, the program says so
 * once and passes. */
#ifndef TOMONODE_TESTS_KERNELS_DEVICES_TEST_H
#define TOMONODE_TESTS_KERNELS_DEVICES_TEST_H

#include "kernels/device.h"
#include "tests/test.h"

enum { ON_CPU, ON_POISON, ON_CUDA };

/* The number of devices: with CUDA or without. */
static inline int test_devices(void)
{
	static bool said;

	if (device_cuda_count() > 0)
		return ON_CUDA + 1;
	if (!said)
		print_message("skipped: on CUDA: no CUDA device\n");
	said = true;
	return ON_CUDA;
}

static inline struct device *test_device_open(int which, int threads)
{
	struct device *dev = NULL;
	struct err err = {0};
	int r = which == ON_CUDA     ? device_cuda_open(0, &dev, &err)
		: which == ON_POISON ? device_poison_open(threads, &dev, &err)
				     : device_cpu_open(threads, &dev, &err);

	if (r < 0)
		fail_msg("%s", err.msg);
	return dev;
}

/* Also checks that nothing was written outside of the poison device's vectors. */
static inline void test_device_close(int which, struct device *dev)
{
	if (which == ON_POISON)
		assert_int_equal(device_poison_check(dev, NULL), 0);
	device_close(dev);
}

static inline void test_on_devices(void (*body)(struct device *dev))
{
	for (int which = 0; which < test_devices(); which++) {
		struct device *dev = test_device_open(which, which == ON_POISON ? 2 : 3);

		if (which == ON_CUDA)
			print_message("on %s\n", dev->name);
		body(dev);
		test_device_close(which, dev);
	}
}

#define ON_DEVICES(name_, dev_, ...)                                                                                             \
	static void name_##_on(struct device *dev_);                                                                             \
	TEST(name_, ##__VA_ARGS__)                                                                                               \
	{                                                                                                                        \
		test_on_devices(name_##_on);                                                                                     \
	}                                                                                                                        \
	static void name_##_on(struct device *dev_)

#endif
