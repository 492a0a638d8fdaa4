/* SPDX-License-Identifier: Apache-2.0 */
/* Random geometry for tests of properties: numbers that follow from one seed, and sizes that are often those around the blocks of
 * vector loops. */
#ifndef TOMONODE_TESTS_KERNELS_DRAW_H
#define TOMONODE_TESTS_KERNELS_DRAW_H

#include "tests/test.h"

static inline double draw(uint64_t *seed, double lo, double hi)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return lo + (hi - lo) * (double)(*seed >> 11) / (double)(1ull << 53);
}

/* lo to hi, both included. */
static inline int draw_int(uint64_t *seed, int lo, int hi)
{
	return lo + (int)draw(seed, 0, hi - lo + 1);
}

/* Half of the sizes are next to a multiple of 8 or 16. */
static inline int draw_size(uint64_t *seed, int lo, int hi)
{
	int block = draw_int(seed, 0, 1) ? 8 : 16, n = draw_int(seed, lo, hi);

	if (draw_int(seed, 0, 1))
		n = (n + block / 2) / block * block + draw_int(seed, -1, 1);
	return n < lo ? lo : n > hi ? hi : n;
}

/* A ratio; its logarithm is uniform. */
static inline double draw_ratio(uint64_t *seed, double lo, double hi)
{
	return exp(draw(seed, log(lo), log(hi)));
}

/* The cases of a property: few in tier 1. */
static inline int draw_cases(int few)
{
	return test_tier() == 2 ? 20 * few : few;
}

#endif
