/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_paths_loops.c - the inner loops of the transaxial paths, for each instruction set. With AVX-512 one instruction (compress)
 * collects the steps that have a second entry; the other tables test the steps one by one. */
#include "kernels/cpu/cpu_paths.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ROUNDING 12582912.0f	 /* 1.5 2^23: adding it rounds to an integer, which is then in the low bits */
#define ROUNDING_BITS 0x4b400000 /* the bits of ROUNDING */

/* A vector that may be stored at any address of a float. */
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

#define PATHS(name) baseline_paths_##name
#define PATHS_TARGET
#define baseline_paths_table baseline_paths
#define PATHS_VECTOR vector4
#define PATHS_FLOATS 4
#include "kernels/cpu/cpu_paths_body.h"

#ifdef __x86_64__
#define PATHS(name) avx2_paths_##name
#define PATHS_TARGET __attribute__((target("avx2,fma")))
#define avx2_paths_table avx2_paths
#define PATHS_VECTOR vector8
#define PATHS_FLOATS 8
#include "kernels/cpu/cpu_paths_body.h"

#define PATHS(name) avx512_paths_##name
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
#define PATHS_TARGET __attribute__((target("avx512f,avx2,fma")))
#else
#define PATHS_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#endif
#define PATHS_SPLIT split_avx512
#define PATHS_GATHER gather_avx512
#define PATHS_SCATTER scatter_avx512
#define avx512_paths_table avx512_paths
#define PATHS_VECTOR vector16
#define PATHS_FLOATS 16

/* Return the indices in the slab of the entries of 16 steps. b: their slices; the number of the slice pair is limited to
 * lowest..highest. */
PATHS_TARGET static inline __m512i entry_places(__m512i row, __m512i b, __m512i lowest, __m512i highest, __m512i half)
{
	__m512i pair = _mm512_min_epi32(_mm512_max_epi32(_mm512_srai_epi32(b, 1), lowest), highest);
	__mmask16 odd = _mm512_test_epi32_mask(b, _mm512_set1_epi32(1));

	pair = _mm512_add_epi32(row, pair);
	return _mm512_mask_add_epi32(pair, odd, pair, half);
}

PATHS_TARGET static int split_avx512(const struct cpu_slab *slab, const struct cpu_lane *lane, const struct cpu_ray *ray,
				     const float *t, const float *length, int n, float *ret_weight, int *ret_place)
{
	const __m512 slope = _mm512_set1_ps(ray->slope), z = _mm512_set1_ps(lane->z), inv = _mm512_set1_ps(ray->inv);
	const __m512 rise = _mm512_set1_ps(ray->rise), rounding = _mm512_set1_ps(ROUNDING);
	const __m512i lowest = _mm512_set1_epi32(lane->lowest), highest = _mm512_set1_epi32(lane->highest);
	const __m512i half = _mm512_set1_epi32(slab->half), next = _mm512_set1_epi32(16 * slab->row);
	const __m512i count = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__m512i row = _mm512_add_epi32(_mm512_mullo_epi32(count, _mm512_set1_epi32(slab->row)),
				       _mm512_set1_epi32(slab->front + lane->base / 2));
	int end = n;

	for (int i = 0; i < n; i += 16, row = _mm512_add_epi32(row, next)) {
		__mmask16 live = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff, two;
		__m512 step = _mm512_maskz_loadu_ps(live, length + i);
		__m512 zs = _mm512_fmadd_ps(slope, _mm512_maskz_loadu_ps(live, t + i), z);
		__m512 rounded = _mm512_add_ps(zs, rounding);
		__m512 above = _mm512_sub_ps(zs, _mm512_sub_ps(rounded, rounding));
		__m512 upper = _mm512_min_ps(step, _mm512_fmadd_ps(above, inv, rise)), rest = _mm512_sub_ps(step, upper);
		__m512i b = _mm512_sub_epi32(_mm512_castps_si512(rounded), _mm512_set1_epi32(ROUNDING_BITS));

		_mm512_mask_storeu_ps(ret_weight + i, live, upper);
		_mm512_mask_storeu_epi32(ret_place + i, live, entry_places(row, b, lowest, highest, half));
		two = _mm512_cmp_ps_mask(rest, _mm512_setzero_ps(), _CMP_GT_OQ);
		b = entry_places(row, _mm512_sub_epi32(b, _mm512_set1_epi32(1)), lowest, highest, half);
		_mm512_storeu_ps(ret_weight + end, _mm512_maskz_compress_ps(two, rest));
		_mm512_storeu_si512(ret_place + end, _mm512_maskz_compress_epi32(two, b));
		end += __builtin_popcount(two);
	}
	return end;
}

/* Return the mask of the first n of 16 floats. */
PATHS_TARGET static inline __mmask16 head_mask(int n)
{
	return n >= 16 ? (__mmask16)0xffff : n > 0 ? (__mmask16)((1u << n) - 1) : (__mmask16)0;
}

/* Return floats [at, at + 16) of a column of n floats; if `other` is not NULL, the weighted mean of the two columns. */
PATHS_TARGET static inline __m512 mixed_columns(const float *column, const float *other, __m512 share, int at, int n)
{
	__m512 c = _mm512_maskz_loadu_ps(head_mask(n - at), column + at);

	if (!other)
		return c;
	return _mm512_fmadd_ps(share, _mm512_sub_ps(_mm512_maskz_loadu_ps(head_mask(n - at), other + at), c), c);
}

/* If the number of slices is odd, the last pair has no odd slice and reads the zero after the column. */
PATHS_TARGET static void gather_avx512(const struct cpu_slab *slab, float *row, const float *column, const float *other,
				       float share)
{
	const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
	const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
	const __m512 s = _mm512_set1_ps(share);
	float *even = row + slab->front, *odd = even + slab->half;

	for (int at = 0; at < slab->n_z; at += 32) {
		__m512 lo = mixed_columns(column, other, s, at, slab->n_z),
		       hi = mixed_columns(column, other, s, at + 16, slab->n_z);
		__mmask16 room = head_mask((slab->n_z - at + 1) / 2);

		_mm512_mask_storeu_ps(even + at / 2, room, _mm512_permutex2var_ps(lo, evens, hi));
		_mm512_mask_storeu_ps(odd + at / 2, room, _mm512_permutex2var_ps(lo, odds, hi));
	}
}

PATHS_TARGET static void scatter_avx512(const struct cpu_slab *slab, const float *row, float weight, float *column)
{
	const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
	const __m512 w = _mm512_set1_ps(weight);
	const float *even = row + slab->front, *odd = even + slab->half;

	for (int at = 0; at < slab->n_z; at += 32) {
		__mmask16 room = head_mask((slab->n_z - at + 1) / 2), m0 = head_mask(slab->n_z - at),
			  m1 = head_mask(slab->n_z - at - 16);
		__m512 e = _mm512_maskz_loadu_ps(room, even + at / 2), o = _mm512_maskz_loadu_ps(room, odd + at / 2);
		__m512 lo = _mm512_permutex2var_ps(e, low, o), hi = _mm512_permutex2var_ps(e, high, o);

		_mm512_mask_storeu_ps(column + at, m0, _mm512_fmadd_ps(w, lo, _mm512_maskz_loadu_ps(m0, column + at)));
		_mm512_mask_storeu_ps(column + at + 16, m1, _mm512_fmadd_ps(w, hi, _mm512_maskz_loadu_ps(m1, column + at + 16)));
	}
}

#include "kernels/cpu/cpu_paths_body.h"
#endif
