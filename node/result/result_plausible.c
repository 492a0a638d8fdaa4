/* SPDX-License-Identifier: Apache-2.0 */
/* result_plausible.c - say if the values of a tomosynthesis cannot be those of a breast: a picture that is black but for some
 * voxels, a wrong scale, what angles of the wrong sign leave behind. The limits are wide: they are beyond every breast, so that a
 * sentence is a reason to look at the profile, and its absence proves nothing.
 *
 * Tissue: from a quarter of its 90 % quantile on, as for the display window. */
#include <stdio.h>

#include "node/result/result_internal.h"

#define ALL_AT_LIMIT 0.98 /* share of the voxels; a small breast on a large detector has less air */
/* 1/mm: mean attenuation. At 15 to 25 keV fat has 0.03 to 0.1, glandular tissue 0.05 to 0.2 (ICRU 44 by NIST's tables). */
#define MEAN_LEAST 0.02
#define MEAN_MOST 0.15
#define HIGH 0.2	 /* 1/mm: above it are calcifications and metal */
#define HIGH_SHARE 0.015 /* of the tissue; calcifications are far less */

void result_value_shares(const uint64_t *bins, size_t n, size_t tissue, double offset, double step,
			 struct value_shares *ret_shares)
{
	double all = 0, of_tissue = 0, sum = 0, high = 0;

	for (size_t i = 0; i < n; i++) {
		double value = offset + (double)i * step, here = (double)bins[i];

		all += here;
		if (i < tissue)
			continue;
		of_tissue += here;
		sum += here * value;
		high += value > HIGH ? here : 0;
	}
	*ret_shares = (struct value_shares){
		.at_limit = all > 0 ? (double)(bins[0] + bins[n - 1]) / all : 0,
		.mean = of_tissue > 0 ? sum / of_tissue : 0,
		.high = of_tissue > 0 ? high / of_tissue : 0,
	};
}

void result_add_value_warnings(const struct value_shares *s, bool quantitative, char *ret, size_t size)
{
	ret[0] = '\0';
	if (s->at_limit > ALL_AT_LIMIT)
		snprintf(ret, size,
			 "%.1f %% of the voxels have the smallest or the largest value that is stored: this is no picture of a "
			 "breast.",
			 100 * s->at_limit);
	else if (quantitative && s->high > HIGH_SHARE)
		snprintf(ret, size,
			 "%.1f %% of the tissue is above %g / mm, more than any tissue of the breast has: angles of the wrong "
			 "sign, a wrong geometry, or much metal or silicone.",
			 100 * s->high, HIGH);
	else if (quantitative && !(s->mean >= MEAN_LEAST && s->mean <= MEAN_MOST))
		snprintf(ret, size,
			 "The mean attenuation of the tissue is %.2g / mm, and breasts have %g to %g: a wrong I0, thickness or "
			 "geometry, or no breast.",
			 s->mean, MEAN_LEAST, MEAN_MOST);
}
