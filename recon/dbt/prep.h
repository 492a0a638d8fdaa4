/* SPDX-License-Identifier: Apache-2.0 */
/* Convert stored detector values into line integrals: mask, bin, divide by I0, floor, log. One view at a time.
 *
 *   linear detector values:  I = (value - offset) * (polarity), y = ln(I0 / I)        (Beer-Lambert)
 *   log detector values:     y = (log_zero - value) * log_scale                       (values proportional to the logarithm)
 *
 * Binning averages the intensities of the valid bins before the log. A bin without valid detector bins is not valid (y = 0, valid
 * = 0). With a flat field, y = ln(sum I0 / sum I) over the valid bins; a bin whose flat field is not above 0 is dead and not
 * valid. I is floored at `floor` * I0 before the log, and negative y is clamped to 0; the statistics count both. The result never
 * contains NaN or inf.
 *
 * A stored value that is over range (recon/dbt/air.h) shows air: its bins have the intensity I0.
 *
 * If the open field is not uniform (recon/dbt/open_field.h), I0 of a merged bin is multiplied by the factor at its centre. */
#ifndef TOMONODE_RECON_PREP_H
#define TOMONODE_RECON_PREP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/dbt/open_field.h"

/* Bins without data because a collimator's shadow covers them: at the far end of u, at the beginning and at the end of v. */
struct prep_shadow {
	int far, first, last;
};

struct prep {
	int n_u, n_v;	  /* detector bins, as in raw */
	int bin;	  /* merge bin x bin */
	bool is_log;	  /* values are already proportional to the logarithm of the intensity */
	bool inverted;	  /* linear: a larger value means fewer photons: I = max_value - value - offset */
	double max_value; /* 2^BitsStored - 1 */
	double offset;	  /* detector offset, stored-value units */
	double i0;	  /* unattenuated intensity of this view, after offset and exposure scaling */
	double floor;	  /* fraction of i0, > 0 */
	double log_zero, log_scale;
	bool has_padding;
	int padding_lo, padding_hi; /* stored values lo..hi mean no data */
	double saturation;	    /* stored values at or above are over range and mean no data; 0: no limit */
	bool has_over_code;
	int over_code;		/* stored value that means an intensity above the range */
	const float *flatfield; /* n_v * n_u: I0 per bin relative to i0; NULL: 1 */
	struct prep_shadow shadow;
	struct open_field open; /* factor of I0, of linear values, in the bins of raw */
};

struct prep_stats {
	size_t padded, saturated, over_range; /* in detector bins */
	size_t floored, clamped;	      /* in merged bins */
};

/* raw: n_v * n_u stored values, u fastest, already oriented: u away from the chest wall, v along +y. ret_line, ret_valid: (n_v /
 * bin) * (n_u / bin) floats. */
int prep_view(const struct prep *p, const uint16_t *raw, float *ret_line, float *ret_valid, struct prep_stats *ret_stats,
	      struct err *err);

#define PREP_VALUES 65536

/* Count how often each stored value occurs. Uses n_u and n_v of p. */
int prep_histogram(const struct prep *p, const uint16_t *raw, uint32_t ret_hist[PREP_VALUES], struct err *err);

/* Make a histogram that has the smallest and the largest stored value, this percentile of all of them, and the number of padding,
 * but may have all other values at one of the three, which is much faster. It ignores the over-range code of p; a percentile
 * without that code needs prep_histogram(). With saturation, or if the last code of the range occurs, it is that of
 * prep_histogram(), so that what is said of `hist` in recon/dbt/air.h and below is the same for both. */
int prep_outline(const struct prep *p, const uint16_t *raw, double percent, uint32_t ret_hist[PREP_VALUES], struct err *err);

/* Return the smallest stored value v such that at least `percent` percent of the valid stored values are <= v; used to estimate
 * I0 from the air in the view. Inverted data have their air at the small values: use 100 - percent. hist: from prep_histogram(),
 * or, without an over-range code that occurs, from prep_outline() for this percentile. ENODATA: no value is valid. Uses padding,
 * saturation and the over-range code of p, which is not valid here. */
int prep_percentile(const struct prep *p, const uint32_t hist[PREP_VALUES], double percent, double *ret_value, struct err *err);

#endif
