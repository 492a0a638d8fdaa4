/* cpu_paths_loops.c - the inner loops of the transaxial paths, for each instruction set.
 *
 * With AVX-512 the second entries of steps are packed by the processor; the others look for them one by one.
 */
#include "kernels/cpu_paths.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define ROUNDING 12582912.0f	 /* 1.5 2^23: adding it rounds to whole numbers, which are then the low bits */
#define ROUNDING_BITS 0x4b400000 /* the same as bits */

/* May lie anywhere in memory of floats. */
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

#define PATHS(name) baseline_paths_##name
#define PATHS_TARGET
#define baseline_paths_table baseline_paths
#include "kernels/cpu_paths_body.h"
#undef PATHS
#undef PATHS_TARGET
#undef PATHS_SPLIT

#ifdef __x86_64__
#define PATHS(name) avx2_paths_##name
#define PATHS_TARGET __attribute__((target("avx2,fma")))
#define avx2_paths_table avx2_paths
#include "kernels/cpu_paths_body.h"
#undef PATHS
#undef PATHS_TARGET
#undef PATHS_SPLIT

#define PATHS(name) avx512_paths_##name
#define PATHS_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#define PATHS_SPLIT split_avx512
#define avx512_paths_table avx512_paths

/* Where the entries of 16 steps lie: pair of slices, cut, and parity. */
PATHS_TARGET static inline __m512i places(__m512i row, __m512i b, __m512i lowest, __m512i highest, __m512i half)
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
		_mm512_mask_storeu_epi32(ret_place + i, live, places(row, b, lowest, highest, half));
		two = _mm512_cmp_ps_mask(rest, _mm512_setzero_ps(), _CMP_GT_OQ);
		if (!two)
			continue;
		b = places(row, _mm512_sub_epi32(b, _mm512_set1_epi32(1)), lowest, highest, half);
		_mm512_storeu_ps(ret_weight + end, _mm512_maskz_compress_ps(two, rest));
		_mm512_storeu_si512(ret_place + end, _mm512_maskz_compress_epi32(two, b));
		end += __builtin_popcount(two);
	}
	return end;
}

#include "kernels/cpu_paths_body.h"
#undef PATHS
#undef PATHS_TARGET
#undef PATHS_SPLIT
#endif
