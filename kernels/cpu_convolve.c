/* cpu_convolve.c - rows convolved in space: a thread for each piece of rows; every value is made by one thread in the order of j.
 */
#include "kernels/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE 512 /* results that stay in the nearest cache */

/* Results [first, first + count) of a row of single values: sums of shifted kernels, so that the loop is over neighbours.
 * mirror[n - 1 + d] = kernel[|d|]. */
static void convolve_row(const float *restrict y, int n, const float *restrict mirror, int first, int count, float *restrict out)
{
	for (int i = 0; i < count; i++)
		out[i] = 0;
	for (int j = 0; j < n; j++) {
		const float *restrict shifted = mirror + (n - 1 + first - j);
		float value = y[j];

		for (int i = 0; i < count; i++)
			out[i] += value * shifted[i];
	}
}

/* Values k .. k + count of result i. */
static void convolve_columns(const float *restrict y, int n, size_t n_inner, const float *restrict kernel, int i, size_t count,
			     float *restrict out)
{
	for (size_t k = 0; k < count; k++)
		out[k] = 0;
	for (int j = 0; j < n; j++) {
		const float *restrict from = y + (size_t)j * n_inner;
		float w = kernel[i < j ? j - i : i - j];

		for (size_t k = 0; k < count; k++)
			out[k] += w * from[k];
	}
}

int cpu_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, struct buf *ret,
		 struct err *err)
{
	int threads = cpu_state(y->dev)->threads;
	size_t size = n_outer * (size_t)n * n_inner, row = (size_t)n * n_inner;
	float *mirror;

	(void)threads;
	if (n < 1 || y->n != size || ret->n != size || y->mem == ret->mem)
		return err_set(err, EINVAL, "convolve: %zu x %d x %zu values out of a vector of %zu into one of %zu", n_outer, n,
			       n_inner, y->n, ret->n);
	mirror = malloc((2 * (size_t)n - 1) * sizeof(*mirror));
	if (!mirror)
		return err_set(err, ENOMEM, "convolve: out of memory");
	for (int i = 0; i < n; i++)
		mirror[n - 1 + i] = mirror[n - 1 - i] = kernel[i];
	if (n_inner == 1) {
#pragma omp parallel for num_threads(threads) schedule(static)
		for (size_t o = 0; o < n_outer; o++)
			for (int i = 0; i < n; i += LINE)
				convolve_row(y->mem + o * row, n, mirror, i, cpu_min(LINE, n - i), ret->mem + o * row + i);
	} else {
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
		for (size_t o = 0; o < n_outer; o++)
			for (int i = 0; i < n; i++)
				for (size_t k = 0; k < n_inner; k += LINE)
					convolve_columns(y->mem + o * row + k, n, n_inner, kernel, i,
							 n_inner - k < LINE ? n_inner - k : LINE,
							 ret->mem + o * row + (size_t)i * n_inner + k);
	}
	free(mirror);
	return 0;
}
