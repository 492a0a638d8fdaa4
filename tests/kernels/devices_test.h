/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what holds on every device:
 *
 *     ON_DEVICES(name, dev) { assert_int_equal(dev->ops->fill(...), 0); }
 *
 * runs the body on the CPU, with memory full of NaN (poison), and, where there is one, on CUDA; without one, the program says so
 * once and passes. */
#ifndef TOMONODE_TESTS_KERNELS_DEVICES_TEST_H
#define TOMONODE_TESTS_KERNELS_DEVICES_TEST_H

#include "tests/kernels/buffers.h"
#include "tests/test.h"

static inline void test_on_devices(void (*body)(struct device *dev))
{
	static const int devices[] = {FIXTURE_CPU, FIXTURE_POISON, FIXTURE_CUDA};
	static bool said;

	for (size_t i = 0; i < (device_cuda_count() > 0 ? 3 : 2); i++) {
		TEST_BLOCK;
		struct device *dev = fixture_device(devices[i], devices[i] == FIXTURE_POISON ? 2 : 3);

		if (devices[i] == FIXTURE_CUDA)
			print_message("on %s\n", dev->name);
		body(dev);
	}
	if (device_cuda_count() == 0 && !said)
		print_message("skipped: on CUDA: no CUDA device\n");
	said = true;
}

#define ON_DEVICES(name_, dev_, ...)                                                                                             \
	static void name_##_on(struct device *dev_);                                                                             \
	TEST(name_, ##__VA_ARGS__)                                                                                               \
	{                                                                                                                        \
		test_on_devices(name_##_on);                                                                                     \
	}                                                                                                                        \
	static void name_##_on(struct device *dev_)

#endif
