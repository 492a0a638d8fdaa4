/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of stacks of parallel beams. A template without an include guard: cpu_lines_loops.c includes it once per
 * instruction set and defines LINES(name) for the names of the functions, LINES_TARGET for their attribute, LINES_VECTOR for the
 * widest vector type, LINES_INDEX for that of int of the same length, and LINES_FLOATS for the length. */

/* w * v + a of a number and vectors. Said in one way, because a compiler contracts some sums and not others (GCC 13: no chains),
 * and a slice must have the same bits in parts of every width. */
#ifndef LINES_FMA
#define LINES_FMA(w, v, a) ((a) + (w) * (v))
#define LINES_FMA4(w, v, a) ((a) + (w) * (v))
#endif

/* Not vectorised: separating the pairs and gathering costs more than it saves. */
LINES_TARGET __attribute__((optimize("no-tree-vectorize"))) static float LINES(dot)(const struct line_entry *e, int n,
										    const float *x, size_t column)
{
	float a = 0, b = 0, c = 0, d = 0;
	int k;

	for (k = 0; k + 4 <= n; k += 4) {
		a += e[k].weight * x[(size_t)e[k].column * column];
		b += e[k + 1].weight * x[(size_t)e[k + 1].column * column];
		c += e[k + 2].weight * x[(size_t)e[k + 2].column * column];
		d += e[k + 3].weight * x[(size_t)e[k + 3].column * column];
	}
	for (; k < n; k++)
		a += e[k].weight * x[(size_t)e[k].column * column];
	return (a + b) + (c + d);
}

LINES_TARGET static void LINES(add)(const struct line_entry *e, int n, float value, float *x, size_t column)
{
	for (int k = 0; k < n; k++)
		x[(size_t)e[k].column * column] += e[k].weight * value;
}

LINES_TARGET static void LINES(sums)(const struct line_entry *e, int n, const float *x, size_t column, int width, float *ret_sum)
{
	int at = 0;

	for (; at + 4 * LINES_FLOATS <= width; at += 4 * LINES_FLOATS) {
		LINES_VECTOR *to = (LINES_VECTOR *)(ret_sum + at), a = {0}, b = {0}, c = {0}, d = {0};

		for (int k = 0; k < n; k++) {
			const LINES_VECTOR *from = (const LINES_VECTOR *)(x + (size_t)e[k].column * column + at);
			float w = e[k].weight;

			a = LINES_FMA(w, from[0], a);
			b = LINES_FMA(w, from[1], b);
			c = LINES_FMA(w, from[2], c);
			d = LINES_FMA(w, from[3], d);
		}
		to[0] = a;
		to[1] = b;
		to[2] = c;
		to[3] = d;
	}
	for (; at + LINES_FLOATS <= width; at += LINES_FLOATS) {
		LINES_VECTOR a = {0};

		for (int k = 0; k < n; k++)
			a = LINES_FMA(e[k].weight, *(const LINES_VECTOR *)(x + (size_t)e[k].column * column + at), a);
		*(LINES_VECTOR *)(ret_sum + at) = a;
	}
	for (; at < width; at += 4) {
		vector4 a = {0};

		for (int k = 0; k < n; k++)
			a = LINES_FMA4(e[k].weight, *(const vector4 *)(x + (size_t)e[k].column * column + at), a);
		*(vector4 *)(ret_sum + at) = a;
	}
}

LINES_TARGET static void LINES(spread)(const struct line_entry *e, int n, const float *value, int width, float *x, size_t column)
{
	int at = 0;

	for (; at + 4 * LINES_FLOATS <= width; at += 4 * LINES_FLOATS) {
		const LINES_VECTOR *from = (const LINES_VECTOR *)(value + at), a = from[0], b = from[1], c = from[2], d = from[3];

		for (int k = 0; k < n; k++) {
			LINES_VECTOR *to = (LINES_VECTOR *)(x + (size_t)e[k].column * column + at);
			float w = e[k].weight;

			to[0] = LINES_FMA(w, a, to[0]);
			to[1] = LINES_FMA(w, b, to[1]);
			to[2] = LINES_FMA(w, c, to[2]);
			to[3] = LINES_FMA(w, d, to[3]);
		}
	}
	for (; at + LINES_FLOATS <= width; at += LINES_FLOATS) {
		const LINES_VECTOR a = *(const LINES_VECTOR *)(value + at);

		for (int k = 0; k < n; k++) {
			LINES_VECTOR *to = (LINES_VECTOR *)(x + (size_t)e[k].column * column + at);

			*to = LINES_FMA(e[k].weight, a, *to);
		}
	}
	for (; at < width; at += 4) {
		const vector4 a = *(const vector4 *)(value + at);

		for (int k = 0; k < n; k++) {
			vector4 *to = (vector4 *)(x + (size_t)e[k].column * column + at);

			*to = LINES_FMA4(e[k].weight, a, *to);
		}
	}
}

LINES_TARGET static void LINES(tile_view)(float *restrict sum, const struct cpu_tile_view *v)
{
	float low = v->first - (float)LINE_EDGE, high = v->last + (float)LINE_EDGE;

	for (int j = 0; j < CPU_TILE; j++)
		for (int i = 0; i < CPU_TILE; i++) {
			float at = v->at + (float)j * v->down + (float)i * v->across, to = at, value;
			int bin;

			to = to < v->first ? v->first : to;
			to = to > v->last ? v->last : to;
			bin = (int)(to > v->last - 1 ? v->last - 1
						     : to); /* positions below row[0], by less than 1 bin, round to it */
			value = v->row[bin] + (to - (float)bin) * (v->row[bin + 1] - v->row[bin]);
			sum[j * CPU_TILE + i] += ((at >= low) & (at <= high)) ? value : 0;
		}
}

LINES_TARGET static void LINES(tile_plain)(float *sum, int stride, const struct cpu_tile_view *view, int n)
{
	float here[CPU_TILE * CPU_TILE] = {0};

	for (int k = 0; k < n; k++)
		LINES(tile_view)(here, &view[k]);
	for (int j = 0; j < CPU_TILE; j++)
		for (int i = 0; i < CPU_TILE; i++)
			sum[j * stride + i] += here[j * CPU_TILE + i];
}

LINES_TARGET static void LINES(interpolate)(const struct cpu_bin_position *position, int n, const float *y, size_t bin, int width,
					    float *sum)
{
	int at = 0;

	for (; at + 4 * LINES_FLOATS <= width; at += 4 * LINES_FLOATS) {
		LINES_VECTOR *to = (LINES_VECTOR *)(sum + at), a = to[0], b = to[1], c = to[2], d = to[3];

		for (int k = 0; k < n; k++) {
			const LINES_VECTOR *low = (const LINES_VECTOR *)(y + position[k].from + at);
			const LINES_VECTOR *high = (const LINES_VECTOR *)(y + position[k].from + bin + at);
			float w = position[k].part, rest = 1 - w;

			a = a + rest * low[0] + w * high[0];
			b = b + rest * low[1] + w * high[1];
			c = c + rest * low[2] + w * high[2];
			d = d + rest * low[3] + w * high[3];
		}
		to[0] = a;
		to[1] = b;
		to[2] = c;
		to[3] = d;
	}
	for (; at + 4 <= width; at += 4) {
		vector4 *to = (vector4 *)(sum + at), a = *to;

		for (int k = 0; k < n; k++) {
			const float *low = y + position[k].from + at;

			a = a + (1 - position[k].part) * *(const vector4 *)low + position[k].part * *(const vector4 *)(low + bin);
		}
		*to = a;
	}
	for (; at < width; at++)
		for (int k = 0; k < n; k++) {
			const float *low = y + position[k].from + at;

			sum[at] = sum[at] + (1 - position[k].part) * low[0] + position[k].part * low[bin];
		}
}

/* Return window[index[i]], index >= 0; near_by: index < CPU_WINDOW. */
LINES_TARGET static inline __attribute__((always_inline)) LINES_VECTOR LINES(select)(const float *window, LINES_INDEX index,
										     bool near_by)
{
	LINES_VECTOR value;

	(void)near_by; /* not every instruction set uses it */
#ifdef LINES_SELECT
	value = LINES_SELECT(window, index, near_by);
#else
	for (int i = 0; i < LINES_FLOATS; i++)
		value[i] = window[index[i]];
#endif
	return value;
}

#ifndef LINES_MIN
LINES_TARGET static inline LINES_VECTOR LINES(choose)(LINES_INDEX which, LINES_VECTOR a, LINES_VECTOR b)
{
	return (LINES_VECTOR)((which & (LINES_INDEX)a) | (~which & (LINES_INDEX)b));
}
#define LINES_MIN(a, b) LINES(choose)((a) < (b), a, b)
#define LINES_MAX(a, b) LINES(choose)((a) > (b), a, b)
#endif

LINES_TARGET static inline LINES_VECTOR LINES(lanes)(int first)
{
	LINES_VECTOR v;

	for (int i = 0; i < LINES_FLOATS; i++)
		v[i] = (float)(first + i);
	return v;
}

/* Return a row's pixels from `base` on, CPU_WINDOW + 1 of them: where they are in the image, or in `copy`. */
LINES_TARGET static inline const float *LINES(window)(const struct cpu_bundle *b, const float *row, int base, float *copy)
{
	if (b->pixel == 1 && base >= 0 && base + CPU_WINDOW < b->width)
		return row + base;
	for (int i = 0; i <= CPU_WINDOW; i++) {
		int x = base + i, near = x < 0 ? 0 : x >= b->width ? b->width - 1 : x;

		copy[i] = x == near || b->rim ? row[(size_t)near * b->pixel] : 0;
	}
	return copy;
}

/* Add the rows [begin, end) to the sums. masked: only the rows of each ray. */
static inline LINES_TARGET __attribute__((always_inline)) void LINES(bundle_rows)(const struct cpu_bundle *b, int begin, int end,
										  bool masked, float *sum)
{
	const LINES_VECTOR zero = {0}, inverse = zero + b->inverse;
	LINES_VECTOR part[CPU_BUNDLE / LINES_FLOATS] = {{0}};
	float copy[CPU_WINDOW + 1];

	for (int k = begin; k < end; k++) {
		double low = b->low + k * b->slope, floor_low = __builtin_floor(low);
		const float *window = LINES(window)(b, b->image + (size_t)k * b->row, (int)floor_low, copy);

		for (int g = 0; g < CPU_BUNDLE / LINES_FLOATS; g++) {
			LINES_VECTOR at = (float)(low - floor_low) + LINES(lanes)(g * LINES_FLOATS) * b->pitch;
			LINES_INDEX pixel = __builtin_convertvector(at, LINES_INDEX);
			LINES_VECTOR from = at - __builtin_convertvector(pixel, LINES_VECTOR);
			LINES_VECTOR first = LINES_MIN((1 - from) * inverse, zero + 1);
			LINES_VECTOR x = LINES(select)(window, pixel, true), next = LINES(select)(window + 1, pixel, true);
			LINES_VECTOR value = next + first * (x - next);

			if (masked)
				for (int i = 0; i < LINES_FLOATS; i++)
					if (k < b->from[g * LINES_FLOATS + i] || k >= b->to[g * LINES_FLOATS + i])
						value[i] = 0;
			part[g] += value;
		}
	}
	for (int g = 0; g < CPU_BUNDLE / LINES_FLOATS; g++)
		for (int i = 0; i < LINES_FLOATS; i++)
			sum[g * LINES_FLOATS + i] += part[g][i];
}

#define BUNDLE_ROWS 64 /* rows whose sums are added first: keeps rounding small */

LINES_TARGET static void LINES(bundle)(const struct cpu_bundle *b, float *ret_sum)
{
	for (int i = 0; i < CPU_BUNDLE; i++)
		ret_sum[i] = 0;
	LINES(bundle_rows)(b, b->begin, b->whole, true, ret_sum);
	for (int k = b->whole; k < b->partial; k += BUNDLE_ROWS)
		LINES(bundle_rows)(b, k, k + BUNDLE_ROWS < b->partial ? k + BUNDLE_ROWS : b->partial, false, ret_sum);
	LINES(bundle_rows)(b, b->partial, b->end, true, ret_sum);
}

static inline LINES_TARGET __attribute__((always_inline)) void LINES(rays_of_view)(LINES_VECTOR *sum,
										   const struct cpu_tile_rays *v, bool near_by)
{
	const LINES_VECTOR zero = {0};

	for (int j = 0; j < CPU_TILE; j++)
		for (int g = 0; g < CPU_TILE / LINES_FLOATS; g++) {
			LINES_VECTOR at = v->at + (float)j * v->down + LINES(lanes)(g * LINES_FLOATS);
			LINES_INDEX ray = __builtin_convertvector((at - v->reach) * v->per_pixel, LINES_INDEX);
			LINES_VECTOR from = at - (__builtin_convertvector(ray, LINES_VECTOR) + 1) * v->pitch;

			for (int i = 0; i < v->rays; i++) {
				LINES_VECTOR low = from * v->inverse, weight;

				weight = LINES_MIN(low + v->inverse, zero + 1) - LINES_MAX(low, zero);
				sum[j * (CPU_TILE / LINES_FLOATS) + g] +=
					LINES_MAX(weight, zero) * LINES(select)(v->window + i, ray, near_by);
				from -= v->pitch;
			}
		}
}

LINES_TARGET static void LINES(rays)(float *sum, const struct cpu_tile_rays *view, int n)
{
	LINES_VECTOR here[CPU_TILE * CPU_TILE / LINES_FLOATS] = {{0}};

	for (int k = 0; k < n; k++)
		if (view[k].near_by)
			LINES(rays_of_view)(here, &view[k], true);
		else
			LINES(rays_of_view)(here, &view[k], false);
	for (int i = 0; i < CPU_TILE * CPU_TILE; i++)
		sum[i] += here[i / LINES_FLOATS][i % LINES_FLOATS];
}

const struct cpu_line_loops LINES(table) = {
	.dot = LINES(dot),
	.add = LINES(add),
	.sums = LINES(sums),
	.spread = LINES(spread),
#ifdef LINES_TILE
	.tile = LINES_TILE,
#else
	.tile = LINES(tile_plain),
#endif
	.interpolate = LINES(interpolate),
	.bundle = LINES(bundle),
	.rays = LINES(rays),
};

#undef LINES
#undef LINES_TARGET
#undef LINES_VECTOR
#undef LINES_FLOATS
#undef LINES_INDEX
#undef LINES_SELECT
#undef LINES_FMA
#undef LINES_FMA4
#undef LINES_MIN
#undef LINES_MAX
#undef LINES_TILE
