/* SPDX-License-Identifier: Apache-2.0 */
/* The row loops in plain C, written for the compiler's vectoriser. A template without an include guard: cpu_rows.c includes it
 * once per instruction set and defines ROWS(name) for the names of the functions, ROWS_TARGET for their attribute, ROWS_LANES for
 * the floats of a vector, and ROWS_VECTOR and ROWS_BITS for vectors of floats and of integers at any address of a float.
 *
 * If voxels and bins have about the same size, the inputs of ROWS_LANES adjacent results are adjacent, too, at most one further
 * or nearer. Then no value is picked by its index: each result is computed from all inputs that it may have, and the weight of
 * those that it does not have is 0. */

/* factor times 0, 1, 2, ... */
ROWS_TARGET static inline ROWS_VECTOR ROWS(along)(float factor)
{
	ROWS_VECTOR v;

	for (int l = 0; l < ROWS_LANES; l++)
		v[l] = factor * (float)l;
	return v;
}

/* x where it is above 0, else 0. */
ROWS_TARGET static inline ROWS_VECTOR ROWS(positive)(ROWS_VECTOR x)
{
	return (ROWS_VECTOR)((ROWS_BITS)x & (x > 0));
}

/* Linear interpolation; (ROWS_LANES - 1) (1 - scale) <= 1 and scale <= 1: result l lies at d, -1 <= d < 1, from input i + l,
 * where i is the input before the first result. */
ROWS_TARGET static void ROWS(resample_near)(float *acc, const float *row, const struct cpu_block *block, int n, float scale)
{
	const ROWS_VECTOR bend = ROWS(along)(scale - 1);

	for (int b = 0; b < n; b++)
		for (int l0 = 0; l0 < CPU_BLOCK; l0 += ROWS_LANES) {
			float first = block[b].f + scale * (float)l0; /* >= 0 */
			const float *in = row + block[b].base + (int)first;
			ROWS_VECTOR *out = (ROWS_VECTOR *)(acc + b * CPU_BLOCK + l0);
			ROWS_VECTOR d = bend + (first - (float)(int)first), up = ROWS(positive)(d);
			ROWS_VECTOR here = *(const ROWS_VECTOR *)in, above = *(const ROWS_VECTOR *)(in + 1);
			ROWS_VECTOR below = *(const ROWS_VECTOR *)(in - 1);

			*out += here + (up * (above - here) + (d - up) * (here - below));
		}
}

ROWS_TARGET static void ROWS(resample)(float *acc, const float *row, const struct cpu_block *block, int n, float scale)
{
	if (scale <= 1 && (ROWS_LANES - 1) * (1 - scale) <= 1) {
		ROWS(resample_near)(acc, row, block, n, scale);
		return;
	}
	for (int b = 0; b < n; b++) {
		const float *in = row + block[b].base;
		float *out = acc + b * CPU_BLOCK;
		float f = block[b].f;

		for (int l = 0; l < CPU_BLOCK; l++) {
			float at = f + scale * (float)l; /* >= 0 */
			int i = (int)at;

			out[l] += in[i] + (at - (float)i) * (in[i + 1] - in[i]);
		}
	}
}

ROWS_TARGET static void ROWS(combine)(float *restrict out, const float *restrict r, size_t stride, const float *w, int taps,
				      int n)
{
	const float *restrict r1 = r + stride, *restrict r2 = r + 2 * stride;
	float w0 = w[0], w1 = taps > 1 ? w[1] : 0, w2 = taps > 2 ? w[2] : 0;

	if (taps == 1) {
		for (int i = 0; i < n; i++)
			out[i] = w0 * r[i];
	} else if (taps == 2) {
		for (int i = 0; i < n; i++)
			out[i] = w0 * r[i] + w1 * r1[i];
	} else {
		for (int i = 0; i < n; i++)
			out[i] = w0 * r[i] + w1 * r1[i] + w2 * r2[i];
	}
	for (int t = 3; t < taps; t++) {
		const float *restrict rt = r + (size_t)t * stride;

		w0 = w[t];
		for (int i = 0; i < n; i++)
			out[i] += w0 * rt[i];
	}
}

/* The adjoint, for such scales: of the taps + 1 bins from i + l on, where i is the first that touches the first voxel. */
ROWS_TARGET static inline __attribute__((always_inline)) void ROWS(gather_near)(float *num, float *den, const float *q,
										const float *d, const struct cpu_block *block,
										int n, bool first, float scale, int taps)
{
	const ROWS_VECTOR bend = ROWS(along)(scale - 1), zero = {0};
	float step = 1 / scale;

	for (int b = 0; b < n; b++)
		for (int l0 = 0; l0 < CPU_BLOCK; l0 += ROWS_LANES) {
			float at = block[b].f + step * (float)l0; /* >= 0 */
			int i = (int)at + ((float)(int)at < at), from = block[b].base + i;
			ROWS_VECTOR *to_q = (ROWS_VECTOR *)(num + b * CPU_BLOCK + l0);
			ROWS_VECTOR *to_d = d ? (ROWS_VECTOR *)(den + b * CPU_BLOCK + l0) : to_q;
			ROWS_VECTOR sum_q = first ? zero : *to_q, sum_d = first ? zero : *to_d;
			ROWS_VECTOR away = bend + (scale * (float)i + (block[b].s - (float)l0));

			for (int t = 0; t <= taps; t++, away += scale) {
				ROWS_VECTOR w = ROWS(positive)(1 - (ROWS_VECTOR)((ROWS_BITS)away & 0x7fffffff));

				sum_q += w * *(const ROWS_VECTOR *)(q + from + t);
				if (d)
					sum_d += w * *(const ROWS_VECTOR *)(d + from + t);
			}
			*to_q = sum_q;
			if (d)
				*to_d = sum_d;
		}
}

ROWS_TARGET static void ROWS(gather)(float *restrict num, float *restrict den, const float *restrict q, const float *restrict d,
				     const struct cpu_block *block, int n, bool first, float scale, int taps)
{
	float step = 1 / scale;

	if (scale <= 1 && (ROWS_LANES - 1) * (step - 1) <= 1) {
		if (d && taps == 3)
			ROWS(gather_near)(num, den, q, d, block, n, first, scale, 3);
		else if (taps == 3)
			ROWS(gather_near)(num, den, q, NULL, block, n, first, scale, 3);
		else if (d)
			ROWS(gather_near)(num, den, q, d, block, n, first, scale, taps);
		else
			ROWS(gather_near)(num, den, q, NULL, block, n, first, scale, taps);
		return;
	}
	for (int b = 0; b < n; b++) {
		const float *q0 = q + block[b].base, *d0 = d ? d + block[b].base : q0;
		float sum_q[CPU_BLOCK] = {0}, sum_d[CPU_BLOCK] = {0};
		float f = block[b].f, s = block[b].s;

		for (int t = 0; t < taps; t++) {
			for (int l = 0; l < CPU_BLOCK; l++) {
				float at = f + step * (float)l; /* >= 0 */
				int i = (int)at;
				float w;

				i += (float)i < at; /* round up */
				i += t;
				w = 1 - fabsf(scale * (float)i + (s - (float)l));
				w = w > 0 ? w : 0;
				sum_q[l] += w * q0[i];
				sum_d[l] += w * d0[i];
			}
		}
		for (int l = 0; l < CPU_BLOCK; l++)
			num[b * CPU_BLOCK + l] = sum_q[l] + (first ? 0 : num[b * CPU_BLOCK + l]);
		if (d)
			for (int l = 0; l < CPU_BLOCK; l++)
				den[b * CPU_BLOCK + l] = sum_d[l] + (first ? 0 : den[b * CPU_BLOCK + l]);
	}
}

ROWS_TARGET static void ROWS(lengths)(float *restrict q, float *restrict d, const float *restrict from_q,
				      const float *restrict from_d, const float *restrict mask, const float *restrict len_u,
				      float len_v, int n)
{
	for (int i = 0; i < n; i++) {
		float len = sqrtf(len_u[i] + len_v);

		if (mask)
			len = mask[i] > 0 ? len : 0;
		q[i] = len > 0 ? from_q[i] * len : 0; /* a masked bin may hold any value, even NaN */
		if (d)
			d[i] = len > 0 ? from_d[i] * len : 0;
	}
}

ROWS_TARGET static void ROWS(finish)(float *restrict out, const float *restrict acc, bool add, const float *restrict mask,
				     const float *restrict len_u, float len_v, int n)
{
	for (int i = 0; i < n; i++) {
		float p = acc[i] * sqrtf(len_u[i] + len_v);

		p = !mask || mask[i] > 0 ? p : 0;
		out[i] = add ? out[i] + p : p;
	}
}

#include "kernels/cpu/cpu_rules_body.h"

static const struct cpu_rows ROWS(table) = {
	.name = ROWS_NAME,
	.resample = ROWS(resample),
	.combine = ROWS(combine),
	.gather = ROWS(gather),
	.lengths = ROWS(lengths),
	.finish = ROWS(finish),
	.pairs = ROWS(pairs),
	.voxels = ROWS(voxels),
	.bins = ROWS(bins),
	.paths = &ROWS(paths),
	.lines = &ROWS(lines),
	.events = &ROWS(events),
};
