/* The inner loops of stacks of parallel beams. Included by cpu_lines_loops.c once per instruction set, with LINES(name) to name a
 * function, LINES_TARGET for its attribute, LINES_VECTOR and LINES_FLOATS for its widest vector. No include guard: it is a
 * template.
 */

LINES_TARGET static float LINES(dot)(const struct line_entry *e, int n, const float *x, size_t column)
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

const struct cpu_line_loops LINES(table) = {
	.dot = LINES(dot),
	.add = LINES(add),
	.sums = LINES(sums),
	.spread = LINES(spread),
};

#undef LINES
#undef LINES_TARGET
#undef LINES_VECTOR
#undef LINES_FLOATS
