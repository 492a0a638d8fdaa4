/* SPDX-License-Identifier: Apache-2.0 */
/* prep_values.c - which stored values occur in a view, and how often. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/dbt/prep_internal.h"

#define VALUES PREP_VALUES

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
