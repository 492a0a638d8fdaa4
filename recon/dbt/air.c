/* SPDX-License-Identifier: Apache-2.0 */
/* air.c - find the air of a projection; see air.h for the criteria.
 *
 * - All decisions use cells, with the mean intensity of their bins. Noise is that of counting: the variance of a bin is
 *   proportional to its intensity. The factor is the median over the cells of (variance / mean), with the variance from
 *   differences of neighbouring bins, which shading does not change and which edges change in few cells.
 * - A cell is flat if it differs from the next cells along u and v by no more than noise. The level is the highest mode in the
 *   histogram of the logarithms of flat cells, then the median of the cells that belong to it.
 * - Connection is tested by flooding from the last cells of each row that have data, through cells that are about as bright as
 *   the level. Where a row ends over range, this is its air, and the row begins no region. */
#include "recon/dbt/air.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/air_internal.h"

#define CELL_MOST 1.0	  /* mm */
#define CELLS_ACROSS 150  /* a small detector has smaller cells, so that 1 % of it is more than one row of them */
#define CLASS 0.02	  /* width of a class of the histogram of logarithms */
#define CLASSES 560	  /* ln(65536) / CLASS, and some more */
#define MODE_SHARE 0.0025 /* share of flat cells in three classes that makes a mode */
#define STEP_SIGMAS 7.1	  /* largest step by noise: five standard deviations of a difference */
#define WIDTH_LEAST 0.03  /* half of the least width of a plateau, in the logarithm */
#define BAND 0.3	  /* range below the plateau in which there must be a gap: 6 mm of tissue */
#define BAND_CLASSES 15	  /* BAND / CLASS */
#define GAP_MOST 0.4	  /* largest number of cells in the gap, three classes, relative to those of the plateau */
#define FLAT_LEAST 0.8	  /* least share of flat cells inside a plateau */
#define DARK_CELLS 3	  /* the darkest cells that are ignored */
#define BLOCK 256	  /* cells divided by the open field at a time */
#define ROWS_MOST 65536	  /* this number of stored values fits 32 bits */

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* ---- stored values ---- */

static bool is_padding(const struct prep *p, int value)
{
	return p->has_padding && value >= p->padding_lo && value <= p->padding_hi;
}

int air_over_code(const struct prep *p, const uint32_t hist[PREP_VALUES])
{
	int top = (int)p->max_value, code = p->inverted ? 0 : top, step = p->inverted ? 1 : -1, next = code + step;

	while (next >= 0 && next <= top && (hist[next] == 0 || is_padding(p, next)))
		next += step;
	return hist[code] > 0 && !is_padding(p, code) && next >= 0 && next <= top && abs(next - code) > top / AIR_GAP ? code : -1;
}

/* ---- cells ---- */

static int cell_bins(int n, double pitch, double size)
{
	return smaller((int)fmax(1, floor(size / pitch)), n);
}

static int cells_make(const struct prep *p, const double pitch[2], struct cells *ret, struct err *err)
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
	c.cell = calloc(n, sizeof(*c.cell) + sizeof(*c.work) + sizeof(*c.sorted));
	if (!c.cell)
		return err_set(err, ENOMEM, "air: no memory for %d x %d cells", c.n_u, c.n_v);
	c.work = (int *)(c.cell + n);
	c.sorted = (float *)(c.work + n);
	*ret = c;
	return 0;
}

struct bins {
	double sum, squares;
	int n, over, pairs, all;
};

/* Add the bins of one detector row to a cell; differences reach into the next cell. */
static void add_bins(const struct prep *p, int over_code, const uint16_t *row, int from, int end, struct bins *b)
{
	for (int u = from; u < end; u++) {
		bool over = row[u] == over_code, ok = !over && !is_padding(p, row[u]);
		bool pair = ok && u + 1 < p->n_u && row[u + 1] != over_code && !is_padding(p, row[u + 1]);
		double step = pair ? (double)row[u + 1] - row[u] : 0;

		b->sum += ok ? (p->inverted ? p->max_value - row[u] : row[u]) - p->offset : 0;
		b->squares += step * step;
		b->n += ok;
		b->over += over;
		b->pairs += pair;
		b->all++;
	}
}

/* Sums over the rows of a row of cells, one for each detector column. */
struct columns {
	uint32_t *values, *squares; /* squares: of the differences to the next column; the last has none */
};

/* Add up n rows of width n_u; integers, which are exact, and loops that the compiler vectorises. Return false if a sum may not
 * fit. */
static inline __attribute__((always_inline)) bool add_columns_loop(const uint16_t *raw, int n_u, int n, struct columns c)
{
	uint32_t *restrict values = c.values, *restrict squares = c.squares;
	uint16_t most = 0; /* not below the largest difference */

	memset(values, 0, (size_t)n_u * sizeof(*values));
	memset(squares, 0, (size_t)n_u * sizeof(*squares));
	for (int v = 0; v < n; v++) {
		const uint16_t *restrict row = raw + (size_t)v * (size_t)n_u;

		for (int u = 0; u < n_u; u++)
			values[u] += row[u];
		for (int u = 0; u < n_u - 1; u++) {
			uint16_t a = row[u], b = row[u + 1], step = (uint16_t)(a > b ? a - b : b - a);

			most |= step;
			squares[u] += (uint32_t)step * step;
		}
	}
	return n <= ROWS_MOST && (uint64_t)most * most * (uint64_t)n <= UINT32_MAX;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static bool add_columns_avx2(const uint16_t *raw, int n_u, int n, struct columns c)
{
	return add_columns_loop(raw, n_u, n, c);
}

static bool add_columns(const uint16_t *raw, int n_u, int n, struct columns c)
{
	return __builtin_cpu_supports("avx2") ? add_columns_avx2(raw, n_u, n, c) : add_columns_loop(raw, n_u, n, c);
}
#else
static bool add_columns(const uint16_t *raw, int n_u, int n, struct columns c)
{
	return add_columns_loop(raw, n_u, n, c);
}
#endif

/* Return the same as add_bins() for the columns from..end-1 of n rows without padding and values over range. */
static struct bins add_plain_bins(const struct prep *p, struct columns c, int from, int end, int n)
{
	int last = smaller(end, p->n_u - 1), all = n * (end - from);
	uint64_t sum = 0, squares = 0;

	for (int u = from; u < end; u++)
		sum += c.values[u];
	for (int u = from; u < last; u++)
		squares += c.squares[u];
	return (struct bins){
		.sum = (p->inverted ? p->max_value * all - (double)sum : (double)sum) - p->offset * all,
		.squares = (double)squares,
		.n = all,
		.pairs = n * (last - from),
		.all = all,
	};
}

/* Return the mean of n squares of normal numbers whose median is 1 (Wilson and Hilferty 1931). */
static double mean_of_median(int n)
{
	double root = 1 - 2.0 / (9 * n);

	return 1 / (root * root * root);
}

static void finish_cell(const struct bins *b, struct cell *ret)
{
	double mean = b->n > 0 ? b->sum / b->n : 0;

	if (2 * b->over >= b->all && b->over > 0)
		ret->kind = CELL_OVER;
	else if (2 * b->n >= b->all && b->n > 0)
		ret->kind = CELL_DATA;
	ret->mean = mean > 1 ? (float)mean : 1;
	ret->log = (float)log(mean > 1 ? mean : 1);
	ret->variance = b->pairs > 0 && mean > 0 ? (float)(b->squares / b->pairs / 2 / mean * mean_of_median(b->pairs)) : -1;
}

/* Fill row j of the cells. */
static size_t fill_row(const struct prep *p, int over_code, const uint16_t *raw, const struct cells *c, int j,
		       struct columns columns)
{
	struct cell *cell = c->cell + (size_t)j * (size_t)c->n_u;
	int first = j * c->bins_v, n = smaller(c->bins_v, p->n_v - first);
	const uint16_t *rows = raw + (size_t)first * (size_t)p->n_u;
	bool plain = !p->has_padding && over_code < 0 && add_columns(rows, p->n_u, n, columns);
	size_t n_data = 0;

	for (int i = 0; i < c->n_u; i++) {
		int from = i * c->bins_u, end = smaller(from + c->bins_u, p->n_u);
		struct bins b = plain ? add_plain_bins(p, columns, from, end, n) : (struct bins){0};

		for (int v = 0; !plain && v < n; v++)
			add_bins(p, over_code, rows + (size_t)v * (size_t)p->n_u, from, end, &b);
		finish_cell(&b, &cell[i]);
		n_data += cell[i].kind != CELL_EMPTY;
	}
	return n_data;
}

static int cells_fill(const struct prep *p, int over_code, const uint16_t *raw, struct cells *c, struct err *err)
{
	size_t n_data = 0, width = (size_t)p->n_u;
	bool no_memory = false;

#pragma omp parallel reduction(+ : n_data) reduction(|| : no_memory)
	{
		uint32_t *sums = malloc(2 * width * sizeof(*sums));

#pragma omp for schedule(static)
		for (int j = 0; j < c->n_v; j++)
			if (sums)
				n_data += fill_row(p, over_code, raw, c, j, (struct columns){sums, sums + width});
		no_memory = !sums;
		free(sums);
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
			int n = smaller(BLOCK, c->n_u - first);

			open_field_row(field, u + (double)first * c->bins_u, c->bins_u, v + (double)j * c->bins_v, n, factor);
			for (int i = 0; i < n; i++) {
				cell[i].mean /= (float)factor[i];
				cell[i].log -= (float)log(factor[i]);
			}
		}
}

/* Quickselect (Hoare 1961). */
double air_select(float *values, size_t n, size_t place)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		float pivot = values[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;; i++, j--) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			float swap = values[i];
			values[i] = values[j];
			values[j] = swap;
		}
		if (place <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return (double)values[place];
}

static double median(float *values, size_t n)
{
	return n > 0 ? air_select(values, n, n / 2) : 0;
}

static void measure_gain(struct cells *c)
{
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].kind == CELL_DATA && c->cell[i].variance >= 0)
			c->sorted[n++] = c->cell[i].variance;
	c->gain = median(c->sorted, n);
}

/* Return the relative standard deviation of a bin at an intensity of exp(log). */
static double bin_noise(const struct cells *c, double log)
{
	return sqrt(c->gain / exp(log));
}

double air_cell_noise(const struct cells *c, double log)
{
	return bin_noise(c, log) / sqrt((double)c->bins_u * c->bins_v);
}

bool air_is_step(const struct cell *a, const struct cell *b)
{
	return b->kind == CELL_DATA && fabsf(a->log - b->log) > (a->step > b->step ? a->step : b->step);
}

static void mark_flat(struct cells *c)
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

/* ---- the level ---- */

static size_t three(const size_t *hist, int k)
{
	return hist[k] + (k > 0 ? hist[k - 1] : 0) + (k + 1 < CLASSES ? hist[k + 1] : 0);
}

/* Return the median of the flat cells within `width` of `log`. */
static double level_near(struct cells *c, double log, double width)
{
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].flat && fabs((double)c->cell[i].log - log) <= width)
			c->sorted[n++] = c->cell[i].log;
	return n > 0 ? median(c->sorted, n) : log;
}

static double width_of(const struct cells *c, double log)
{
	return fmax(WIDTH_LEAST, 4 * air_cell_noise(c, log));
}

/* Find the highest mode of the flat cells; false: none. */
static bool find_mode(struct cells *c, double *ret_log)
{
	size_t hist[CLASSES] = {0}, least = (size_t)fmax(MODE_SHARE * (double)c->n_data, CELLS_LEAST);
	int k = CLASSES - 1;
	double log;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].flat)
			hist[smaller((int)((double)c->cell[i].log / CLASS), CLASSES - 1)]++;
	while (k > 0 && three(hist, k) < least)
		k--;
	if (k == 0)
		return false;
	while (k > 1 && three(hist, k - 1) > three(hist, k))
		k--;
	log = (k + 0.5) * CLASS;
	log = level_near(c, log, 1.5 * CLASS);
	*ret_log = level_near(c, log, width_of(c, log));
	return true;
}

/* ---- the region ---- */

static bool is_bright(const struct cell *a, double log, double width)
{
	return a->kind == CELL_DATA && (double)a->log >= log - width;
}

/* Begin at one bright cell near the end of each row; *ret_over: number of rows that end over range. */
static int seed(struct cells *c, double log, double width, int *ret_over)
{
	int depth = (int)ceil(SEED_DEPTH / c->size[0]), waiting = 0, over = 0;

	for (int j = 0; j < c->n_v; j++) {
		struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		int i = c->n_u - 1;

		while (i >= 0 && row[i].kind == CELL_EMPTY)
			i--;
		over += i >= 0 && row[i].kind == CELL_OVER;
		for (int end = i - depth; i >= 0 && i > end && row[i].kind == CELL_DATA && !row[i].region; i--)
			if (is_bright(&row[i], log, width)) {
				row[i].region = 1;
				c->work[waiting++] = j * c->n_u + i;
				break;
			}
	}
	*ret_over = over;
	return waiting;
}

void air_flood(struct cells *c, int waiting, bool (*is_like)(const struct cell *from, const struct cell *to, const void *ctx),
	       const void *ctx)
{
	while (waiting > 0) {
		int at = c->work[--waiting], i = at % c->n_u, j = at / c->n_u;
		const int next[4] = {i > 0 ? at - 1 : -1, i < c->n_u - 1 ? at + 1 : -1, j > 0 ? at - c->n_u : -1,
				     j < c->n_v - 1 ? at + c->n_u : -1};

		for (int k = 0; k < 4; k++)
			if (next[k] >= 0 && !c->cell[next[k]].region && is_like(&c->cell[at], &c->cell[next[k]], ctx)) {
				c->cell[next[k]].region = 1;
				c->work[waiting++] = next[k];
			}
	}
}

struct bright {
	double log, width;
};

static bool is_as_bright(const struct cell *from, const struct cell *to, const void *ctx)
{
	const struct bright *b = ctx;

	(void)from;
	return is_bright(to, b->log, b->width);
}

/* Mark the region; return false if most rows that could begin it end over range. */
static bool flood(struct cells *c, double log, double width)
{
	const struct bright bright = {log, width};
	int over, begun = seed(c, log, width, &over);

	air_flood(c, begun, is_as_bright, &bright);
	return over <= begun;
}

bool air_is_inside(const struct cells *c, int i, int j)
{
	for (int dj = -1; dj <= 1; dj++)
		for (int di = -1; di <= 1; di++) {
			int u = i + di, v = j + dj;
			const struct cell *a = c->cell + (size_t)v * (size_t)c->n_u + u;

			if (u >= 0 && u < c->n_u && v >= 0 && v < c->n_v && a->kind == CELL_DATA && !a->region)
				return false;
		}
	return true;
}

struct counts {
	size_t plateau, inside, flat, elsewhere;
	size_t band[BAND_CLASSES]; /* cells outside the region, by class below the level */
};

static struct counts count_region(struct cells *c, double log, double width)
{
	struct counts n = {0};

	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i;
			double dark = log - (double)a->log;
			int below = dark >= 0 ? (int)(dark / CLASS) : -1;
			bool plateau = a->region && a->kind == CELL_DATA && fabs((double)a->log - log) <= width;

			a->plateau = plateau && air_is_inside(c, i, j);
			n.plateau += plateau;
			n.inside += a->plateau;
			n.elsewhere += a->kind == CELL_DATA && !a->region && fabs((double)a->log - log) <= width;
			n.flat += a->plateau && a->flat;
			if (a->kind == CELL_DATA && !a->region && below >= 0 && below < BAND_CLASSES)
				n.band[below]++;
		}
	return n;
}

/* Return the number of cells in the emptiest three classes below the flooded levels. */
static size_t gap_cells(const struct counts *n, double flood_width)
{
	int first = (int)ceil(flood_width / CLASS);
	size_t least = first + 2 < BAND_CLASSES ? SIZE_MAX : 0;

	for (int k = first; k + 2 < BAND_CLASSES; k++) {
		size_t cells = n->band[k] + n->band[k + 1] + n->band[k + 2];

		least = cells < least ? cells : least;
	}
	return least;
}

/* Return the logarithm of the darkest cells. */
static double find_dark(struct cells *c)
{
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].kind == CELL_DATA)
			c->sorted[n++] = c->cell[i].log;
	return n > 0 ? air_select(c->sorted, n, n > DARK_CELLS ? DARK_CELLS : n - 1) : 0;
}

/* Return the median of the plateau's cells, of those away from its edge if there are enough, and their mean position. */
static double plateau_level(struct cells *c, double log, double width, bool inside, double ret_at[2])
{
	double sum[2] = {0, 0};
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++) {
		const struct cell *a = &c->cell[i];

		if (inside ? a->plateau : a->region && a->kind == CELL_DATA && fabs((double)a->log - log) <= width) {
			sum[0] += (double)(i % (size_t)c->n_u) + 0.5;
			sum[1] += (double)(i / (size_t)c->n_u) + 0.5;
			c->sorted[n++] = a->log;
		}
	}
	for (int k = 0; k < 2; k++)
		ret_at[k] = n > 0 ? sum[k] / (double)n * c->size[k] - c->half[k] : 0;
	return median(c->sorted, n);
}

/* Decide about the plateau at *log, and refine *log. */
static enum air_verdict judge_plateau(struct cells *c, double thickness, double *log, struct air *air)
{
	double width = width_of(c, *log), flood_width = fmax(BAND / 6, 1.5 * width);
	bool ends = flood(c, *log, flood_width);
	struct counts n = count_region(c, *log, width);

	air->share = (double)n.plateau / (double)c->n_data;
	air->contrast = *log - find_dark(c);
	if (n.plateau < CELLS_LEAST || n.elsewhere > n.plateau || air->share < AIR_SHARE_LEAST ||
	    (double)n.flat < FLAT_LEAST * (double)n.inside)
		return AIR_NO_PLATEAU;
	if ((double)gap_cells(&n, flood_width) > GAP_MOST * (double)n.plateau)
		return AIR_NO_EDGE;
	if (air->contrast < AIR_MU_LEAST * thickness)
		return AIR_NO_CONTRAST;
	*log = plateau_level(c, *log, width, n.inside >= CELLS_LEAST, air->at);
	return ends ? AIR_FOUND : AIR_NO_PLATEAU;
}

static enum air_verdict judge(struct cells *c, double thickness, struct air *air)
{
	enum air_verdict verdict = AIR_NO_PLATEAU;
	size_t n_over = 0;
	double log;

	if (find_mode(c, &log))
		verdict = judge_plateau(c, thickness, &log, air);
	for (size_t i = 0; i < air_count_cells(c); i++)
		n_over += c->cell[i].kind == CELL_OVER;
	if (verdict == AIR_FOUND) {
		air->level = exp(log);
		air->noise = bin_noise(c, log);
	} else if (n_over > 0 && (double)n_over >= AIR_SHARE_LEAST * (double)c->n_data) {
		verdict = AIR_OVER_RANGE;
	}
	return verdict;
}

/* Measure how the air varies, and remove it from the cells as far as it is determined. */
static void flatten(struct cells *c, const struct prep *p, const double pitch[2], double thickness, bool fit,
		    struct air_field *ret)
{
	const struct scan detector = {.n_u = p->n_u, .n_v = p->n_v, .h = {pitch[0], pitch[1]}};
	struct open_field field = {0};

	air_field_measure(c, thickness, ret);
	if (!fit || !(ret->along[0] || ret->along[1]))
		return;
	open_field_set_slope(&detector, ret->slope, &field);
	air_divide(c, &field);
	mark_flat(c);
}

int air_find(const struct prep *p, const double pitch[2], double thickness, bool fit, const uint16_t *raw,
	     const uint32_t hist[PREP_VALUES], struct air *ret_air, struct err *err)
{
	struct air air = {0};
	struct cells c;
	int rc;

	if (p->is_log || !(pitch[0] > 0 && pitch[1] > 0 && thickness >= 0))
		return err_set(err, EINVAL, "air: %s values, bins of %g x %g mm, thickness %g mm", p->is_log ? "log" : "linear",
			       pitch[0], pitch[1], thickness);
	if (!(p->n_u > 0 && p->n_v > 0 && p->max_value > 0 && p->max_value < PREP_VALUES))
		return err_set(err, EINVAL, "air: %d x %d bins with values up to %g", p->n_u, p->n_v, p->max_value);
	air.over_code = air_over_code(p, hist);
	rc = cells_make(p, pitch, &c, err);
	if (rc < 0)
		return rc;
	rc = cells_fill(p, air.over_code, raw, &c, err);
	if (rc == 0) {
		air_divide(&c, &p->open);
		measure_gain(&c);
		mark_flat(&c);
		flatten(&c, p, pitch, thickness, fit, &air.field);
		air.verdict = judge(&c, thickness, &air);
		*ret_air = air;
	}
	free(c.cell);
	return rc;
}

const char *air_verdict_text(enum air_verdict verdict)
{
	switch (verdict) {
	case AIR_FOUND:
		return "air is visible";
	case AIR_NO_PLATEAU:
		return "no plateau of air at the side opposite the chest wall";
	case AIR_NO_EDGE:
		return "the brightest region passes continuously into the object";
	case AIR_NO_CONTRAST:
		return "the object is too bright for its thickness, compared with the brightest region";
	case AIR_OVER_RANGE:
		return "the stored value of air is over range";
	}
	return "unknown";
}
