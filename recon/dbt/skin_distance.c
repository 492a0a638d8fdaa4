/* SPDX-License-Identifier: Apache-2.0 */
/* skin_distance.c - see recon/dbt/skin_distance.h: first along the columns, then along the rows. */
#include "recon/dbt/skin_distance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AIR 0.08 /* of the level of the tissue: less is air, if it is connected with the edge of the image */

/* Write for each cell of a column the row of its nearest air in this column; -1: there is none. */
static void find_in_column(const int n[2], const unsigned char *air, int x, int *row)
{
	int last = -1;

	for (int y = 0; y < n[1]; y++) {
		last = air[(size_t)y * (size_t)n[0] + (size_t)x] ? y : last;
		row[(size_t)y * (size_t)n[0] + (size_t)x] = last;
	}
	last = -1;
	for (int y = n[1] - 1; y >= 0; y--) {
		int *at = &row[(size_t)y * (size_t)n[0] + (size_t)x];

		last = air[(size_t)y * (size_t)n[0] + (size_t)x] ? y : last;
		if (last >= 0 && (*at < 0 || last - y < y - *at))
			*at = last;
	}
}

/* Return where on a row, in mm, the parabolas of two columns p < q with these heights meet. */
static double meeting_place(double h, int p, double height_p, int q, double height_q)
{
	return (height_q - height_p + h * h * ((double)q * q - (double)p * p)) / (2 * h * (q - p));
}

static double height_at(const double h[2], int y, int row)
{
	return h[1] * h[1] * ((double)y - row) * ((double)y - row);
}

/* The parabola of a column has the squared distance to its nearest air. column: n[0] ints of work. */
static void find_in_row(const int n[2], const double h[2], int y, const int *row, int *column, float *distance, int *nearest)
{
	int count = 0, at = 0;

	for (int x = 0; x < n[0]; x++) {
		if (row[x] < 0)
			continue;
		while (count >= 2) {
			int p = column[count - 2], q = column[count - 1];
			double fq = height_at(h, y, row[q]);

			if (meeting_place(h[0], q, fq, x, height_at(h, y, row[x])) >
			    meeting_place(h[0], p, height_at(h, y, row[p]), q, fq))
				break;
			count--;
		}
		column[count++] = x;
	}
	for (int x = 0; x < n[0]; x++) {
		int c;
		double dx;

		if (count == 0) {
			distance[x] = INFINITY;
			if (nearest)
				nearest[x] = -1;
			continue;
		}
		while (at + 1 < count && meeting_place(h[0], column[at], height_at(h, y, row[column[at]]), column[at + 1],
						       height_at(h, y, row[column[at + 1]])) <= h[0] * x)
			at++;
		c = column[at];
		dx = h[0] * (x - c);
		distance[x] = (float)sqrt(dx * dx + height_at(h, y, row[c]));
		if (nearest)
			nearest[x] = row[c] * n[0] + c;
	}
}

int skin_distance(const int n[2], const double h[2], const unsigned char *air, float *ret_distance, int *ret_nearest,
		  struct err *err)
{
	size_t cells;
	int *row, *column;

	for (int c = 0; c < 2; c++)
		if (n[c] <= 0 || !(h[c] > 0))
			return err_set(err, EINVAL, "distance to the skin: axis %d: n=%d, spacing=%g mm", c, n[c], h[c]);
	cells = (size_t)n[0] * (size_t)n[1];
	row = malloc(cells * sizeof(*row));
	column = malloc(cells * sizeof(*column));
	if (!row || !column) {
		free(row);
		free(column);
		return err_set(err, ENOMEM, "distance to the skin: no memory for %d x %d cells", n[0], n[1]);
	}
#pragma omp parallel for schedule(static)
	for (int x = 0; x < n[0]; x++)
		find_in_column(n, air, x, row);
#pragma omp parallel for schedule(static)
	for (int y = 0; y < n[1]; y++) {
		size_t at = (size_t)y * (size_t)n[0];

		find_in_row(n, h, y, row + at, column + at, ret_distance + at, ret_nearest ? ret_nearest + at : NULL);
	}
	free(row);
	free(column);
	return 0;
}

/* ---- air ---- */

struct flood {
	const float *value;
	double least;
	unsigned char *air;
	int *work;
	size_t waiting;
};

static void push_air(struct flood *f, int at)
{
	if (!f->air[at] && (double)f->value[at] < f->least) {
		f->air[at] = 1;
		f->work[f->waiting++] = at;
	}
}

static double mean_level(const float *value, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		double v = value[i] > 0 ? (double)value[i] : 0;

		sum += v;
		squares += v * v;
	}
	return sum > 0 ? squares / sum : 0;
}

double skin_air(const int n[2], const float *value, int *work, unsigned char *ret_air)
{
	int n_x = n[0], n_y = n[1];
	size_t all = (size_t)n_x * (size_t)n_y;
	double level = mean_level(value, all);
	struct flood f = {.value = value, .least = AIR * level, .air = ret_air, .work = work};

	memset(ret_air, 0, all);
	for (int x = 0; x < n_x; x++) {
		push_air(&f, x);
		push_air(&f, (n_y - 1) * n_x + x);
	}
	for (int y = 0; y < n_y; y++)
		push_air(&f, y * n_x + n_x - 1);
	while (f.waiting > 0) {
		int at = work[--f.waiting], x = at % n_x, y = at / n_x;

		if (x > 0)
			push_air(&f, at - 1);
		if (x < n_x - 1)
			push_air(&f, at + 1);
		if (y > 0)
			push_air(&f, at - n_x);
		if (y < n_y - 1)
			push_air(&f, at + n_x);
	}
	return level;
}
