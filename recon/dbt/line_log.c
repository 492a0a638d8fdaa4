/* SPDX-License-Identifier: Apache-2.0 */
/* line_log.c - logarithms rounded to float, in loops that the compiler vectorises.
 *
 * x = 2^k z with z in [sqrt(1/2), sqrt(2)), and log z = 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = (z - 1) / (z + 1). The series
 * ends after s^15: what is left out is less than 4e-14 of the result, rounding adds some 1e-15. So the result is far more
 * accurate than a float, and only next to the middle between two floats it does not decide which of them is the nearest. There
 * the C library decides, as for every number without this file; it is about one number in 100000. */
#include "recon/dbt/line_log.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 64		     /* numbers that the C library computes if it has to compute one of them */
#define ERROR 2e-13		     /* more than the largest relative error, also that of the C library */
#define MOST 1e15		     /* larger numbers, and those that are not finite, are left to the C library */
#define SQRT_HALF 0x3fe6a09e00000000 /* its bits, without the last ones */
#define EXPONENT 0x4330000000000000  /* the bits of 2^52, whose last bit is worth 1 */
#define LN_2 0.693147180559945309417

static inline __attribute__((always_inline)) uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline __attribute__((always_inline)) double from_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Compute n numbers; return whether the C library has to compute them. */
static inline __attribute__((always_inline)) int log_loop(int n, const double *restrict x, float *restrict ret)
{
	int doubt = 0;

	for (int i = 0; i < n; i++) {
		uint64_t bits = bits_of(x[i]), k = (bits - SQRT_HALF) >> 52;
		double z = from_bits(bits - (k << 52)), s = (z - 1) / (z + 1), s2 = s * s, y;
		float low, high;

		y = 1.0 / 15;
		y = y * s2 + 1.0 / 13;
		y = y * s2 + 1.0 / 11;
		y = y * s2 + 1.0 / 9;
		y = y * s2 + 1.0 / 7;
		y = y * s2 + 1.0 / 5;
		y = y * s2 + 1.0 / 3;
		y = (from_bits(k | EXPONENT) - from_bits(EXPONENT)) * LN_2 + 2 * (s + s * s2 * y);
		low = (float)(y * (1 - ERROR));
		high = (float)(y * (1 + ERROR));
		ret[i] = low;
		doubt |= (low != high) | !(x[i] <= MOST);
	}
	return doubt;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static int log_avx2(int n, const double *x, float *ret)
{
	return n == BLOCK ? log_loop(BLOCK, x, ret) : log_loop(n, x, ret);
}

static int log_block(int n, const double *x, float *ret)
{
	return __builtin_cpu_supports("avx2") ? log_avx2(n, x, ret) : log_loop(n, x, ret);
}
#else
static int log_block(int n, const double *x, float *ret)
{
	return log_loop(n, x, ret);
}
#endif

void line_log(int n, const double *x, float *ret)
{
	for (int from = 0; from < n; from += BLOCK) {
		int m = n - from < BLOCK ? n - from : BLOCK;

		if (log_block(m, x + from, ret + from))
			for (int i = from; i < from + m; i++)
				ret[i] = (float)log(x[i]);
	}
}
