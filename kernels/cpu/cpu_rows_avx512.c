/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rows_avx512.c - the row loops for AVX-512. Bins have about the size of voxels, so the inputs of 16 results are within 32
 * consecutive floats: two loads and a two-register permute per tap replace a gather. If the sizes differ too much for that, the
 * loops use gather instructions. */
#include "kernels/cpu/cpu_events.h"
#include "kernels/cpu/cpu_lines.h"
#include "kernels/cpu/cpu_paths.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx512f,fma")))

TARGET static inline __m512 lane_numbers(void)
{
	return _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

/* Return the mask of the first r < 16 lanes. */
TARGET static inline __mmask16 head_mask(int r)
{
	return (__mmask16)((1u << r) - 1);
}

/* Return 16 inputs at in[index], by permutes if they are within 32 floats. */
TARGET static inline __m512 pick_inputs(bool near_by, __m512 lo, __m512 hi, const float *in, __m512i index)
{
	return near_by ? _mm512_permutex2var_ps(lo, index, hi) : _mm512_i32gather_ps(index, in, 4);
}

TARGET static inline __attribute__((always_inline)) void
resample_blocks(float *acc, const float *row, const struct cpu_block *block, int n, float scale, bool near_by)
{
	const __m512 along = _mm512_mul_ps(_mm512_set1_ps(scale), lane_numbers());
	const __m512i one = _mm512_set1_epi32(1);

	for (int b = 0; b < n; b++) {
		const float *in = row + block[b].base;
		__m512 lo = _mm512_loadu_ps(in), hi = _mm512_loadu_ps(in + 16);
		__m512 at = _mm512_add_ps(_mm512_set1_ps(block[b].f), along);
		__m512i i = _mm512_cvttps_epi32(at);
		__m512 a = _mm512_sub_ps(at, _mm512_cvtepi32_ps(i));
		__m512 p0 = pick_inputs(near_by, lo, hi, in, i), p1 = pick_inputs(near_by, lo, hi, in, _mm512_add_epi32(i, one));
		__m512 sum = _mm512_add_ps(_mm512_load_ps(acc + b * CPU_BLOCK), p0);

		_mm512_store_ps(acc + b * CPU_BLOCK, _mm512_fmadd_ps(a, _mm512_sub_ps(p1, p0), sum));
	}
}

TARGET static void resample_row(float *acc, const float *row, const struct cpu_block *block, int n, float scale)
{
	if (15 * scale + 2 < 31) /* f < 1; the last input is floor(f + 15 scale) + 1 */
		resample_blocks(acc, row, block, n, scale, true);
	else
		resample_blocks(acc, row, block, n, scale, false);
}

TARGET static inline __attribute__((always_inline)) __m512 combine_16(const float *r, size_t stride, const float *w, int taps,
								      __mmask16 m)
{
	__m512 sum = _mm512_mul_ps(_mm512_set1_ps(w[0]), _mm512_maskz_loadu_ps(m, r));

	for (int t = 1; t < taps; t++)
		sum = _mm512_fmadd_ps(_mm512_set1_ps(w[t]), _mm512_maskz_loadu_ps(m, r + (size_t)t * stride), sum);
	return sum;
}

TARGET static inline __attribute__((always_inline)) void combine_rows(float *out, const float *r, size_t stride, const float *w,
								      int taps, int n)
{
	int i;

	for (i = 0; i + CPU_BLOCK <= n; i += CPU_BLOCK)
		_mm512_storeu_ps(out + i, combine_16(r + i, stride, w, taps, 0xffff));
	if (i < n)
		_mm512_mask_storeu_ps(out + i, head_mask(n - i), combine_16(r + i, stride, w, taps, head_mask(n - i)));
}

TARGET static void combine_taps(float *out, const float *r, size_t stride, const float *w, int taps, int n)
{
	if (taps == 1)
		combine_rows(out, r, stride, w, 1, n);
	else if (taps == 2)
		combine_rows(out, r, stride, w, 2, n);
	else if (taps == 3)
		combine_rows(out, r, stride, w, 3, n);
	else
		combine_rows(out, r, stride, w, taps, n);
}

TARGET static inline __attribute__((always_inline)) void gather_blocks(float *num, float *den, const float *q, const float *d,
								       const struct cpu_block *block, int n, bool first,
								       float scale, int taps, bool near_by)
{
	const __m512 along = _mm512_mul_ps(_mm512_set1_ps(1 / scale), lane_numbers()), l = lane_numbers();
	const __m512 vscale = _mm512_set1_ps(scale), vone = _mm512_set1_ps(1), zero = _mm512_setzero_ps();
	const __m512i one = _mm512_set1_epi32(1);

	for (int b = 0; b < n; b++) {
		const float *q0 = q + block[b].base, *d0 = d ? d + block[b].base : q0;
		__m512 q_lo = _mm512_loadu_ps(q0), q_hi = _mm512_loadu_ps(q0 + 16);
		__m512 d_lo = _mm512_loadu_ps(d0), d_hi = _mm512_loadu_ps(d0 + 16);
		__m512 at = _mm512_roundscale_ps(_mm512_add_ps(_mm512_set1_ps(block[b].f), along),
						 0x02 | 0x08); /* round up without raising an exception */
		__m512i i = _mm512_cvttps_epi32(at);
		__m512 away = _mm512_fmadd_ps(vscale, at, _mm512_sub_ps(_mm512_set1_ps(block[b].s), l));
		__m512 sum_q = first ? zero : _mm512_load_ps(num + b * CPU_BLOCK);
		__m512 sum_d = first || !d ? zero : _mm512_load_ps(den + b * CPU_BLOCK);

		for (int t = 0; t < taps; t++) {
			__m512 w = _mm512_max_ps(_mm512_sub_ps(vone, _mm512_abs_ps(away)), zero);

			sum_q = _mm512_fmadd_ps(w, pick_inputs(near_by, q_lo, q_hi, q0, i), sum_q);
			if (d)
				sum_d = _mm512_fmadd_ps(w, pick_inputs(near_by, d_lo, d_hi, d0, i), sum_d);
			away = _mm512_add_ps(away, vscale);
			i = _mm512_add_epi32(i, one);
		}
		_mm512_store_ps(num + b * CPU_BLOCK, sum_q);
		if (d)
			_mm512_store_ps(den + b * CPU_BLOCK, sum_d);
	}
}

TARGET static void gather_row(float *num, float *den, const float *q, const float *d, const struct cpu_block *block, int n,
			      bool first, float scale, int taps)
{
	if (1 + 15 / scale + (float)taps > 31) /* f <= 1; the last input is ceil(f + 15 / scale) + taps - 1 */
		gather_blocks(num, den, q, d, block, n, first, scale, taps, false);
	else if (taps == 2)
		gather_blocks(num, den, q, d, block, n, first, scale, 2, true);
	else if (taps == 3)
		gather_blocks(num, den, q, d, block, n, first, scale, 3, true);
	else
		gather_blocks(num, den, q, d, block, n, first, scale, taps, true);
}

/* Return the length of the rays of 16 bins in a slice, 0 for masked bins. */
TARGET static inline __m512 length_16(const float *mask, const float *len_u, float len_v, __mmask16 m)
{
	__m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(m, len_u), _mm512_set1_ps(len_v));

	if (mask)
		m = _mm512_mask_cmp_ps_mask(m, _mm512_maskz_loadu_ps(m, mask), _mm512_setzero_ps(), _CMP_GT_OQ);
	return _mm512_maskz_sqrt_ps(m, sum);
}

TARGET static void scale_lengths(float *q, float *d, const float *from_q, const float *from_d, const float *mask,
				 const float *len_u, float len_v, int n)
{
	for (int i = 0; i < n; i += CPU_BLOCK) {
		__mmask16 m = n - i < CPU_BLOCK ? head_mask(n - i) : 0xffff;
		__m512 len = length_16(mask ? mask + i : NULL, len_u + i, len_v, m);
		__mmask16 on = _mm512_cmp_ps_mask(len, _mm512_setzero_ps(), _CMP_GT_OQ);

		_mm512_mask_storeu_ps(q + i, m, _mm512_maskz_mul_ps(on, _mm512_maskz_loadu_ps(m, from_q + i), len));
		if (d)
			_mm512_mask_storeu_ps(d + i, m, _mm512_maskz_mul_ps(on, _mm512_maskz_loadu_ps(m, from_d + i), len));
	}
}

TARGET static void finish_row(float *out, const float *acc, bool add, const float *mask, const float *len_u, float len_v, int n)
{
	for (int i = 0; i < n; i += CPU_BLOCK) {
		__mmask16 m = n - i < CPU_BLOCK ? head_mask(n - i) : 0xffff;
		__m512 len = length_16(mask ? mask + i : NULL, len_u + i, len_v, m);
		__mmask16 on = _mm512_cmp_ps_mask(len, _mm512_setzero_ps(), _CMP_GT_OQ);
		__m512 p = _mm512_maskz_mul_ps(on, _mm512_maskz_loadu_ps(m, acc + i), len);

		_mm512_mask_storeu_ps(out + i, m, add ? _mm512_add_ps(_mm512_maskz_loadu_ps(m, out + i), p) : p);
	}
}

#define ROWS(name) name
#define ROWS_TARGET TARGET
#include "kernels/cpu/cpu_rules_body.h"

const struct cpu_rows cpu_rows_avx512 = {
	.name = "avx512f",
	.resample = resample_row,
	.combine = combine_taps,
	.gather = gather_row,
	.lengths = scale_lengths,
	.finish = finish_row,
	.pairs = pairs,
	.voxels = voxels,
	.bins = bins,
	.paths = &avx512_paths,
	.lines = &avx512_lines,
	.events = &avx512_events,
};

#endif
