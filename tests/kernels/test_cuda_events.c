/* SPDX-License-Identifier: Apache-2.0 */
/* List mode on the CUDA device: compared with its definition in double, adjoint, fused pass, sorting, repeatable sums. Skipped
 * (exit code 77) without a CUDA device. */

#include "tests/kernels/events_tests.h"
#include "tests/test.h"

#define N 20000

void events_on_each(void (*each)(struct events_case *c))
{
	struct device *dev = NULL;

	assert_int_equal(device_cuda_open(0, &dev, NULL), 0);
	for (int deterministic = 0; deterministic < 2; deterministic++)
		for (size_t i = 0; i < N_EVENTS_SETUPS; i++) {
			struct events_case c;

			print_message("%s%s\n", events_setups[i].name, deterministic ? ", repeatable" : "");
			events_open(dev, &events_setups[i], N, deterministic, &c);
			each(&c);
			events_close(&c);
		}
	device_close(dev);
}

/* The sum of sorted events; the order inside a cell differs from run to run. */
static float *repeatable_sum(struct device *dev)
{
	struct events_case c;
	struct buf sum;
	float *x;

	events_open(dev, &events_setups[1], N, true, &c);
	assert_int_equal(dev->ops->alloc(dev, c.x.n, &sum, NULL), 0);
	assert_int_equal(dev->ops->fill(&sum, 0, NULL), 0);
	assert_int_equal(dev->ops->events_sort(c.a, &c.events, NULL), 0);
	assert_int_equal(dev->ops->events_ratio(c.a, &c.events, 1e-3f, &c.x, &sum, NULL), 0);
	x = events_download(&sum);
	buf_release(&sum);
	events_close(&c);
	return x;
}

TEST(repeatable)
{
	struct grid g = events_grid(&events_setups[1]);
	struct device *dev = NULL;
	float *first;

	assert_int_equal(device_cuda_open(0, &dev, NULL), 0);
	first = repeatable_sum(dev);
	for (int i = 0; i < 5; i++) {
		float *again = repeatable_sum(dev);

		assert_memory_equal(first, again, grid_size(&g) * sizeof(*first));
		free(again);
	}
	free(first);
	device_close(dev);
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
