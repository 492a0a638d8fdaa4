/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether factors of detectors already contain the attenuation of a body whose factors are known, from a CT: then both
 * together would correct it twice.
 *
 * Factors of detectors (efficiencies, geometry, gaps, numbers of ring pairs) know nothing of the body. If the attenuation is in
 * them, -ln(factor) rises with the line integrals L of mu with the slope 1, else 0. The slope is that of a regression on the
 * differences between angles, in each radial bin of each plane: there, factors of the geometry, which change with the radius and
 * the plane, cancel. Its deviation is that of the residuals, taken to be as many independent ones as a ring has detectors,
 * because all bins of a detector have its efficiency. The attenuation is in the factors if the slope is closer to 1 than to 0,
 * and above 0 by ATTENUATION_IN_SURE deviations, and if all bins of a plane together have such a slope, too: an efficiency that
 * changes along the ring as the body does is not taken for it.
 *
 * If the slope between angles is not known to ATTENUATION_IN_DEVIATION, because the body looks the same from all of them, the
 * attenuation is in the factors only if all bins of a plane follow L with a slope of about 1 and nearly without residuals, over
 * differences in L that no geometry of detectors makes. */
#ifndef TOMONODE_RECON_ATTENUATION_IN_FACTORS_H
#define TOMONODE_RECON_ATTENUATION_IN_FACTORS_H

#include "recon/pet/michelogram.h"

#define ATTENUATION_IN_DEVIATION 0.25 /* of a slope that decides */
#define ATTENUATION_IN_SLOPE 0.5      /* more is closer to 1 than to 0, and as far above 1 at most */
#define ATTENUATION_IN_SURE 4.0
#define ATTENUATION_IN_DEAD 1e-4    /* some programs write gaps as very large corrections */
#define ATTENUATION_IN_RANGE 0.25   /* in all bins of a plane: of the slope, around 1 */
#define ATTENUATION_IN_RESIDUAL 0.1 /* there: part of the variance */
#define ATTENUATION_IN_LINES 0.3    /* there: least standard deviation of L; 200 mm of water: 0.8 */

struct attenuation_in_factors {
	bool found;
	double slope;	  /* between angles; if this is not known, of all bins; NaN: neither is known */
	double deviation; /* standard deviation of that between angles; INFINITY: no differences */
};

/* factors: fraction of the events that is counted; 0, or less than ATTENUATION_IN_DEAD of the mean of a plane: a gap, which does
 * not count. attenuation: fraction exp(-L) that survives; both
 * [plane][angle][radial], without TOF bins. Pure. */
struct attenuation_in_factors attenuation_in_factors(const struct michelogram *m, const float *factors, const float *attenuation);

#endif
