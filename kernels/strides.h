/* SPDX-License-Identifier: Apache-2.0 */
/* Copy an array from one order in memory to another. C11, C++17 and CUDA C++. */
#ifndef TOMONODE_KERNELS_STRIDES_H
#define TOMONODE_KERNELS_STRIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRIDES_MAX 6

/* Element (i_0, i_1 ...), 0 <= i_k < shape[k], is at the sum of i_k from[k] before and at the sum of i_k to[k] after the copy,
 * floats; strides may be negative. With an index, index[i_k] takes the place of i_k on the axis `axis`: of `from`, or with
 * `scatter` of `to`. No two elements have one place in `to`. */
struct strides {
	int n;
	int64_t shape[STRIDES_MAX], from[STRIDES_MAX], to[STRIDES_MAX];
	int axis;
	bool scatter;
	const int32_t *index; /* shape[axis] elements in the memory of the device; NULL: none */
};

static inline TOMONODE_HD size_t strides_count(const struct strides *s)
{
	size_t n = 1;

	for (int k = 0; k < s->n; k++)
		n *= (size_t)s->shape[k];
	return n;
}

/* Compute both places of element number i, the last axis fastest. */
static inline TOMONODE_HD void strides_place(const struct strides *s, size_t i, int64_t *ret_from, int64_t *ret_to)
{
	*ret_from = *ret_to = 0;
	for (int k = s->n - 1; k >= 0; k--) {
		int64_t at = (int64_t)(i % (size_t)s->shape[k]), indexed = s->index && k == s->axis ? s->index[at] : at;

		i /= (size_t)s->shape[k];
		*ret_from += (s->scatter ? at : indexed) * s->from[k];
		*ret_to += (s->scatter ? indexed : at) * s->to[k];
	}
}

/* The same copy with as few axes as possible, those with the smallest strides of `to` last. */
struct strides strides_simple(const struct strides *s);

/* Copy in main memory; threads: largest number. */
void strides_copy(const struct strides *s, int threads, const float *from, float *to);

#ifdef __cplusplus
}
#endif
#endif
