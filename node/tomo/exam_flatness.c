/* SPDX-License-Identifier: Apache-2.0 */
/* exam_flatness.c - does a flat field show an object? Heel effect, distance and gain change the field by less than a factor of
 * two. A collimator's shadow covers whole sides, which are left out. What is several times darker between them is an object: a
 * breast, or a plate that is smaller than the field. */
#include <stdlib.h>

#include "kernels/order.h"
#include "node/tomo/exam_internal.h"

#define BLOCKS 24      /* along either side: means of blocks have no noise */
#define BRIGHT 0.9     /* the brightest blocks but a tenth: a seam or a clip has fewer */
#define DARK (1 / 3.0) /* of them */
#define OBJECT 0.05    /* least part of the field */

struct blocks {
	int n_u, n_v;
	double mean[BLOCKS * BLOCKS];
};

static double block_mean(const struct prep *p, const uint16_t *raw, int u, int v, const struct blocks *b)
{
	int first_u = u * p->n_u / b->n_u, last_u = (u + 1) * p->n_u / b->n_u;
	int first_v = v * p->n_v / b->n_v, last_v = (v + 1) * p->n_v / b->n_v;
	double sum = 0;

	for (int j = first_v; j < last_v; j++)
		for (int i = first_u; i < last_u; i++)
			sum += exam_value_intensity(p, raw[(size_t)j * (size_t)p->n_u + (size_t)i]);
	return sum / ((last_u - first_u) * (last_v - first_v));
}

/* Blocks darker than `limit` in the rectangle from [0], [1] to before [2], [3] (u, v). */
static int count_dark(const struct blocks *b, const int of[4], double limit)
{
	int n = 0;

	for (int v = of[1]; v < of[3]; v++)
		for (int u = of[0]; u < of[2]; u++)
			n += b->mean[v * b->n_u + u] < limit;
	return n;
}

/* Leave out sides that are dark all along. */
static void leave_shadows(const struct blocks *b, double limit, int of[4])
{
	for (int side = 0; side < 4; side++) {
		int axis = side % 2;

		while (of[axis] < of[axis + 2]) {
			int line[4] = {of[0], of[1], of[2], of[3]};

			if (side < 2)
				line[axis + 2] = line[axis] + 1;
			else
				line[axis] = line[axis + 2] - 1;
			if (count_dark(b, line, limit) < (line[2] - line[0]) * (line[3] - line[1]))
				break;
			of[side] += side < 2 ? 1 : -1;
		}
	}
}

double exam_dark_part(const struct prep *p, const uint16_t *raw)
{
	struct blocks b = {.n_u = p->n_u < BLOCKS ? p->n_u : BLOCKS, .n_v = p->n_v < BLOCKS ? p->n_v : BLOCKS};
	int of[4] = {0, 0, b.n_u, b.n_v}, n = b.n_u * b.n_v;
	double sorted[BLOCKS * BLOCKS], part;

	for (int k = 0; k < n; k++)
		sorted[k] = b.mean[k] = block_mean(p, raw, k % b.n_u, k / b.n_u, &b);
	qsort(sorted, (size_t)n, sizeof(sorted[0]), order_doubles);
	leave_shadows(&b, DARK * sorted[(int)(BRIGHT * (n - 1))], of);
	n = (of[2] - of[0]) * (of[3] - of[1]);
	part = n > 0 ? (double)count_dark(&b, of, DARK * sorted[(int)(BRIGHT * (b.n_u * b.n_v - 1))]) / n : 0;
	return part < OBJECT ? 0 : part;
}
