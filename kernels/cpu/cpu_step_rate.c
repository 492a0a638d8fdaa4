/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_step_rate.c - measure how many steps per second (kernels/device.h, step_rate()) all threads together compute, each with
 * data in its own cache.
 *
 * There are enough sums to keep both multiply-add units of a core busy: the latency of each is four cycles. */
#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>

#define SUMS 8	   /* vectors of results */
#define ROWS 32	   /* rows of SUMS vectors of at most 64 bytes: 16 KiB, half a level-1 cache */
#define TRIES 5	   /* the result is that of the fastest try, because a limit is measured */
#define LEAST 2e-3 /* duration of a try, s */
#define FLOATS_MAX (SUMS * 16)

/* acc[l] += sum over pairs of rows of w0 y0[l] + w1 y1[l], `rounds` times. */
typedef void steps_fn(const float *rows, const float *weight, size_t rounds, float *acc);

#define STEPS(name, bytes, target)                                                                                               \
	typedef float name##_vector __attribute__((vector_size(bytes), may_alias));                                              \
	target static void name(const float *rows, const float *weight, size_t rounds, float *acc)                               \
	{                                                                                                                        \
		name##_vector sum[SUMS];                                                                                         \
                                                                                                                                 \
		for (int i = 0; i < SUMS; i++)                                                                                   \
			sum[i] = ((name##_vector *)acc)[i];                                                                      \
		for (size_t round = 0; round < rounds; round++) {                                                                \
			for (int r = 0; r < ROWS; r += 2) {                                                                      \
				const name##_vector *a = (const name##_vector *)rows + (size_t)r * SUMS, *b = a + SUMS;          \
				float u = weight[r], v = weight[r + 1];                                                          \
                                                                                                                                 \
				_Pragma("GCC unroll 8") for (int i = 0; i < SUMS; i++) sum[i] += u * a[i];                       \
				_Pragma("GCC unroll 8") for (int i = 0; i < SUMS; i++) sum[i] += v * b[i];                       \
			}                                                                                                        \
		}                                                                                                                \
		for (int i = 0; i < SUMS; i++)                                                                                   \
			((name##_vector *)acc)[i] = sum[i];                                                                      \
	}

STEPS(steps_baseline, 16, )
#ifdef __x86_64__
STEPS(steps_avx2, 32, __attribute__((target("avx2,fma"))))
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
STEPS(steps_avx512, 64, __attribute__((target("avx512f,avx2,fma"))))
#else
STEPS(steps_avx512, 64, __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512"))))
#endif
#endif

/* Return the loop for the instruction set of the device. */
static steps_fn *steps_of(const struct device *dev, size_t *ret_floats)
{
	*ret_floats = SUMS * 4;
	(void)dev; /* not every processor has a choice */
#ifdef __x86_64__
	if (cpu_state(dev)->rows == cpu_rows_at(2)) {
		*ret_floats = SUMS * 16;
		return steps_avx512;
	}
	if (cpu_state(dev)->rows == cpu_rows_at(1)) {
		*ret_floats = SUMS * 8;
		return steps_avx2;
	}
#endif
	return steps_baseline;
}

/* Run `rounds` on every thread at the same time. Return the duration, s; *ret_sum: the sum of all results, which prevents the
 * compiler from removing the computation. */
static double run_rounds(steps_fn *steps, const float *rows, const float *weight, size_t rounds, size_t floats, int threads,
			 double *ret_sum)
{
	double begun = clock_seconds(), sum = 0;

	(void)threads;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
	{
		float own[ROWS * FLOATS_MAX] __attribute__((aligned(64))), acc[FLOATS_MAX] __attribute__((aligned(64))) = {0};

		for (size_t i = 0; i < ROWS * floats; i++)
			own[i] = rows[i];
		steps(own, weight, rounds, acc);
		for (size_t i = 0; i < floats; i++)
			sum += (double)acc[i];
	}
	*ret_sum = sum;
	return clock_seconds() - begun;
}

int cpu_step_rate(struct device *dev, double *ret_per_s, struct err *err)
{
	float rows[ROWS * FLOATS_MAX], weight[ROWS];
	int threads = cpu_state(dev)->threads;
	size_t floats, rounds = 256;
	steps_fn *steps = steps_of(dev, &floats);
	double best = 0, took, sum;

	for (size_t i = 0; i < ROWS * FLOATS_MAX; i++)
		rows[i] = 1 + (float)(i % 7);
	for (int r = 0; r < ROWS; r++)
		weight[r] = 1e-6f * (float)(1 + r);
	do { /* the first run is also the warm-up, in which threads start and clock rates rise */
		rounds *= 2;
		run_rounds(steps, rows, weight, rounds, floats, threads, &sum);
		took = run_rounds(steps, rows, weight, rounds, floats, threads, &sum);
	} while (took < LEAST && rounds < (size_t)1 << 40);
	for (int i = 0; i < TRIES; i++) {
		took = run_rounds(steps, rows, weight, rounds, floats, threads, &sum);
		if (!(sum > 0))
			return err_set(err, EHWPOISON, "%s: a sum of positive numbers is %g", dev->name, sum);
		best = i == 0 || took < best ? took : best;
	}
	*ret_per_s = (double)threads * (double)rounds * (ROWS / 2) * (double)floats / best;
	return 0;
}
