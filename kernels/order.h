/* SPDX-License-Identifier: Apache-2.0 */
/* The order of numbers and texts: for qsort(), ascending, where NaN has no place; and the smaller and larger of two. */
#ifndef TOMONODE_KERNELS_ORDER_H
#define TOMONODE_KERNELS_ORDER_H

#include <stddef.h>
#include <string.h>

static inline int order_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int order_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Of the texts that const char * point to. */
static inline int order_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline int order_smaller(int a, int b)
{
	return a < b ? a : b;
}

static inline int order_larger(int a, int b)
{
	return a > b ? a : b;
}

static inline size_t order_larger_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

#endif
