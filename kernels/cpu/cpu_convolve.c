/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_convolve.c - convolve rows in space. The work is divided into pieces of rows; each value is computed by one thread, which
 * adds in the order of j. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>

#define RESULTS 32  /* results per unit of work */
#define COLUMNS 128 /* columns per unit of work */

struct loops {
	void (*row)(const float *y, int n, const float *mirror, float *out);
	void (*columns)(const float *y, int n, size_t n_inner, const float *mirror, int first, int end, size_t width, float *out);
};

/* A vector that may be stored at any address of a float. */
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));

#define CONVOLVE(name) baseline_##name
#define CONVOLVE_TARGET
#define CONVOLVE_VECTOR vector4
#define CONVOLVE_FLOATS 4
#include "kernels/cpu/cpu_convolve_body.h"

#ifdef __x86_64__
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

#define CONVOLVE(name) avx2_##name
#define CONVOLVE_TARGET __attribute__((target("avx2,fma")))
#define CONVOLVE_VECTOR vector8
#define CONVOLVE_FLOATS 8
#include "kernels/cpu/cpu_convolve_body.h"

#define CONVOLVE(name) avx512_##name
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
#define CONVOLVE_TARGET __attribute__((target("avx512f,avx2,fma")))
#else
#define CONVOLVE_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#endif
#define CONVOLVE_VECTOR vector16
#define CONVOLVE_FLOATS 16
#include "kernels/cpu/cpu_convolve_body.h"
#endif

/* Return the loops for the instruction set of the device. */
static const struct loops *loops_of(const struct device *dev)
{
#ifdef __x86_64__
	if (cpu_state(dev)->rows == cpu_rows_at(2))
		return &avx512_loops;
	if (cpu_state(dev)->rows == cpu_rows_at(1))
		return &avx2_loops;
#endif
	(void)dev;
	return &baseline_loops;
}

int cpu_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
		 struct buf *ret, struct err *err)
{
	const struct loops *loops = loops_of(y->dev);
	int threads = cpu_state(y->dev)->threads;
	size_t size = n_outer * (size_t)n * n_inner, row = (size_t)n * n_inner;
	float *mirror;

	(void)threads;
	if (n < 1 || y->n != size || ret->n != size || y->mem == ret->mem)
		return err_set(err, EINVAL,
			       "convolve: %zu x %d x %zu values do not fit the input of %zu and the output of %zu floats",
			       n_outer, n, n_inner, y->n, ret->n);
	if (transforms)
		return err_set(err, ENOTSUP, "convolve: the CPU device has no transforms");
	mirror = malloc((2 * (size_t)n - 1) * sizeof(*mirror));
	if (!mirror)
		return err_set(err, ENOMEM, "convolve: out of memory");
	for (int i = 0; i < n; i++)
		mirror[n - 1 + i] = mirror[n - 1 - i] = kernel[i];
	if (n_inner == 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
		for (size_t o = 0; o < n_outer; o++)
			loops->row(y->mem + o * row, n, mirror, ret->mem + o * row);
	} else {
#pragma omp parallel for collapse(3) num_threads(threads) schedule(static)
		for (size_t o = 0; o < n_outer; o++)
			for (size_t k = 0; k < n_inner; k += COLUMNS)
				for (int i = 0; i < n; i += RESULTS)
					loops->columns(y->mem + o * row + k, n, n_inner, mirror, i, cpu_min(i + RESULTS, n),
						       n_inner - k < COLUMNS ? n_inner - k : COLUMNS, ret->mem + o * row + k);
	}
	free(mirror);
	return 0;
}

bool cpu_transforms(const struct device *dev, int n)
{
	(void)dev;
	(void)n;
	return false;
}
