/* SPDX-License-Identifier: Apache-2.0 */
/* strides.c - copy an array row by row: a row is the part along the axis with the smallest strides of `to`. */
#include "kernels/strides.h"

#include <stdlib.h>

#define ROW ((size_t)16384) /* floats; longer rows are divided among threads */

static void swap_axes(struct strides *s, int a, int b)
{
	int64_t shape = s->shape[a], from = s->from[a], to = s->to[a];

	s->shape[a] = s->shape[b], s->from[a] = s->from[b], s->to[a] = s->to[b];
	s->shape[b] = shape, s->from[b] = from, s->to[b] = to;
	if (s->axis == a || s->axis == b)
		s->axis = a + b - s->axis;
}

static void remove_axis(struct strides *s, int k)
{
	for (int i = k; i + 1 < s->n; i++)
		swap_axes(s, i, i + 1);
	s->n--;
}

/* Return whether axis k continues axis k + 1. */
static bool continues_axis(const struct strides *s, int k)
{
	bool indexed = s->index && (s->axis == k || s->axis == k + 1);

	return !indexed && s->from[k] == s->from[k + 1] * s->shape[k + 1] && s->to[k] == s->to[k + 1] * s->shape[k + 1];
}

struct strides strides_simple(const struct strides *s)
{
	struct strides r = *s;

	for (int k = r.n - 1; k >= 0; k--)
		if (r.shape[k] == 1 && !(r.index && r.axis == k))
			remove_axis(&r, k);
	for (int i = 1; i < r.n; i++)
		for (int k = i; k > 0 && llabs(r.to[k - 1]) < llabs(r.to[k]); k--)
			swap_axes(&r, k - 1, k);
	for (int k = r.n - 2; k >= 0; k--)
		if (continues_axis(&r, k)) {
			r.shape[k + 1] *= r.shape[k];
			remove_axis(&r, k);
		}
	if (r.n == 0)
		r.shape[r.n++] = 1;
	return r;
}

static void copy_row(const struct strides *s, size_t first, size_t end, const float *from, float *to)
{
	int64_t a = s->from[s->n - 1], b = s->to[s->n - 1];
	const int32_t *index = s->index && s->axis == s->n - 1 ? s->index : NULL;

	for (size_t i = first; i < end; i++) {
		int64_t at = (int64_t)i, other = index ? index[i] : at;

		to[(s->scatter ? other : at) * b] = from[(s->scatter ? at : other) * a];
	}
}

void strides_copy(const struct strides *s, int threads, const float *from, float *to)
{
	struct strides r = strides_simple(s), outer = r;
	size_t length = (size_t)r.shape[r.n - 1], parts = (length + ROW - 1) / ROW, rows;

	outer.n--;
	rows = strides_count(&outer);
	threads = rows * length < ROW ? 1 : threads;
	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t i = 0; i < rows * parts; i++) {
		size_t first = i % parts * ROW, end = first + ROW < length ? first + ROW : length;
		int64_t at_from, at_to;

		strides_place(&outer, i / parts, &at_from, &at_to);
		copy_row(&r, first, end, from + at_from, to + at_to);
	}
}
