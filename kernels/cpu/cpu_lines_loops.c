/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_lines_loops.c - the inner loops of stacks of parallel beams, for each instruction set. */
#include "kernels/cpu/cpu_lines.h"

#include <math.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* A vector that may be stored at any address of a float. */
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int index4 __attribute__((vector_size(16)));

#define LINES(name) baseline_lines_##name
#define LINES_TARGET
#define baseline_lines_table baseline_lines
#define LINES_VECTOR vector4
#define LINES_INDEX index4
#define LINES_FLOATS 4
#include "kernels/cpu/cpu_lines_body.h"

#ifdef __x86_64__
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int index8 __attribute__((vector_size(32)));
typedef int index16 __attribute__((vector_size(64)));
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

#define LINES(name) avx2_lines_##name
#define LINES_TARGET __attribute__((target("avx2,fma")))
#define avx2_lines_table avx2_lines
#define LINES_VECTOR vector8
#define LINES_INDEX index8
#define LINES_FMA(w, v, a) ((vector8)_mm256_fmadd_ps(_mm256_set1_ps(w), (__m256)(v), (__m256)(a)))
#define LINES_FMA4(w, v, a) ((vector4)_mm_fmadd_ps(_mm_set1_ps(w), (__m128)(v), (__m128)(a)))
#define LINES_MIN(a, b) ((vector8)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define LINES_MAX(a, b) ((vector8)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define LINES_SELECT(window, index, near_by) ((vector8)_mm256_i32gather_ps(window, (__m256i)(index), 4))
#define LINES_FLOATS 8
#define LINES_TILE tile_avx2

#define PART 8		    /* pixels of each row of a part of a tile */
#define MOST_ACROSS 0.9999f /* bins from pixel to pixel; then PART pixels are in PART adjacent bins, rounding included */

LINES_TARGET static void LINES(tile_plain)(float *sum, int stride, const struct cpu_tile_view *view, int n);

/* Add the values of a view to the sums of a part from pixel x on. The bins of a row of the part are adjacent; a permute
 * instruction selects from them. */
LINES_TARGET static inline __attribute__((always_inline)) void add_part(__m256 *sum, const struct cpu_tile_view *v, int x,
									bool edge)
{
	const __m256 lanes = _mm256_set_ps(7, 6, 5, 4, 3, 2, 1, 0), down = _mm256_set1_ps(v->down);
	const __m256 begin =
		_mm256_fmadd_ps(_mm256_add_ps(lanes, _mm256_set1_ps((float)x)), _mm256_set1_ps(v->across), _mm256_set1_ps(v->at));
	const __m256 first = _mm256_set1_ps(v->first), last = _mm256_set1_ps(v->last);
	const __m256 least = _mm256_set1_ps(v->first - (float)LINE_EDGE), most = _mm256_set1_ps(v->last + (float)LINE_EDGE);
	const __m256i last_bin = _mm256_set1_epi32((int)v->last - 1);
	const __m256i lowest = _mm256_set1_epi32(v->across >= 0 ? 0 : PART - 1); /* the pixel with the lowest bin */

#pragma GCC unroll 16
	for (int j = 0; j < CPU_TILE; j++) {
		__m256 at = _mm256_fmadd_ps(_mm256_set1_ps((float)j), down, begin), on, low, high, value;
		__m256i bin, base, index;
		const float *row;

		if (edge) {
			on = _mm256_and_ps(_mm256_cmp_ps(at, least, _CMP_GE_OQ), _mm256_cmp_ps(at, most, _CMP_LE_OQ));
			at = _mm256_min_ps(_mm256_max_ps(at, first), last);
		}
		bin = _mm256_cvttps_epi32(at);
		if (edge)
			bin = _mm256_min_epi32(bin, last_bin);
		base = _mm256_permutevar8x32_epi32(bin, lowest);
		row = v->row + _mm256_cvtsi256_si32(base);
		index = _mm256_sub_epi32(bin, base);
		at = _mm256_sub_ps(at, _mm256_cvtepi32_ps(bin));
		low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row), index);
		high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row + 1), index);
		value = _mm256_fmadd_ps(at, _mm256_sub_ps(high, low), low);
		sum[j] = _mm256_add_ps(sum[j], edge ? _mm256_and_ps(on, value) : value);
	}
}

LINES_TARGET static void tile_avx2(float *sum, int stride, const struct cpu_tile_view *view, int n)
{
	for (int x = 0; x < CPU_TILE; x += PART) {
		__m256 here[CPU_TILE];

#pragma GCC unroll 16
		for (int j = 0; j < CPU_TILE; j++)
			here[j] = _mm256_setzero_ps();
		for (int k = 0; k < n; k++)
			if (!view[k].near_by || !(fabsf(view[k].across) <= MOST_ACROSS))
				continue;
			else if (view[k].edge)
				add_part(here, &view[k], x, true);
			else
				add_part(here, &view[k], x, false);
#pragma GCC unroll 16
		for (int j = 0; j < CPU_TILE; j++) {
			float *to = sum + j * stride + x;

			_mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), here[j]));
		}
	}
	for (int k = 0; k < n; k++)
		if (!view[k].near_by || !(fabsf(view[k].across) <= MOST_ACROSS))
			LINES(tile_plain)(sum, stride, &view[k], 1);
}

#undef PART
#undef MOST_ACROSS
#include "kernels/cpu/cpu_lines_body.h"

#define LINES(name) avx512_lines_##name
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
#define LINES_TARGET __attribute__((target("avx512f,avx2,fma")))
#else
#define LINES_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#endif
#define avx512_lines_table avx512_lines
#define LINES_VECTOR vector16
#define LINES_INDEX index16
#define LINES_FMA(w, v, a) ((vector16)_mm512_fmadd_ps(_mm512_set1_ps(w), (__m512)(v), (__m512)(a)))
#define LINES_FMA4(w, v, a) ((vector4)_mm_fmadd_ps(_mm_set1_ps(w), (__m128)(v), (__m128)(a)))
#define LINES_MIN(a, b) ((vector16)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define LINES_MAX(a, b) ((vector16)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define LINES_SELECT(window, index, near_by)                                                                                     \
	((near_by) ? (vector16)_mm512_permutex2var_ps(_mm512_loadu_ps(window), (__m512i)(index), _mm512_loadu_ps((window) + 16)) \
		   : (vector16)_mm512_i32gather_ps((__m512i)(index), window, 4))
#define LINES_FLOATS 16
#define LINES_TILE tile_avx512

LINES_TARGET static void LINES(tile_plain)(float *sum, int stride, const struct cpu_tile_view *view, int n);

/* Add the values of a view to sums in registers. The view's bins are in two registers, from which permute instructions select. */
LINES_TARGET static inline __attribute__((always_inline)) void add_view(__m512 *sum, const struct cpu_tile_view *v, bool edge)
{
	const __m512 lanes = _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	const __m512 low = _mm512_loadu_ps(v->row), high = _mm512_loadu_ps(v->row + 16);
	const __m512 up_low = _mm512_sub_ps(_mm512_loadu_ps(v->row + 1), low);
	const __m512 up_high = _mm512_sub_ps(_mm512_loadu_ps(v->row + 17), high);
	const __m512 begin = _mm512_fmadd_ps(lanes, _mm512_set1_ps(v->across), _mm512_set1_ps(v->at));
	const __m512 down = _mm512_set1_ps(v->down), first = _mm512_set1_ps(v->first), last = _mm512_set1_ps(v->last);
	const __m512 least = _mm512_set1_ps(v->first - (float)LINE_EDGE), most = _mm512_set1_ps(v->last + (float)LINE_EDGE);
	const __m512i last_bin = _mm512_set1_epi32((int)v->last - 1);

#pragma GCC unroll 16
	for (int j = 0; j < CPU_TILE; j++) {
		__m512 at = _mm512_fmadd_ps(_mm512_set1_ps((float)j), down, begin), value;
		__mmask16 on = 0xffff;
		__m512i bin;

		if (edge) {
			on = _mm512_cmp_ps_mask(at, least, _CMP_GE_OQ) & _mm512_cmp_ps_mask(at, most, _CMP_LE_OQ);
			at = _mm512_min_ps(_mm512_max_ps(at, first), last);
		}
		bin = _mm512_cvttps_epi32(at);
		if (edge)
			bin = _mm512_min_epi32(bin, last_bin);
		value = _mm512_fmadd_ps(_mm512_sub_ps(at, _mm512_cvtepi32_ps(bin)), _mm512_permutex2var_ps(up_low, bin, up_high),
					_mm512_permutex2var_ps(low, bin, high));
		sum[j] = edge ? _mm512_mask_add_ps(sum[j], on, sum[j], value) : _mm512_add_ps(sum[j], value);
	}
}

LINES_TARGET static void tile_avx512(float *sum, int stride, const struct cpu_tile_view *view, int n)
{
	__m512 here[CPU_TILE];

#pragma GCC unroll 16
	for (int j = 0; j < CPU_TILE; j++)
		here[j] = _mm512_setzero_ps();
	for (int k = 0; k < n; k++)
		if (!view[k].near_by)
			LINES(tile_plain)(sum, stride, &view[k], 1);
		else if (view[k].edge)
			add_view(here, &view[k], true);
		else
			add_view(here, &view[k], false);
#pragma GCC unroll 16
	for (int j = 0; j < CPU_TILE; j++)
		_mm512_storeu_ps(sum + j * stride, _mm512_add_ps(_mm512_loadu_ps(sum + j * stride), here[j]));
}

#include "kernels/cpu/cpu_lines_body.h"
#endif
