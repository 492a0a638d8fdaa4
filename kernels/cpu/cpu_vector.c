/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_vector.c - vector operations of the CPU device.
 *
 * Sums are computed in double over chunks whose number does not depend on the threads; the chunks are added in order. */
#include "kernels/avx2.h"
#include "kernels/cpu/cpu.h"
#include "kernels/rules.h"
#include "kernels/shape.h"
#include "kernels/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS 1024
#define HISTOGRAM 65536
#define COUNTED 8192	    /* values that are counted together */
#define WORTH_THREADS 32768 /* smallest number of floats for which several threads are faster than one */

/* Execute the statement that follows for every index i of vector b, in parallel. */
#define EACH(b, i)                                                                                                               \
	const int threads = (b)->n < WORTH_THREADS ? 1 : cpu_state((b)->dev)->threads;                                           \
	(void)threads;                                                                                                           \
	_Pragma("omp parallel for num_threads(threads) schedule(static) if (threads > 1)") for (size_t i = 0; i < (b)->n; i++)

int cpu_fill(struct buf *x, float value, struct err *err)
{
	float *to = x->mem;

	(void)err;
	EACH(x, i)
	to[i] = value;
	return 0;
}

int cpu_copy(const struct buf *x, struct buf *ret, struct err *err)
{
	const float *from = x->mem;
	float *to = ret->mem;

	if (buf_same_size("copy", x, ret, err) < 0)
		return -EINVAL;
	EACH(x, i)
	to[i] = from[i];
	return 0;
}

int cpu_permute(struct device *dev, const struct strides *s, const float *from, float *to, struct err *err)
{
	(void)err;
	strides_copy(s, cpu_state(dev)->threads, from, to);
	return 0;
}

int cpu_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err)
{
	const float *a = x->mem, *b = y->mem;
	float *to = ret->mem;

	if (buf_same_size("multiply", x, y, err) < 0 || buf_same_size("multiply", x, ret, err) < 0)
		return -EINVAL;
	EACH(x, i)
	to[i] = a[i] * b[i];
	return 0;
}

int cpu_axpy(float a, const struct buf *x, struct buf *y, struct err *err)
{
	const float *from = x->mem;
	float *to = y->mem;

	if (buf_same_size("axpy", x, y, err) < 0)
		return -EINVAL;
	EACH(x, i)
	to[i] += a * from[i];
	return 0;
}

int cpu_threshold(struct buf *x, float at, float value, struct err *err)
{
	float *to = x->mem;

	(void)err;
	EACH(x, i)
	to[i] = to[i] > at ? value : 0;
	return 0;
}

int cpu_shape(const struct buf *columns, float away, float least, struct buf *x, struct err *err)
{
	const float *from = columns->mem;
	float *to = x->mem;

	if (buf_same_size("shape", columns, x, err) < 0)
		return -EINVAL;
	EACH(x, i)
	to[i] *= shape_weight(from[i], away, least);
	return 0;
}

static double term_sum(const float *x, const float *y, float floor, size_t i)
{
	(void)y;
	(void)floor;
	return x[i];
}

static double term_dot(const float *x, const float *y, float floor, size_t i)
{
	(void)floor;
	return (double)x[i] * y[i];
}

static double term_likelihood(const float *y, const float *p, float floor, size_t i)
{
	return p[i] > floor ? rule_log_likelihood(y[i], p[i]) : 0;
}

static inline double reduce_vector(const struct buf *x, const float *y, float floor,
				   double (*term)(const float *, const float *, float, size_t))
{
	size_t step = x->n / CHUNKS + 1;
	int threads = x->n < WORTH_THREADS ? 1 : cpu_state(x->dev)->threads;
	double part[CHUNKS], total = 0;
	const float *from = x->mem;

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (int c = 0; c < CHUNKS; c++) {
		size_t begin = (size_t)c * step, end = begin + step < x->n ? begin + step : x->n;
		double sum = 0;

		for (size_t i = begin; i < end; i++)
			sum += term(from, y, floor, i);
		part[c] = sum;
	}
	for (int c = 0; c < CHUNKS; c++)
		total += part[c];
	return total;
}

int cpu_sum(const struct buf *x, double *ret, struct err *err)
{
	(void)err;
	*ret = reduce_vector(x, NULL, 0, term_sum);
	return 0;
}

int cpu_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err)
{
	if (buf_same_size("dot", x, y, err) < 0)
		return -EINVAL;
	*ret = reduce_vector(x, y->mem, 0, term_dot);
	return 0;
}

int cpu_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err)
{
	if (buf_same_size("log_likelihood", y, p, err) < 0)
		return -EINVAL;
	*ret = reduce_vector(y, p->mem, floor, term_likelihood);
	return 0;
}

/* Count n values, at most INT_MAX of them. */
static inline __attribute__((always_inline)) void count_some_loop(const float *x, int n, float offset, float step,
								  struct tally *t)
{
	int bad = 0, below = 0, above = 0;

	for (int i = 0; i < n; i++) {
		float steps = steps_of(x[i], offset, step);
		int finite = isfinite(x[i]) != 0;

		bad += !finite;
		below += finite & (steps < 0);
		above += finite & (steps > STEPS_TOP);
	}
	t->bad += (size_t)bad;
	t->below += (size_t)below;
	t->above += (size_t)above;
}

FOR_AVX2(void, count_some, (const float *x, int n, float offset, float step, struct tally *t), (x, n, offset, step, t))

/* Compute histogram and counts of values [begin, end), some at a time, while they are in the cache. */
static void tally_range(const float *x, size_t begin, size_t end, float offset, float step, size_t stride, uint64_t *bins,
			struct tally *t)
{
	size_t sample = (begin + stride - 1) / stride * stride;

	for (size_t at = begin, to; at < end; at = to) {
		to = end - at < COUNTED ? end : at + COUNTED;
		count_some(x + at, (int)(to - at), offset, step, t);
		for (; sample < to; sample += stride)
			if (isfinite(x[sample]))
				bins[(size_t)steps_limited(steps_of(x[sample], offset, step))]++;
	}
}

int cpu_tally(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
	      struct err *err)
{
	size_t threads = x->n < WORTH_THREADS ? 1 : (size_t)cpu_state(x->dev)->threads, chunk = x->n / threads + 1;
	size_t below = 0, above = 0, bad = 0;
	uint64_t *own = NULL;

	if (stride < 1 || !(step > 0) || !isfinite(step) || !isfinite(offset))
		return err_set(err, EINVAL, "tally: step=%g, offset=%g, stride=%zu is not possible", (double)step, (double)offset,
			       stride);
	own = calloc(threads * HISTOGRAM, sizeof(*own));
	if (!own)
		return err_set(err, ENOMEM, "tally: out of memory");
#pragma omp parallel for num_threads((int)threads) schedule(static) if (threads > 1) reduction(+ : below, above, bad)
	for (size_t t = 0; t < threads; t++) {
		size_t begin = t * chunk < x->n ? t * chunk : x->n, end = x->n - begin < chunk ? x->n : begin + chunk;
		struct tally part = {0};

		tally_range(x->mem, begin, end, offset, step, stride, own + t * HISTOGRAM, &part);
		below += part.below;
		above += part.above;
		bad += part.bad;
	}
	for (size_t t = 0; t < threads; t++)
		for (size_t i = 0; i < HISTOGRAM; i++)
			bins[i] += own[t * HISTOGRAM + i];
	free(own);
	*ret_tally = (struct tally){.below = below, .above = above, .bad = bad};
	return 0;
}

int cpu_store(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err)
{
	const int threads = x->n < WORTH_THREADS ? 1 : cpu_state(x->dev)->threads;
	uint16_t *values = (uint16_t *)ret_values->mem;

	if (device_check_store(x, form, ret_values, err) < 0)
		return -EINVAL;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t i = 0; i < form->rows; i++)
		stored_rows(form, x->mem, i, i + 1, values);
	return 0;
}
