/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share the parts of a loop: each part is worked on once, whatever their numbers. */
#include <stdatomic.h>

#include "node/base/thread_pool.h"
#include "tests/test.h"

#define PARTS_MAX 1000

static atomic_int done[PARTS_MAX];

static void work(void *ctx, size_t part)
{
	atomic_fetch_add(&done[part], *(const int *)ctx);
}

TEST(each_part_once)
{
	static const size_t parts[] = {0, 1, 2, 15, 16, 17, PARTS_MAX};
	struct err err = {0};
	int one = 1;

	for (int threads = 1; threads <= 16; threads += 5) {
		struct thread_pool *p = NULL;

		assert_int_equal(thread_pool_create(threads, &p, &err), 0);
		assert_int_equal(thread_pool_size(p), threads);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) { /* one loop after the other */
			for (size_t k = 0; k < PARTS_MAX; k++)
				atomic_store(&done[k], 0);
			thread_pool_run(p, parts[i], work, &one);
			for (size_t k = 0; k < PARTS_MAX; k++)
				assert_int_equal(atomic_load(&done[k]), k < parts[i]);
		}
		assert_null(thread_pool_free(p));
	}
}

TEST(number_of_threads)
{
	static const struct {
		const char *variable;
		int asked, size;
	} rows[] = {{"3", 0, 3}, {"3", 1, 1}, {"3", -1, 3}, {"100", 0, 16}, {"1", 16, 16}, {"1", 17, 16}, {"1", 1000, 16}};
	struct thread_pool *p = NULL;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv("OMP_NUM_THREADS", rows[i].variable, 1);
		assert_int_equal(thread_pool_create(rows[i].asked, &p, &err), 0);
		assert_int_equal(thread_pool_size(p), rows[i].size);
		thread_pool_free(p);
	}
	for (const char *const *wrong = (const char *const[]){"", "0", "-1", "1x", "1025", NULL}; *wrong; wrong++) {
		setenv("OMP_NUM_THREADS", *wrong, 1);
		assert_true(threads_available() >= 1 && threads_available() <= 1024);
	}
	setenv("OMP_NUM_THREADS", "1024", 1);
	assert_int_equal(threads_available(), 1024);
	unsetenv("OMP_NUM_THREADS");
	assert_null(thread_pool_free(NULL));
}
