/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic.c - a two-dimensional view of slices that are added one by one.
 *
 * The blur is two running sums, first along y for a row of columns at once, then along x, in double, so that subtracting a value
 * removes it without a visible rounding error. Tiles of fixed size with a rim of `reach` voxels are independent of each other. */
#include "recon/dbt/synthetic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/order.h"

#define TILE_X 512
#define TILE_Y 128
#define REACH_MAX 255 /* voxels on either side */

struct synthetic {
	struct synthetic_conf conf;
	struct grid grid;
	int reach[2];
	int slice;   /* index of the next slice */
	float *sum;  /* sum of the slices, 1/mm */
	float *peak; /* largest detail, 1/mm */
};

static size_t count_pixels(const struct synthetic *s)
{
	return (size_t)s->grid.n[0] * (size_t)s->grid.n[1];
}

int synthetic_open(const struct synthetic_conf *conf, const struct grid *grid, struct synthetic **ret_synthetic, struct err *err)
{
	struct synthetic *s;

	for (int c = 0; c < 3; c++)
		if (grid->n[c] <= 0 || !(grid->h[c] > 0))
			return err_set(err, EINVAL, "synthetic view: grid axis %d: n=%d, spacing=%g mm", c, grid->n[c],
				       grid->h[c]);
	for (int c = 0; c < 2; c++)
		if (!(conf->blur >= 0 && conf->blur <= 2 * REACH_MAX * grid->h[c]))
			return err_set(err, EINVAL, "synthetic view: blur of %g mm; allowed with voxels of %g mm: 0 to %g",
				       conf->blur, grid->h[c], 2 * REACH_MAX * grid->h[c]);
	if (!(conf->detail >= 0 && conf->detail < INFINITY))
		return err_set(err, EINVAL, "synthetic view: detail of %g mm; allowed: finite, not negative", conf->detail);
	if (!(conf->floor >= 0 && conf->floor < INFINITY))
		return err_set(err, EINVAL, "synthetic view: floor of %g / mm; allowed: finite, not negative", conf->floor);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "synthetic view: out of memory");
	s->conf = *conf;
	s->grid = *grid;
	for (int c = 0; c < 2; c++)
		s->reach[c] = (int)fmax(0, lround((conf->blur / grid->h[c] - 1) / 2));
	s->sum = calloc(count_pixels(s), sizeof(*s->sum));
	s->peak = calloc(count_pixels(s), sizeof(*s->peak));
	if (!s->sum || !s->peak) {
		synthetic_close(s);
		return err_set(err, ENOMEM, "synthetic view: no memory for %d x %d pixels", grid->n[0], grid->n[1]);
	}
	*ret_synthetic = s;
	return 0;
}

struct synthetic *synthetic_close(struct synthetic *s)
{
	if (s) {
		free(s->sum);
		free(s->peak);
	}
	free(s);
	return NULL;
}

static void add_columns(const float *row, double sign, int n, double *columns)
{
	for (int i = 0; i < n; i++)
		columns[i] += sign * row[i];
}

static void add_row(struct synthetic *s, const float *f, int j, int x0, int x1, int from, const double *columns, int rows)
{
	int n_x = s->grid.n[0], reach = s->reach[0];
	float *sum = s->sum + (size_t)j * (size_t)n_x, *peak = s->peak + (size_t)j * (size_t)n_x, least = (float)s->conf.floor;
	double window = 0;

	for (int i = from; i < order_smaller(x0 + reach, n_x); i++)
		window += columns[i - from];
	for (int i = x0; i < x1; i++) {
		int lo = order_larger(i - reach, 0), hi = order_smaller(i + reach, n_x - 1);

		if (i + reach < n_x)
			window += columns[i + reach - from];
		float above = f[i] - (float)(window / ((double)rows * (hi - lo + 1))) - least;
		sum[i] += f[i];
		peak[i] = above > peak[i] ? above : peak[i];
		if (i - reach >= 0)
			window -= columns[i - reach - from];
	}
}

static void add_tile(struct synthetic *s, const float *slice, int x0, int y0)
{
	int n_x = s->grid.n[0], n_y = s->grid.n[1], reach = s->reach[1];
	int x1 = order_smaller(x0 + TILE_X, n_x), y1 = order_smaller(y0 + TILE_Y, n_y);
	int from = order_larger(x0 - s->reach[0], 0), end = order_smaller(x1 + s->reach[0], n_x);
	double columns[TILE_X + 2 * REACH_MAX] = {0};

	for (int j = order_larger(y0 - reach, 0); j < order_smaller(y0 + reach, n_y); j++)
		add_columns(slice + (size_t)j * (size_t)n_x + from, 1, end - from, columns);
	for (int j = y0; j < y1; j++) {
		int lo = order_larger(j - reach, 0), hi = order_smaller(j + reach, n_y - 1);

		if (j + reach < n_y)
			add_columns(slice + (size_t)(j + reach) * (size_t)n_x + from, 1, end - from, columns);
		add_row(s, slice + (size_t)j * (size_t)n_x, j, x0, x1, from, columns, hi - lo + 1);
		if (j - reach >= 0)
			add_columns(slice + (size_t)(j - reach) * (size_t)n_x + from, -1, end - from, columns);
	}
}

int synthetic_add(struct synthetic *s, const float *slice, struct err *err)
{
	int across = (s->grid.n[0] + TILE_X - 1) / TILE_X, down = (s->grid.n[1] + TILE_Y - 1) / TILE_Y;

	if (s->slice >= s->grid.n[2])
		return err_set(err, EINVAL, "synthetic view: all %d slices have already been added", s->grid.n[2]);
#pragma omp parallel for schedule(static)
	for (int t = 0; t < across * down; t++)
		add_tile(s, slice, t % across * TILE_X, t / across * TILE_Y);
	s->slice++;
	return 0;
}

int synthetic_image(const struct synthetic *s, float *ret_image, struct err *err)
{
	size_t n = count_pixels(s);
	float h = (float)s->grid.h[2], detail = (float)s->conf.detail;

	if (s->slice < s->grid.n[2])
		return err_set(err, EINVAL, "synthetic view: only %d of %d slices have been added", s->slice, s->grid.n[2]);
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++)
		ret_image[i] = h * s->sum[i] + detail * s->peak[i];
	return 0;
}
