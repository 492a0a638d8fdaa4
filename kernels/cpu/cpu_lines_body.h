/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of stacks of parallel beams. A template without an include guard: cpu_lines_loops.c includes it once per
 * instruction set and defines LINES(name) for the names of the functions, LINES_TARGET for their attribute, LINES_VECTOR for the
 * widest vector type and LINES_FLOATS for its length. */

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

			a += w * from[0];
			b += w * from[1];
			c += w * from[2];
			d += w * from[3];
		}
		to[0] = a;
		to[1] = b;
		to[2] = c;
		to[3] = d;
	}
	for (; at + LINES_FLOATS <= width; at += LINES_FLOATS) {
		LINES_VECTOR a = {0};

		for (int k = 0; k < n; k++)
			a += e[k].weight * *(const LINES_VECTOR *)(x + (size_t)e[k].column * column + at);
		*(LINES_VECTOR *)(ret_sum + at) = a;
	}
	for (; at < width; at += 4) {
		vector4 a = {0};

		for (int k = 0; k < n; k++)
			a += e[k].weight * *(const vector4 *)(x + (size_t)e[k].column * column + at);
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

			to[0] += w * a;
			to[1] += w * b;
			to[2] += w * c;
			to[3] += w * d;
		}
	}
	for (; at + LINES_FLOATS <= width; at += LINES_FLOATS) {
		const LINES_VECTOR a = *(const LINES_VECTOR *)(value + at);

		for (int k = 0; k < n; k++)
			*(LINES_VECTOR *)(x + (size_t)e[k].column * column + at) += e[k].weight * a;
	}
	for (; at < width; at += 4) {
		const vector4 a = *(const vector4 *)(value + at);

		for (int k = 0; k < n; k++)
			*(vector4 *)(x + (size_t)e[k].column * column + at) += e[k].weight * a;
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
};

#undef LINES
#undef LINES_TARGET
#undef LINES_VECTOR
#undef LINES_FLOATS
#undef LINES_TILE
