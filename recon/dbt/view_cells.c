/* SPDX-License-Identifier: Apache-2.0 */
#include "recon/dbt/view_cells.h"

#include <float.h>
#include <math.h>

#include "kernels/avx2.h"
#include "kernels/order.h"

#define CELL 1.0     /* mm */
#define COLUMNS 1024 /* bins summed together */

struct view_cells view_cells_of(const struct scan *scan)
{
	struct view_cells c = {.bins_u = (int)fmin(ceil(0.99 * CELL / scan->h[0]), COLUMNS),
			       .bins_v = (int)fmin(ceil(0.99 * CELL / scan->h[1]), COLUMNS)};

	c.n_u = (scan->n_u + c.bins_u - 1) / c.bins_u;
	c.n_v = (scan->n_v + c.bins_v - 1) / c.bins_v;
	c.size_u = c.bins_u * scan->h[0];
	c.size_v = c.bins_v * scan->h[1];
	return c;
}

/* Add the bins of a row that have data, and count them. */
static inline __attribute__((always_inline)) void add_bins_loop(bool air, const float *restrict y, const float *restrict ok,
								int n, float *restrict sum, float *restrict count)
{
	for (int i = 0; i < n; i++) {
		int counts = ((ok[i] > 0) | (air & (ok[i] < 0))) & (fabsf(y[i]) <= FLT_MAX);

		sum[i] += counts ? y[i] : 0;
		count[i] += counts ? 1.0f : 0;
	}
}

FOR_AVX2(void, add_bins, (bool air, const float *y, const float *ok, int n, float *sum, float *count),
	 (air, y, ok, n, sum, count))

static void average_row(const struct scan *scan, const struct view_cells *c, bool air, const float *line, const float *valid,
			int row, float *mean)
{
	int v0 = row * c->bins_v, v1 = order_smaller(v0 + c->bins_v, scan->n_v), step = COLUMNS / c->bins_u * c->bins_u;

	for (int from = 0; from < scan->n_u; from += step) {
		float sum[COLUMNS] = {0}, count[COLUMNS] = {0};
		int m = order_smaller(step, scan->n_u - from);

		for (int v = v0; v < v1; v++)
			add_bins(air, line + (size_t)v * (size_t)scan->n_u + from, valid + (size_t)v * (size_t)scan->n_u + from,
				 m, sum, count);
		for (int i = 0; i < m; i += c->bins_u) {
			int bins = order_smaller(c->bins_u, m - i);
			double s = 0, k = 0;

			for (int b = i; b < i + bins; b++) {
				s += sum[b];
				k += count[b];
			}
			mean[(from + i) / c->bins_u] =
				2 * k >= bins * (v1 - v0) && k > 0 ? (float)fmax(0, s / k) : VIEW_CELLS_NO_DATA;
		}
	}
}

void view_cells_average(const struct scan *scan, const struct view_cells *c, bool air, const float *line, const float *valid,
			float *ret_mean)
{
#pragma omp parallel for schedule(static)
	for (int j = 0; j < c->n_v; j++)
		average_row(scan, c, air, line, valid, j, ret_mean + (size_t)j * (size_t)c->n_u);
}
