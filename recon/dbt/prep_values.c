/* SPDX-License-Identifier: Apache-2.0 */
/* prep_values.c - which stored values occur in a view, and how often.
 *
 * A full histogram costs more than all else that is done with the stored values. A percentile is found without it: a sample shows
 * where it is, and the values below LIMITS limits there are counted, in a loop that the compiler vectorises; where the sample
 * errs, the limits are set again. The result is exact. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/avx2.h"
#include "recon/dbt/prep_internal.h"

#define VALUES PREP_VALUES
#define SAMPLE_ROWS 32	    /* each of this number of rows is in the sample */
#define SAMPLE_ERROR 0.0015 /* of a share of the values in the sample */
#define LIMITS 8	    /* values that all others are compared with */
#define PASSES 8	    /* over the image, at most; five find any percentile, unless limits are in the padding */
#define CHUNK 16384	    /* values whose number fits 16 bits */
#define SIGN 0x8000	    /* changes the order of unsigned numbers into that of signed ones */

int prep_limits(const struct prep *p, struct limits *ret, struct err *err)
{
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

/* An interval of stored values, not empty. */
struct interval {
	uint16_t lo, span;
};

static inline __attribute__((always_inline)) void mark_loop(const uint16_t *restrict values, int n, const struct interval in[3],
							    uint16_t *restrict marks)
{
	const struct interval a = in[0], b = in[1], c = in[2];

	for (int i = 0; i < n; i++) {
		uint16_t v = values[i];

		marks[i] |= (uint16_t)(((uint16_t)(v - a.lo) <= a.span) | ((uint16_t)(v - b.lo) <= b.span) |
				       ((uint16_t)(v - c.lo) <= c.span));
	}
}

FOR_AVX2(void, mark, (const uint16_t *values, int n, const struct interval in[3], uint16_t *marks), (values, n, in, marks))

void prep_mark(const uint16_t *first, int stride, int rows, int n, struct limits lim, uint16_t *ret_marks)
{
	const int bounds[3][2] = {{lim.lo, lim.hi}, {lim.over, VALUES - 1}, {lim.air, lim.air}};
	struct interval in[3];
	int found = 0;

	for (int k = 0; k < 3; k++) {
		int lo = bounds[k][0] > 0 ? bounds[k][0] : 0, hi = bounds[k][1] < VALUES ? bounds[k][1] : VALUES - 1;

		if (lo <= hi)
			in[found++] = (struct interval){(uint16_t)lo, (uint16_t)(hi - lo)};
	}
	memset(ret_marks, 0, (size_t)n * sizeof(*ret_marks));
	for (int k = found; k > 0 && k < 3; k++)
		in[k] = in[0];
	for (int row = 0; found > 0 && row < rows; row++)
		mark(first + (size_t)row * (size_t)stride, n, in, ret_marks);
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

/* Numbers of values below each limit, of padding, and the extreme values without padding. */
struct counts {
	uint16_t limit[LIMITS];
	size_t below[LIMITS], padded;
	uint16_t least, most;
};

/* Count n values, CHUNK at most. Signed numbers, which the vectors of all processors compare. pad: NULL: there is no padding. */
static inline __attribute__((always_inline)) void count_some(const uint16_t *restrict values, int n, const uint16_t *pad,
							     struct counts *c)
{
	int16_t limit[LIMITS], least = (int16_t)(c->least ^ SIGN), most = (int16_t)(c->most ^ SIGN);
	uint16_t pad_lo = pad ? pad[0] : 0, pad_span = pad ? (uint16_t)(pad[1] - pad[0]) : 0;
	uint16_t below[LIMITS] = {0}, padded = 0;

	for (int k = 0; k < LIMITS; k++)
		limit[k] = (int16_t)(c->limit[k] ^ SIGN);
	for (int i = 0; i < n; i++) {
		uint16_t is_pad = pad ? (uint16_t)(values[i] - pad_lo) <= pad_span : 0, mask = (uint16_t)-is_pad;
		int16_t v = (int16_t)(values[i] ^ SIGN), low = (int16_t)((v & ~mask) | (INT16_MAX & mask)),
			high = (int16_t)((v & ~mask) | ((uint16_t)INT16_MIN & mask));

		for (int k = 0; k < LIMITS; k++)
			below[k] = (uint16_t)(below[k] + (v < limit[k]));
		padded = (uint16_t)(padded + is_pad);
		least = low < least ? low : least;
		most = high > most ? high : most;
	}
	for (int k = 0; k < LIMITS; k++)
		c->below[k] += below[k];
	c->padded += padded;
	c->least = (uint16_t)(least ^ SIGN);
	c->most = (uint16_t)(most ^ SIGN);
}

static inline __attribute__((always_inline)) void count_loop(const uint16_t *values, int n, const uint16_t *pad, struct counts *c)
{
	if (pad)
		count_some(values, n, pad, c);
	else
		count_some(values, n, NULL, c);
}

FOR_AVX2(void, count, (const uint16_t *values, int n, const uint16_t *pad, struct counts *c), (values, n, pad, c))

static void count_values(const uint16_t *values, size_t n, const uint16_t *pad, struct counts *c)
{
	for (int k = 0; k < LIMITS; k++)
		c->below[k] = 0;
	c->padded = 0;
	c->least = VALUES - 1;
	c->most = 0;
	for (size_t i = 0; i < n; i += CHUNK) {
		int m = n - i < CHUNK ? (int)(n - i) : CHUNK;

		count(values + i, m, pad, c);
	}
}

/* The values between which a percentile is, and how many valid values are smaller than lo. */
struct range {
	int lo, hi;
	size_t below_lo, to_hi; /* to_hi: values up to hi */
};

/* Estimate from some rows between which two values the percentile most probably is. hist: working memory. */
static void estimate_percentile(const struct prep *p, const uint16_t *raw, const uint16_t *pad, double share,
				uint32_t hist[PREP_VALUES], int *ret_lo, int *ret_hi)
{
	double all = 0, below = 0;
	int v = 0;

	memset(hist, 0, PREP_VALUES * sizeof(*hist));
	for (int row = 0; row < p->n_v; row += SAMPLE_ROWS)
		for (int u = 0; u < p->n_u; u++)
			hist[raw[(size_t)row * (size_t)p->n_u + (size_t)u]]++;
	for (int i = pad ? pad[0] : 1; i <= (pad ? pad[1] : 0); i++)
		hist[i] = 0;
	for (int i = 0; i < VALUES; i++)
		all += hist[i];
	while (v < VALUES - 1 && below + hist[v] < (share - SAMPLE_ERROR) * all)
		below += hist[v++];
	*ret_lo = v;
	while (v < VALUES - 1 && below + hist[v] < (share + SAMPLE_ERROR) * all)
		below += hist[v++];
	*ret_hi = v;
}

/* Narrow the range of a percentile, by LIMITS limits from `from` on, `step` apart. Return false if it does not become smaller. */
static bool narrow_range(const uint16_t *raw, size_t n, const uint16_t *pad, double percent, int from, int step, struct counts *c,
			 struct range *r)
{
	const struct range before = *r;
	double least_below;

	for (int k = 0; k < LIMITS; k++)
		c->limit[k] = (uint16_t)(from + k * step < VALUES ? from + k * step : VALUES - 1);
	count_values(raw, n, pad, c);
	least_below = percent / 100 * (double)(n - c->padded);
	r->to_hi = r->hi == VALUES - 1 ? n - c->padded : r->to_hi;
	for (int k = 0; k < LIMITS; k++) {
		size_t below = c->below[k] - (pad && c->limit[k] > pad[1] ? c->padded : 0);

		if (pad && c->limit[k] > pad[0] && c->limit[k] <= pad[1])
			continue; /* how much of the padding is below is not known */
		if ((double)below < least_below && c->limit[k] > r->lo) {
			r->lo = c->limit[k];
			r->below_lo = below;
		} else if ((double)below >= least_below && c->limit[k] - 1 < r->hi) {
			r->hi = c->limit[k] - 1;
			r->to_hi = below;
		}
	}
	return r->hi - r->lo < before.hi - before.lo;
}

/* Find the value of a percentile. Return false if it is better found in a histogram. */
static bool search_percentile(const struct prep *p, const uint16_t *raw, size_t n, const uint16_t *pad, double percent, int from,
			      int to, struct counts *c, struct range *r)
{
	bool found;
	int passes = 1;

	*r = (struct range){.hi = VALUES - 1};
	if (to - from < LIMITS - 2)
		from -= (LIMITS - 2 - (to - from)) / 2;
	found = narrow_range(raw, n, pad, percent, from > 0 ? from : 0, 1 + (to - from) / (LIMITS - 1), c, r);
	while (found && r->lo < r->hi)
		found = passes++ < PASSES &&
			narrow_range(raw, n, pad, percent, r->lo + 1, 1 + (r->hi - r->lo) / (LIMITS + 1), c, r);
	return found && c->padded < n && !(p->inverted ? c->least == 0 : c->most >= p->max_value);
}

int prep_outline(const struct prep *p, const uint16_t *raw, double percent, uint32_t ret_hist[PREP_VALUES], struct err *err)
{
	size_t n = (size_t)p->n_u * (size_t)p->n_v;
	uint16_t pad[2];
	struct limits lim;
	struct counts c;
	struct range r;
	int from, to, rc = prep_limits(p, &lim, err);
	bool padded;

	if (rc < 0)
		return rc;
	padded = lim.lo <= lim.hi;
	if (p->n_u < 1 || p->n_v < 1 || lim.over < VALUES || !(percent > 0 && percent <= 100) ||
	    (padded && (lim.lo < 0 || lim.hi >= VALUES)))
		return prep_histogram(p, raw, ret_hist, err);
	pad[0] = (uint16_t)lim.lo;
	pad[1] = (uint16_t)lim.hi;
	estimate_percentile(p, raw, padded ? pad : NULL, percent / 100, ret_hist, &from, &to);
	if (!search_percentile(p, raw, n, padded ? pad : NULL, percent, from, to, &c, &r))
		return prep_histogram(p, raw, ret_hist, err);
	memset(ret_hist, 0, PREP_VALUES * sizeof(*ret_hist));
	ret_hist[c.least] += (uint32_t)r.below_lo;
	ret_hist[r.lo] += (uint32_t)(r.to_hi - r.below_lo);
	ret_hist[c.most] += (uint32_t)(n - c.padded - r.to_hi);
	ret_hist[pad[0]] += padded ? (uint32_t)c.padded : 0;
	return 0;
}

static bool is_valid(struct limits lim, int value)
{
	return !(value >= lim.lo && value <= lim.hi) && value < lim.over && value != lim.air;
}

int prep_percentile(const struct prep *p, const uint32_t hist[PREP_VALUES], double percent, double *ret_value, struct err *err)
{
	size_t all = 0, valid = 0, below = 0;
	struct limits lim;
	int v = 0;
	int r = prep_limits(p, &lim, err);

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
