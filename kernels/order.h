/* SPDX-License-Identifier: Apache-2.0 */
/* The ascending order of numbers, for qsort(). NaN has no place in it. */
#ifndef TOMONODE_KERNELS_ORDER_H
#define TOMONODE_KERNELS_ORDER_H

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

#endif
