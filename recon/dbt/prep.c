/* SPDX-License-Identifier: Apache-2.0 */
/* prep.c - convert stored detector values into line integrals; see prep.h for the formulas.
 *
 * A merged bin has two sums over its valid detector bins: the intensities I, and the intensities without an object (I0, times the
 * flat field if there is one): y = ln(sum I0 / sum I). A detector bin that is padding, over range or dead in the flat field is
 * excluded from both sums, so it does not bias the others. Log data are first converted into intensities relative to I0. There
 * are three methods with the same result. If no bins are merged, there is no flat field and the open field is uniform, a line
 * integral depends only on the stored value and is read from a table, so that a view of ten million bins needs 65536 logarithms.
 * Otherwise linear data without a flat field are summed as integers, column by column, which the compiler vectorises; log data
 * and data with a flat field are converted through a table and summed in double. */
#include "recon/dbt/prep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/avx2.h"
#include "recon/dbt/line_log.h"
#include "recon/dbt/prep_internal.h"

#define VALUES PREP_VALUES
#define BIN_MAX 64  /* BIN_MAX^2 * 65535 fits 32 bits */
#define COLUMNS 512 /* detector columns processed together */

/* The line integral of every stored value, and which values are floored and clamped: an interval each, because the intensity is
 * monotonic in the value. Padding and values over range may be in the interval and do not count. */
struct lookup {
	float line[VALUES];
	int floored[2], clamped[2]; /* first and last; first > last: none */
};

/* Sums over the valid bins of some columns of a row of merged bins, by the method of the table. */
struct sums {
	uint32_t count[COLUMNS];
	double intensity[COLUMNS], air[COLUMNS];
	double shown[COLUMNS]; /* the air of bins over range */
};

static int check_prep(const struct prep *p, struct limits *ret, struct err *err)
{
	if (p->n_u < 1 || p->n_v < 1)
		return err_set(err, EINVAL, "prep: %d x %d detector bins", p->n_u, p->n_v);
	if (p->bin < 1 || p->bin > BIN_MAX || p->bin > p->n_u || p->bin > p->n_v)
		return err_set(err, EINVAL, "prep: merging %d x %d of %d x %d detector bins; allowed: 1..%d", p->bin, p->bin,
			       p->n_u, p->n_v, BIN_MAX);
	if (p->is_log && !(isfinite(p->log_zero) && isfinite(p->log_scale) && p->log_scale != 0))
		return err_set(err, EINVAL, "prep: log data with zero %g and scale %g", p->log_zero, p->log_scale);
	if (!p->is_log && !(p->i0 > 0 && isfinite(p->i0)))
		return err_set(err, EINVAL, "prep: unattenuated intensity %g, not above 0", p->i0);
	if (!p->is_log && !isfinite(p->offset))
		return err_set(err, EINVAL, "prep: detector offset %g", p->offset);
	if (!p->is_log && p->inverted && !(p->max_value > 0 && p->max_value < VALUES))
		return err_set(err, EINVAL, "prep: largest stored value %g, not in 1..65535", p->max_value);
	if (p->is_log && !open_field_is_uniform(&p->open))
		return err_set(err, EINVAL, "prep: log data with an open field");
	if (!(p->floor > 0 && p->floor < 1))
		return err_set(err, EINVAL, "prep: intensity floor %g of I0, not in (0, 1)", p->floor);
	return prep_limits(p, ret, err);
}

/* Add up rows whose values are all valid, two at a time, column by column. */
static inline __attribute__((always_inline)) void add_rows_loop(const uint16_t *first, int stride, int rows, int n,
								uint32_t *restrict ret)
{
	int k = rows % 2;

	for (int i = 0; i < n; i++)
		ret[i] = k ? first[i] : 0;
	for (; k < rows; k += 2) {
		const uint16_t *restrict a = first + (size_t)k * (size_t)stride, *restrict b = a + stride;

		for (int i = 0; i < n; i++)
			ret[i] += (uint32_t)a[i] + b[i];
	}
}

/* Add up the valid values of rows, and count them. */
static inline __attribute__((always_inline)) void add_valid_rows_loop(const uint16_t *first, int stride, int rows, int n,
								      struct limits lim, uint32_t *restrict ret,
								      uint32_t *restrict ret_count, struct prep_stats *stats)
{
	uint32_t padded = 0, saturated = 0;

	for (int i = 0; i < n; i++)
		ret[i] = ret_count[i] = 0;
	for (int k = 0; k < rows; k++) {
		const uint16_t *restrict row = first + (size_t)k * (size_t)stride;

		for (int i = 0; i < n; i++) {
			int v = row[i];
			uint32_t pad = (uint32_t)((v >= lim.lo) & (v <= lim.hi));
			uint32_t over = (uint32_t)(v >= lim.over) & ~pad;
			uint32_t ok = 1 - pad - over;

			ret[i] += ok * (uint32_t)v;
			ret_count[i] += ok;
			padded += pad;
			saturated += over;
		}
	}
	stats->padded += padded;
	stats->saturated += saturated;
}

/* Add up n groups of columns. */
static inline __attribute__((always_inline)) void add_groups(const uint32_t *restrict column, int size, int n,
							     uint32_t *restrict ret)
{
	for (int m = 0; m < n; m++) {
		uint32_t sum = 0;

		for (int i = 0; i < size; i++)
			sum += column[m * size + i];
		ret[m] = sum;
	}
}

static inline __attribute__((always_inline)) void add_columns_loop(const uint32_t *column, int size, int n, uint32_t *ret)
{
	if (size == 4) /* the compiler vectorises what has a constant size */
		add_groups(column, 4, n, ret);
	else if (size == 3)
		add_groups(column, 3, n, ret);
	else if (size == 2)
		add_groups(column, 2, n, ret);
	else
		add_groups(column, size, n, ret);
}

FOR_AVX2(void, add_rows, (const uint16_t *first, int stride, int rows, int n, uint32_t *ret), (first, stride, rows, n, ret))

FOR_AVX2(void, add_valid_rows,
	 (const uint16_t *first, int stride, int rows, int n, struct limits lim, uint32_t *ret, uint32_t *ret_count,
	  struct prep_stats *stats),
	 (first, stride, rows, n, lim, ret, ret_count, stats))

FOR_AVX2(void, add_columns, (const uint32_t *column, int size, int n, uint32_t *ret), (column, size, n, ret))

static void add_table(const uint16_t *row, const float *flat, int n, struct limits lim, const double *table, double i0,
		      struct sums *s, struct prep_stats *stats)
{
	for (int i = 0; i < n; i++) {
		int v = row[i];

		if (v >= lim.lo && v <= lim.hi) {
			stats->padded++;
		} else if (v >= lim.over) {
			stats->saturated++;
		} else if (!flat || (flat[i] > 0 && isfinite(flat[i]))) {
			double air = flat ? i0 * (double)flat[i] : i0;

			s->intensity[i] += v == lim.air ? 0 : table[v];
			s->shown[i] += v == lim.air ? air : 0;
			s->air[i] += air;
			s->count[i]++;
			stats->over_range += v == lim.air;
		}
	}
}

/* Compute the intensity of each stored value; for log data relative to I0. */
static void fill_table(const struct prep *p, double *table)
{
	for (int v = 0; v < VALUES; v++) {
		if (p->is_log)
			table[v] = exp(-fmin(fmax((p->log_zero - v) * p->log_scale, -700), 700));
		else
			table[v] = (p->inverted ? p->max_value - v : v) - p->offset;
	}
}

/* Return air / intensity of a bin, at least 1; *ret_dark: the intensity is floored; *ret_bright: it is clamped. */
static inline __attribute__((always_inline)) double ratio_of(double intensity, double air, double floor, int64_t *ret_dark,
							     int64_t *ret_bright)
{
	double least = floor * air, used = intensity >= least ? intensity : least;

	*ret_dark = !(intensity >= least);
	*ret_bright = used > air;
	return used < air ? air / used : 1;
}

/* Replace n intensities by their ratios; count flooring and clamping. */
static inline __attribute__((always_inline)) void to_ratios_loop(double floor, int n, double *restrict intensity,
								 const double *restrict air, struct prep_stats *stats)
{
	int64_t floored = 0, clamped = 0;

	for (int i = 0; i < n; i++) {
		int64_t dark, bright;

		intensity[i] = ratio_of(intensity[i], air[i], floor, &dark, &bright);
		floored += dark;
		clamped += bright;
	}
	stats->floored += (size_t)floored;
	stats->clamped += (size_t)clamped;
}

FOR_AVX2(void, to_ratios, (double floor, int n, double *intensity, const double *air, struct prep_stats *stats),
	 (floor, n, intensity, air, stats))

/* Intensities of some merged bins, with and without an object, and their numbers of valid detector bins. */
struct merged {
	double intensity[COLUMNS], air[COLUMNS], field[COLUMNS]; /* field: factor of air */
	uint32_t count[COLUMNS];
};

/* Sum n merged bins whose first detector bin is raw[at]. */
static void merge_table(const struct prep *p, struct limits lim, const double *table, const uint16_t *raw, size_t at, int n,
			struct merged *ret, struct prep_stats *stats)
{
	double i0 = p->is_log ? 1 : p->i0;
	struct sums s;
	int columns = n * p->bin;

	memset(s.count, 0, (size_t)columns * sizeof(s.count[0]));
	memset(s.intensity, 0, (size_t)columns * sizeof(s.intensity[0]));
	memset(s.air, 0, (size_t)columns * sizeof(s.air[0]));
	memset(s.shown, 0, (size_t)columns * sizeof(s.shown[0]));
	for (int k = 0; k < p->bin; k++, at += (size_t)p->n_u)
		add_table(raw + at, p->flatfield ? p->flatfield + at : NULL, columns, lim, table, i0, &s, stats);
	for (int m = 0; m < n; m++) {
		ret->intensity[m] = ret->air[m] = 0;
		for (int i = m * p->bin; i < (m + 1) * p->bin; i++) {
			ret->intensity[m] += s.intensity[i] + s.shown[i] * ret->field[m];
			ret->air[m] += s.air[i];
		}
	}
	add_columns(s.count, p->bin, n, ret->count);
}

/* Return whether some of the values do not count. */
static bool any_excluded(const uint16_t *first, int stride, int rows, int n, struct limits lim)
{
	uint16_t marks[COLUMNS], any = 0;

	if (!prep_has_limits(lim))
		return false;
	prep_mark(first, stride, rows, n, lim, marks);
	for (int i = 0; i < n; i++)
		any |= marks[i];
	return any;
}

/* The same for linear values without a flat field. */
static void merge_plain(const struct prep *p, struct limits lim, const uint16_t *first, int n, struct merged *ret,
			struct prep_stats *stats)
{
	uint32_t column[COLUMNS], column_count[COLUMNS], value[COLUMNS];

	if (any_excluded(first, p->n_u, p->bin, n * p->bin, lim)) {
		add_valid_rows(first, p->n_u, p->bin, n * p->bin, lim, column, column_count, stats);
		add_columns(column_count, p->bin, n, ret->count);
	} else {
		add_rows(first, p->n_u, p->bin, n * p->bin, column);
		for (int m = 0; m < n; m++)
			ret->count[m] = (uint32_t)(p->bin * p->bin);
	}
	add_columns(column, p->bin, n, value);
	for (int m = 0; m < n; m++) {
		double sum = (int)value[m], count = (int)ret->count[m]; /* both are below 2^31 */

		ret->intensity[m] = (p->inverted ? count * p->max_value - sum : sum) - count * p->offset;
		ret->air[m] = count * p->i0;
	}
}

/* Process merged bins from..from+n-1 of merged row j. */
static void merge_bins(const struct prep *p, struct limits lim, const double *table, const uint16_t *raw, int j, int from, int n,
		       float *ret_line, float *ret_valid, struct prep_stats *stats)
{
	size_t at = (size_t)j * (size_t)p->bin * (size_t)p->n_u + (size_t)from * (size_t)p->bin;
	double middle = (p->bin - 1) / 2.0;
	struct merged b;

	open_field_row(&p->open, from * p->bin + middle, p->bin, j * p->bin + middle, n, b.field);
	if (table)
		merge_table(p, lim, table, raw, at, n, &b, stats);
	else
		merge_plain(p, lim, raw + at, n, &b, stats);
	for (int m = 0; m < n; m++) {
		bool valid = b.count[m] > 0;

		ret_valid[m] = valid ? 1 : 0;
		b.intensity[m] = valid ? b.intensity[m] : 1; /* a line integral of 0 */
		b.air[m] = valid ? b.air[m] * b.field[m] : 1;
	}
	to_ratios(p->floor, n, b.intensity, b.air, stats);
	line_log(n, b.intensity, ret_line);
}

static void lookup_fill(const struct prep *p, const double *table, struct lookup *ret)
{
	double air = p->is_log ? 1 : p->i0, ratio[COLUMNS];

	ret->floored[0] = ret->clamped[0] = VALUES;
	ret->floored[1] = ret->clamped[1] = -1;
	for (int v = 0; v < VALUES; v++) {
		int64_t floored, clamped;

		ratio[v % COLUMNS] = ratio_of(table[v], air, p->floor, &floored, &clamped);
		if (floored) {
			ret->floored[0] = v < ret->floored[0] ? v : ret->floored[0];
			ret->floored[1] = v;
		}
		if (clamped) {
			ret->clamped[0] = v < ret->clamped[0] ? v : ret->clamped[0];
			ret->clamped[1] = v;
		}
		if (v % COLUMNS == COLUMNS - 1)
			line_log(COLUMNS, ratio, ret->line + v + 1 - COLUMNS);
	}
}

/* Process a row of n bins that are not merged. */
static inline __attribute__((always_inline)) void look_up_loop(const struct lookup *l, struct limits lim,
							       const uint16_t *restrict row, int n, float *restrict ret_line,
							       float *restrict ret_valid, struct prep_stats *stats)
{
	uint32_t padded = 0, saturated = 0, over_range = 0, floored = 0, clamped = 0;

	for (int i = 0; i < n; i++) {
		int v = row[i];
		uint32_t pad = (uint32_t)((v >= lim.lo) & (v <= lim.hi));
		uint32_t over = (uint32_t)(v >= lim.over) & ~pad;
		uint32_t ok = 1 - pad - over;

		ret_valid[i] = (float)(int)ok;
		padded += pad;
		saturated += over;
		over_range += ok & (uint32_t)(v == lim.air);
		floored += ok & (uint32_t)((v >= l->floored[0]) & (v <= l->floored[1]) & (v != lim.air));
		clamped += ok & (uint32_t)((v >= l->clamped[0]) & (v <= l->clamped[1]) & (v != lim.air));
	}
	for (int i = 0; i < n; i++)
		ret_line[i] = l->line[row[i]];
	if (padded + saturated > 0)
		for (int i = 0; i < n; i++)
			ret_line[i] *= ret_valid[i];
	stats->padded += padded;
	stats->saturated += saturated;
	stats->over_range += over_range;
	stats->floored += floored;
	stats->clamped += clamped;
}

FOR_AVX2(void, look_up,
	 (const struct lookup *l, struct limits lim, const uint16_t *row, int n, float *ret_line, float *ret_valid,
	  struct prep_stats *stats),
	 (l, lim, row, n, ret_line, ret_valid, stats))

/* Remove the merged bins that a shadow covers, also in part. */
static void remove_shadow(const struct prep *p, int n_u, int n_v, float *line, float *valid)
{
	int end = (p->n_u - p->shadow.far) / p->bin, first = (p->shadow.first + p->bin - 1) / p->bin,
	    last = (p->n_v - p->shadow.last) / p->bin;

	for (int j = 0; j < n_v; j++) {
		int from = j < first || j >= last ? 0 : end;

		for (int i = from; i < n_u; i++)
			line[(size_t)j * (size_t)n_u + (size_t)i] = valid[(size_t)j * (size_t)n_u + (size_t)i] = 0;
	}
}

int prep_view(const struct prep *p, const uint16_t *raw, float *ret_line, float *ret_valid, struct prep_stats *ret_stats,
	      struct err *err)
{
	bool direct = p->bin == 1 && !p->flatfield && open_field_is_uniform(&p->open);
	size_t padded = 0, saturated = 0, over_range = 0, floored = 0, clamped = 0;
	struct lookup *lookup = NULL;
	double *table = NULL;
	struct limits lim;
	int r = check_prep(p, &lim, err);

	if (r < 0)
		return r;
	if (p->is_log || p->flatfield || lim.air >= 0 || direct) {
		table = malloc(VALUES * sizeof(*table));
		lookup = direct ? malloc(sizeof(*lookup)) : NULL;
		if (!table || (direct && !lookup)) {
			r = err_set(err, ENOMEM, "prep: no memory for a table of %d values", VALUES);
			goto out;
		}
		fill_table(p, table);
		if (lim.air >= 0)
			table[lim.air] = p->i0;
		if (direct)
			lookup_fill(p, table, lookup);
	}
	int n_u = p->n_u / p->bin, n_v = p->n_v / p->bin, block = COLUMNS / p->bin;

#pragma omp parallel for schedule(static) reduction(+ : padded, saturated, over_range, floored, clamped)
	for (int j = 0; j < n_v; j++) {
		size_t row = (size_t)j * (size_t)n_u;
		struct prep_stats stats = {0};

		if (direct)
			look_up(lookup, lim, raw + row, n_u, ret_line + row, ret_valid + row, &stats);
		for (int from = 0; !direct && from < n_u; from += block)
			merge_bins(p, lim, table, raw, j, from, n_u - from < block ? n_u - from : block, ret_line + row + from,
				   ret_valid + row + from, &stats);
		padded += stats.padded;
		saturated += stats.saturated;
		over_range += stats.over_range;
		floored += stats.floored;
		clamped += stats.clamped;
	}
	if (p->shadow.far + p->shadow.first + p->shadow.last > 0)
		remove_shadow(p, n_u, n_v, ret_line, ret_valid);
	if (ret_stats)
		*ret_stats = (struct prep_stats){padded, saturated, over_range, floored, clamped};
out:
	free(lookup);
	free(table);
	return r;
}
