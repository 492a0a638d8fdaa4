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

#define VALUES PREP_VALUES
#define BIN_MAX 64   /* BIN_MAX^2 * 65535 fits 32 bits */
#define COLUMNS 1024 /* detector columns processed together */

/* The line integral of every stored value, and which values are floored and clamped: an interval each, because the intensity is
 * monotonic in the value. Padding and values over range may be in the interval and do not count. */
struct lookup {
	float line[VALUES];
	int floored[2], clamped[2]; /* first and last; first > last: none */
};

/* Sums over the valid bins of some columns of a row of merged bins. */
struct sums {
	uint32_t value[COLUMNS], count[COLUMNS]; /* method of integers */
	double intensity[COLUMNS], air[COLUMNS]; /* method of the table */
	double shown[COLUMNS];			 /* the air of bins over range */
	size_t padded, saturated, over_range;
};

struct limits {
	int lo, hi; /* padding; lo > hi: none */
	int over;   /* first saturated value; VALUES: none */
	int air;    /* value over range, which shows air; -1: none */
};

static int check(const struct prep *p, struct limits *ret, struct err *err)
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
	if (!(p->saturation >= 0))
		return err_set(err, EINVAL, "prep: saturation at a stored value of %g, not allowed", p->saturation);
	if (p->has_over_code && !(p->over_code >= 0 && p->over_code < VALUES))
		return err_set(err, EINVAL, "prep: over-range code %d, not in 0..65535", p->over_code);
	ret->lo = p->has_padding ? p->padding_lo : 1;
	ret->hi = p->has_padding ? p->padding_hi : 0;
	ret->over = p->saturation > 0 && p->saturation < VALUES ? (int)ceil(p->saturation) : VALUES;
	ret->air = p->has_over_code && !p->is_log ? p->over_code : -1;
	return 0;
}

static inline __attribute__((always_inline)) void add_plain_loop(const uint16_t *restrict row, int n, struct limits lim,
								 uint32_t *restrict value, uint32_t *restrict count,
								 struct sums *s)
{
	uint32_t padded = 0, saturated = 0;

	for (int i = 0; i < n; i++) {
		int v = row[i];
		uint32_t pad = (uint32_t)((v >= lim.lo) & (v <= lim.hi));
		uint32_t over = (uint32_t)(v >= lim.over) & ~pad;
		uint32_t ok = 1 - pad - over;

		value[i] += ok * (uint32_t)v;
		count[i] += ok;
		padded += pad;
		saturated += over;
	}
	s->padded += padded;
	s->saturated += saturated;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_plain_avx2(const uint16_t *row, int n, struct limits lim, struct sums *s)
{
	add_plain_loop(row, n, lim, s->value, s->count, s);
}
#endif

static void add_plain(const uint16_t *row, int n, struct limits lim, struct sums *s)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		add_plain_avx2(row, n, lim, s);
		return;
	}
#endif
	add_plain_loop(row, n, lim, s->value, s->count, s);
}

static void add_table(const uint16_t *row, const float *flat, int n, struct limits lim, const double *table, double i0,
		      struct sums *s)
{
	for (int i = 0; i < n; i++) {
		int v = row[i];

		if (v >= lim.lo && v <= lim.hi) {
			s->padded++;
		} else if (v >= lim.over) {
			s->saturated++;
		} else if (!flat || (flat[i] > 0 && isfinite(flat[i]))) {
			double air = flat ? i0 * (double)flat[i] : i0;

			s->intensity[i] += v == lim.air ? 0 : table[v];
			s->shown[i] += v == lim.air ? air : 0;
			s->air[i] += air;
			s->count[i]++;
			s->over_range += v == lim.air;
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

/* Compute the line integral of one merged bin; count flooring and clamping. */
static float to_line(const struct prep *p, double intensity, double air, size_t *floored, size_t *clamped)
{
	double least = p->floor * air;

	if (!(intensity >= least)) {
		intensity = least;
		++*floored;
	}
	if (intensity > air) {
		++*clamped;
		return 0;
	}
	return (float)log(air / intensity);
}

/* Process merged bins from..from+n-1 of merged row j. */
static void merge(const struct prep *p, struct limits lim, const double *table, const uint16_t *raw, int j, int from, int n,
		  float *ret_line, float *ret_valid, struct prep_stats *stats)
{
	struct sums s;
	int columns = n * p->bin;
	double i0 = p->is_log ? 1 : p->i0, field[COLUMNS], middle = (p->bin - 1) / 2.0;

	open_field_row(&p->open, from * p->bin + middle, p->bin, j * p->bin + middle, n, field);
	memset(s.value, 0, (size_t)columns * sizeof(s.value[0]));
	memset(s.count, 0, (size_t)columns * sizeof(s.count[0]));
	if (table) {
		memset(s.intensity, 0, (size_t)columns * sizeof(s.intensity[0]));
		memset(s.air, 0, (size_t)columns * sizeof(s.air[0]));
		memset(s.shown, 0, (size_t)columns * sizeof(s.shown[0]));
	}
	s.padded = s.saturated = s.over_range = 0;
	for (int k = 0; k < p->bin; k++) {
		size_t at = ((size_t)j * (size_t)p->bin + (size_t)k) * (size_t)p->n_u + (size_t)from * (size_t)p->bin;

		if (table)
			add_table(raw + at, p->flatfield ? p->flatfield + at : NULL, columns, lim, table, i0, &s);
		else
			add_plain(raw + at, columns, lim, &s);
	}
	for (int m = 0; m < n; m++) {
		double intensity = 0, air = 0;
		uint32_t value = 0, count = 0;

		for (int i = m * p->bin; i < (m + 1) * p->bin; i++) {
			value += s.value[i];
			count += s.count[i];
			if (table) {
				intensity += s.intensity[i] + s.shown[i] * field[m];
				air += s.air[i];
			}
		}
		if (!table) {
			intensity = (p->inverted ? count * p->max_value - value : value) - count * p->offset;
			air = count * i0;
		}
		ret_valid[m] = count > 0 ? 1 : 0;
		ret_line[m] = count > 0 ? to_line(p, intensity, air * field[m], &stats->floored, &stats->clamped) : 0;
	}
	stats->padded += s.padded;
	stats->saturated += s.saturated;
	stats->over_range += s.over_range;
}

static void lookup_fill(const struct prep *p, const double *table, struct lookup *ret)
{
	double air = p->is_log ? 1 : p->i0;

	ret->floored[0] = ret->clamped[0] = VALUES;
	ret->floored[1] = ret->clamped[1] = -1;
	for (int v = 0; v < VALUES; v++) {
		size_t floored = 0, clamped = 0;

		ret->line[v] = to_line(p, table[v], air, &floored, &clamped);
		if (floored) {
			ret->floored[0] = v < ret->floored[0] ? v : ret->floored[0];
			ret->floored[1] = v;
		}
		if (clamped) {
			ret->clamped[0] = v < ret->clamped[0] ? v : ret->clamped[0];
			ret->clamped[1] = v;
		}
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

#ifdef __x86_64__
__attribute__((target("avx2"))) static void look_up_avx2(const struct lookup *l, struct limits lim, const uint16_t *row, int n,
							 float *ret_line, float *ret_valid, struct prep_stats *stats)
{
	look_up_loop(l, lim, row, n, ret_line, ret_valid, stats);
}
#endif

static void look_up(const struct lookup *l, struct limits lim, const uint16_t *row, int n, float *ret_line, float *ret_valid,
		    struct prep_stats *stats)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		look_up_avx2(l, lim, row, n, ret_line, ret_valid, stats);
		return;
	}
#endif
	look_up_loop(l, lim, row, n, ret_line, ret_valid, stats);
}

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
	int r = check(p, &lim, err);

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
			merge(p, lim, table, raw, j, from, n_u - from < block ? n_u - from : block, ret_line + row + from,
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

static bool is_valid(struct limits lim, int value)
{
	return !(value >= lim.lo && value <= lim.hi) && value < lim.over && value != lim.air;
}

int prep_histogram(const struct prep *p, const uint16_t *raw, uint32_t ret_hist[PREP_VALUES], struct err *err)
{
	/* Four histograms used in turn: in a single one, increments for equal neighbouring values (air) would have to wait for
	 * each other. */
	size_t n = (size_t)p->n_u * (size_t)p->n_v, i = 0;
	uint32_t *hist;

	if (p->n_u < 1 || p->n_v < 1)
		return err_set(err, EINVAL, "prep: %d x %d detector bins", p->n_u, p->n_v);
	hist = calloc((size_t)4 * VALUES, sizeof *hist);
	if (!hist)
		return err_set(err, ENOMEM, "prep: no memory for a histogram");
	for (; i + 4 <= n; i += 4) {
		hist[raw[i]]++;
		hist[VALUES + raw[i + 1]]++;
		hist[2 * VALUES + raw[i + 2]]++;
		hist[3 * VALUES + raw[i + 3]]++;
	}
	for (; i < n; i++)
		hist[raw[i]]++;
	for (int v = 0; v < VALUES; v++)
		ret_hist[v] = hist[v] + hist[VALUES + v] + hist[2 * VALUES + v] + hist[3 * VALUES + v];
	free(hist);
	return 0;
}

int prep_percentile(const struct prep *p, const uint32_t hist[PREP_VALUES], double percent, double *ret_value, struct err *err)
{
	size_t all = 0, valid = 0, below = 0;
	struct limits lim;
	int v = 0;
	int r = check(&(struct prep){.n_u = 1,
				     .n_v = 1,
				     .bin = 1,
				     .i0 = 1,
				     .floor = 0.5,
				     .saturation = p->saturation,
				     .has_over_code = p->has_over_code,
				     .over_code = p->over_code,
				     .has_padding = p->has_padding,
				     .padding_lo = p->padding_lo,
				     .padding_hi = p->padding_hi},
		      &lim, err);

	if (r < 0)
		return r;
	if (!(percent > 0 && percent <= 100))
		return err_set(err, EINVAL, "prep: percentile %g, not in (0, 100]", percent);
	for (v = 0; v < VALUES; v++) {
		all += hist[v];
		valid += is_valid(lim, v) ? hist[v] : 0;
	}
	if (valid == 0)
		return err_set(err, ENODATA, "prep: none of %zu stored values is valid (padding %d..%d, over range from %d)", all,
			       lim.lo, lim.hi, lim.over);
	for (v = 0; (double)(below += is_valid(lim, v) ? hist[v] : 0) < percent / 100 * (double)valid; v++)
		;
	*ret_value = v;
	return 0;
}
