/* SPDX-License-Identifier: Apache-2.0 */
/* air_cells.c - divide a projection into cells of about 1 mm, with the mean intensity and the noise of their bins.
 *
 * Noise is that of counting: the variance of a bin is proportional to its intensity. The factor is the median over the cells of
 * (variance / mean), with the variance from differences of neighbouring bins, which shading does not change and which edges
 * change in few cells. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/avx2.h"
#include "recon/dbt/air_internal.h"
#include "recon/dbt/line_log.h"
#include "recon/dbt/prep_internal.h"

#define CELL_MOST 1.0	 /* mm */
#define CELLS_ACROSS 150 /* a small detector has smaller cells, so that 1 % of it is more than one row of them */
#define STEP_SIGMAS 7.1	 /* largest step by noise: five standard deviations of a difference */
#define PAIR_ROWS 2	 /* differences are taken in each second row of a cell; they need half of the time */
#define BLOCK 256	 /* cells divided by the open field at a time */
#define LINE 32		 /* stored values in a line of the cache */
#define ROWS_MOST 65536	 /* this number of stored values fits 32 bits */

static int cell_bins(int n, double pitch, double size)
{
	return air_smaller((int)fmax(1, floor(size / pitch)), n);
}

int air_cells_make(const struct prep *p, const double pitch[2], struct cells *ret, struct err *err)
{
	double size = fmin(CELL_MOST, fmin(p->n_u * pitch[0], p->n_v * pitch[1]) / CELLS_ACROSS);
	struct cells c = {.bins_u = cell_bins(p->n_u, pitch[0], size), .bins_v = cell_bins(p->n_v, pitch[1], size)};
	size_t n;

	c.n_u = (p->n_u + c.bins_u - 1) / c.bins_u;
	c.n_v = (p->n_v + c.bins_v - 1) / c.bins_v;
	c.size[0] = c.bins_u * pitch[0];
	c.size[1] = c.bins_v * pitch[1];
	c.half[0] = p->n_u * pitch[0] / 2;
	c.half[1] = p->n_v * pitch[1] / 2;
	n = (size_t)c.n_u * (size_t)c.n_v;
	c.cell = malloc(n * (sizeof(*c.cell) + sizeof(*c.point) + sizeof(*c.work) + sizeof(*c.sorted)));
	if (!c.cell)
		return err_set(err, ENOMEM, "air: no memory for %d x %d cells", c.n_u, c.n_v);
	c.point = (struct point *)(c.cell + n);
	c.work = (int *)(c.point + n);
	c.sorted = (float *)(c.work + n);
	*ret = c;
	return 0;
}

struct bins {
	double sum, squares;
	int n, over, pairs, all;
};

/* Add the bins of one detector row to a cell; pairs: also their differences, which reach into the next cell. */
static void add_bins(const struct prep *p, int over_code, const uint16_t *row, int from, int end, bool pairs, struct bins *b)
{
	for (int u = from; u < end; u++) {
		bool over = row[u] == over_code, ok = !over && !air_is_padding(p, row[u]);
		bool pair = pairs && ok && u + 1 < p->n_u && row[u + 1] != over_code && !air_is_padding(p, row[u + 1]);
		double step = pair ? (double)row[u + 1] - row[u] : 0;

		b->sum += ok ? (p->inverted ? p->max_value - row[u] : row[u]) - p->offset : 0;
		b->squares += step * step;
		b->n += ok;
		b->over += over;
		b->pairs += pair;
		b->all++;
	}
}

/* Working memory of a row of cells, one number for each detector column: sums over its rows, and means of the cells. */
struct columns {
	double *mean;
	float *log;
	uint32_t *values, *squares; /* squares: of the differences to the next column; 0 in the last */
	uint16_t *marks;	    /* whether there is padding or a value over range */
};

/* Add two rows of width n_u, or one (next == NULL), and the squared differences of the first. Return a number that is not below
 * the largest difference. */
static inline __attribute__((always_inline)) uint16_t add_pair(const uint16_t *restrict row, const uint16_t *restrict next,
							       int n_u, uint32_t *restrict values, uint32_t *restrict squares)
{
	uint16_t most = 0;

	for (int u = 0; u < n_u - 1; u++) {
		uint16_t a = row[u], b = row[u + 1], step = (uint16_t)(a > b ? a - b : b - a);

		values[u] += next ? (uint32_t)a + next[u] : a;
		most |= step;
		squares[u] += (uint32_t)step * step;
	}
	values[n_u - 1] += next ? (uint32_t)row[n_u - 1] + next[n_u - 1] : row[n_u - 1];
	return most;
}

/* Add up n rows of width n_u; integers, which are exact, and loops that the compiler vectorises. Return false if a sum may not
 * fit. */
static inline __attribute__((always_inline)) bool add_columns_loop(const uint16_t *raw, int n_u, int n, struct columns c)
{
	size_t width = (size_t)n_u;
	uint16_t most = 0;

	memset(c.values, 0, width * sizeof(*c.values));
	memset(c.squares, 0, width * sizeof(*c.squares));
	for (int v = 0; v + 1 < n; v += PAIR_ROWS) {
		for (size_t u = 0; v + 4 <= n && u < 2 * width; u += LINE) /* the processor's own prefetch ends with a page */
			__builtin_prefetch(raw + (size_t)(v + 2) * width + u);
		most |= add_pair(raw + (size_t)v * width, raw + (size_t)(v + 1) * width, n_u, c.values, c.squares);
	}
	if (n % PAIR_ROWS)
		most |= add_pair(raw + (size_t)(n - 1) * width, NULL, n_u, c.values, c.squares);
	return n <= ROWS_MOST && (uint64_t)most * most * (uint64_t)n <= UINT32_MAX;
}

FOR_AVX2(bool, add_columns, (const uint16_t *raw, int n_u, int n, struct columns c), (raw, n_u, n, c))

/* Return the same as add_bins() for the columns from..end-1 of n rows without padding and values over range. */
static struct bins add_plain_bins(const struct prep *p, struct columns c, int from, int end, int n)
{
	int last = air_smaller(end, p->n_u - 1), all = n * (end - from);
	uint64_t sum = 0, squares = 0;

	for (int u = from; u < end; u++) {
		sum += c.values[u];
		squares += c.squares[u];
	}
	return (struct bins){
		.sum = (p->inverted ? p->max_value * all - (double)sum : (double)sum) - p->offset * all,
		.squares = (double)squares,
		.n = all,
		.pairs = (n + PAIR_ROWS - 1) / PAIR_ROWS * (last - from),
		.all = all,
	};
}

/* Return the mean of n squares of normal numbers whose median is 1 (Wilson and Hilferty 1931). */
static double mean_of_median(int n)
{
	double root = 1 - 2.0 / (9 * n);

	return 1 / (root * root * root);
}

/* Set a cell, except its logarithm; return the number whose logarithm it is. factor: mean_of_median(b->pairs). */
static double finish_cell(const struct bins *b, double factor, struct cell *ret)
{
	double mean = b->n > 0 ? b->sum / b->n : 0;

	*ret = (struct cell){.kind = CELL_EMPTY, .mean = mean > 1 ? (float)mean : 1, .variance = -1};
	if (2 * b->over >= b->all && b->over > 0)
		ret->kind = CELL_OVER;
	else if (2 * b->n >= b->all && b->n > 0)
		ret->kind = CELL_DATA;
	if (b->pairs > 0 && mean > 0)
		ret->variance = (float)(b->squares / b->pairs / 2 / mean * factor);
	return mean > 1 ? mean : 1;
}

/* Add up the rows of a row of cells, and mark the columns that have values that do not count. Return whether cells may be made of
 * the columns: with values that do not count, the sums must be exact, so that the method makes no difference. */
static bool add_rows(const struct prep *p, int over_code, const uint16_t *rows, int n, struct columns columns)
{
	const struct limits lim = {p->has_padding ? p->padding_lo : 1, p->has_padding ? p->padding_hi : 0, PREP_VALUES,
				   over_code};

	if (p->offset != floor(p->offset) && (p->has_padding || over_code >= 0))
		return false;
	prep_mark(rows, p->n_u, n, p->n_u, lim, columns.marks);
	return add_columns(rows, p->n_u, n, columns);
}

/* Return whether a column from..last is marked. */
static bool is_marked(struct columns columns, int from, int last)
{
	uint16_t any = 0;

	for (int u = from; u <= last; u++)
		any |= columns.marks[u];
	return any;
}

/* Fill row j of the cells. */
static size_t fill_row(const struct prep *p, int over_code, const uint16_t *raw, const struct cells *c, int j,
		       struct columns columns)
{
	struct cell *cell = c->cell + (size_t)j * (size_t)c->n_u;
	int first = j * c->bins_v, n = air_smaller(c->bins_v, p->n_v - first);
	const uint16_t *rows = raw + (size_t)first * (size_t)p->n_u;
	bool added = add_rows(p, over_code, rows, n, columns);
	double factor = 0;
	size_t n_data = 0;
	int pairs = 0;

	for (int i = 0; i < c->n_u; i++) {
		int from = i * c->bins_u, end = air_smaller(from + c->bins_u, p->n_u);
		bool plain =
			added && !is_marked(columns, from, air_smaller(end, p->n_u - 1)); /* differences reach beyond the end */
		struct bins b = plain ? add_plain_bins(p, columns, from, end, n) : (struct bins){0};

		for (int v = 0; !plain && v < n; v++)
			add_bins(p, over_code, rows + (size_t)v * (size_t)p->n_u, from, end, v % PAIR_ROWS == 0, &b);
		if (b.pairs != pairs && b.pairs > 0) /* of most cells it is the same */
			factor = mean_of_median(pairs = b.pairs);
		columns.mean[i] = finish_cell(&b, factor, &cell[i]);
		n_data += cell[i].kind != CELL_EMPTY;
	}
	line_log(c->n_u, columns.mean, columns.log);
	for (int i = 0; i < c->n_u; i++)
		cell[i].log = columns.log[i];
	return n_data;
}

int air_cells_fill(const struct prep *p, int over_code, const uint16_t *raw, struct cells *c, struct err *err)
{
	size_t n_data = 0, width = (size_t)p->n_u;
	bool no_memory = false;

#pragma omp parallel reduction(+ : n_data) reduction(|| : no_memory)
	{
		struct columns columns = {
			.mean = malloc(width * (sizeof(double) + sizeof(float) + 2 * sizeof(uint32_t) + sizeof(uint16_t)))};

		if (columns.mean) {
			columns.log = (float *)(columns.mean + width);
			columns.values = (uint32_t *)(columns.log + width);
			columns.squares = columns.values + width;
			columns.marks = (uint16_t *)(columns.squares + width);
		}
#pragma omp for schedule(static)
		for (int j = 0; j < c->n_v; j++)
			if (columns.mean)
				n_data += fill_row(p, over_code, raw, c, j, columns);
		no_memory = !columns.mean;
		free(columns.mean);
	}
	c->n_data = n_data;
	return no_memory ? err_set(err, ENOMEM, "air: no memory for %zu columns", width) : 0;
}

void air_divide(struct cells *c, const struct open_field *field)
{
	double factor[BLOCK], u = (c->bins_u - 1) / 2.0, v = (c->bins_v - 1) / 2.0;

	for (int j = 0; j < c->n_v && !open_field_is_uniform(field); j++)
		for (int first = 0; first < c->n_u; first += BLOCK) {
			struct cell *cell = c->cell + (size_t)j * (size_t)c->n_u + first;
			int n = air_smaller(BLOCK, c->n_u - first);

			open_field_row(field, u + (double)first * c->bins_u, c->bins_u, v + (double)j * c->bins_v, n, factor);
			for (int i = 0; i < n; i++) {
				cell[i].mean /= (float)factor[i];
				cell[i].log -= (float)log(factor[i]);
			}
		}
}

void air_measure_gain(struct cells *c)
{
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].kind == CELL_DATA && c->cell[i].variance >= 0)
			c->sorted[n++] = c->cell[i].variance;
	c->gain = air_median(c->sorted, n);
}

/* Return the relative standard deviation of a bin at an intensity of exp(log). */
double air_bin_noise(const struct cells *c, double log)
{
	return sqrt(c->gain / exp(log));
}

double air_cell_noise(const struct cells *c, double log)
{
	return air_bin_noise(c, log) / sqrt((double)c->bins_u * c->bins_v);
}

void air_mark_flat(struct cells *c)
{
	float gain = (float)(STEP_SIGMAS * STEP_SIGMAS * c->gain / ((double)c->bins_u * c->bins_v));

	for (size_t i = 0; i < air_count_cells(c); i++) {
		float noise = sqrtf(gain / c->cell[i].mean);

		c->cell[i].step = noise > (float)STEP_LEAST ? noise : (float)STEP_LEAST;
	}
	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i;

			a->flat = a->kind == CELL_DATA && !(i + 1 < c->n_u && air_is_step(a, a + 1)) &&
				  !(j + 1 < c->n_v && air_is_step(a, a + c->n_u));
		}
}
