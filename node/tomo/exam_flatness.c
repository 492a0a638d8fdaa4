/* SPDX-License-Identifier: Apache-2.0 */
/* exam_flatness.c - does a flat field show an object? The image is divided into blocks, whose means have no noise.
 *
 * - The field is what is not several times darker than its bright part: heel effect, distance and gain change it by less than a
 *   factor of two. A collimator leaves a field that is convex: a rectangle, one without corners, a disc. Dark blocks between
 *   blocks of the field are an object: a breast, or a plate that is smaller than the field.
 * - A field that covers a small part of the image is that of a spot collimator.
 * - Within the field, heel effect and distance are smooth: the logarithm of a block is a polynomial of second order. What is left
 *   of the fit is more than that of the detector's gain if a plate covers a part of the field, or a thin breast. */
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/tomo/exam_internal.h"

#define BLOCKS 24      /* along either side */
#define BRIGHT 0.98    /* the brightest blocks but a fiftieth: a seam has fewer, a spot more */
#define DARK (1 / 3.0) /* of them */
#define OBJECT 0.05    /* least part of the field */
#define SPOT 0.25      /* of the image: a smaller field is no flat field */
#define ROUGH 0.08     /* root mean square of ln: tiles of a detector whose gains differ by 10 % have 0.06 */
#define TERMS 6	       /* 1, u, v, u^2, u v, v^2 */

struct blocks {
	int n_u, n_v;
	double mean[BLOCKS * BLOCKS];
	double limit; /* darker is outside the field */
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

/* Is the block in the field? Outside the image, none is. */
static bool is_field(const struct blocks *b, int u, int v)
{
	return u >= 0 && v >= 0 && u < b->n_u && v < b->n_v && b->mean[v * b->n_u + u] >= b->limit;
}

static bool sees_field(const struct blocks *b, int u, int v, int step_u, int step_v)
{
	for (; u >= 0 && v >= 0 && u < b->n_u && v < b->n_v; u += step_u, v += step_v)
		if (is_field(b, u, v))
			return true;
	return false;
}

/* Is the block between blocks of the field, along u, v, or a diagonal? */
static bool is_between(const struct blocks *b, int u, int v)
{
	static const int steps[][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};

	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
		if (sees_field(b, u, v, steps[k][0], steps[k][1]) && sees_field(b, u, v, -steps[k][0], -steps[k][1]))
			return true;
	return false;
}

/* Are all blocks around it in the field? The penumbra of a collimator is beside others. */
static bool is_within(const struct blocks *b, int u, int v)
{
	for (int j = v - 1; j <= v + 1; j++)
		for (int i = u - 1; i <= u + 1; i++)
			if (i >= 0 && j >= 0 && i < b->n_u && j < b->n_v && !is_field(b, i, j))
				return false;
	return true;
}

/* Solve the normal equations m x = y of the fit by elimination; false: they have no single solution. */
static bool solve_equations(double m[TERMS][TERMS], double y[TERMS])
{
	for (int k = 0; k < TERMS; k++) {
		if (!(m[k][k] > 1e-9))
			return false;
		for (int i = 0; i < TERMS; i++) {
			double f = i == k ? 0 : m[i][k] / m[k][k];

			for (int j = k; j < TERMS; j++)
				m[i][j] -= f * m[k][j];
			y[i] -= f * y[k];
		}
	}
	for (int k = 0; k < TERMS; k++)
		y[k] /= m[k][k];
	return true;
}

static void terms_of(const struct blocks *b, int u, int v, double ret[TERMS])
{
	double x = 2.0 * u / b->n_u - 1, y = 2.0 * v / b->n_v - 1;

	memcpy(ret, (double[]){1, x, y, x * x, x * y, y * y}, TERMS * sizeof(*ret));
}

/* Return the root mean square of what the polynomial leaves within the field; 0: the field is too small. */
static double find_rough(const struct blocks *b)
{
	double m[TERMS][TERMS] = {0}, y[TERMS] = {0}, term[TERMS], rest = 0;
	int n = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < b->n_u * b->n_v; k++) {
			double value;

			if (!is_field(b, k % b->n_u, k / b->n_u) || !is_within(b, k % b->n_u, k / b->n_u))
				continue;
			terms_of(b, k % b->n_u, k / b->n_u, term);
			value = log(b->mean[k]);
			n += pass == 0;
			for (int i = 0; i < TERMS; i++) {
				for (int j = 0; j < TERMS && pass == 0; j++)
					m[i][j] += term[i] * term[j];
				y[i] += pass == 0 ? term[i] * value : 0;
				value -= pass == 1 ? term[i] * y[i] : 0;
			}
			rest += pass == 1 ? value * value / n : 0;
		}
		if (pass == 0 && !solve_equations(m, y))
			return 0;
	}
	return sqrt(rest);
}

struct exam_flatness exam_flatness_of(const struct prep *p, const uint16_t *raw)
{
	struct blocks b = {.n_u = p->n_u < BLOCKS ? p->n_u : BLOCKS, .n_v = p->n_v < BLOCKS ? p->n_v : BLOCKS};
	struct exam_flatness ret = {0};
	int n = b.n_u * b.n_v, field = 0, object = 0;
	double sorted[BLOCKS * BLOCKS];

	for (int k = 0; k < n; k++)
		sorted[k] = b.mean[k] = block_mean(p, raw, k % b.n_u, k / b.n_u, &b);
	qsort(sorted, (size_t)n, sizeof(sorted[0]), order_doubles);
	b.limit = DARK * sorted[(int)(BRIGHT * (n - 1))];
	if (!(b.limit > 0))
		return ret;
	for (int k = 0; k < n; k++) {
		bool bright = is_field(&b, k % b.n_u, k / b.n_u);

		field += bright;
		object += !bright && is_between(&b, k % b.n_u, k / b.n_u);
	}
	ret.dark = (double)object / (field + object) < OBJECT ? 0 : (double)object / (field + object);
	ret.spot = (double)(field + object) / n < SPOT ? (double)(field + object) / n : 0;
	ret.rough = find_rough(&b);
	ret.rough = ret.rough > ROUGH && ret.dark == 0 && ret.spot == 0 ? ret.rough : 0;
	return ret;
}
