/* SPDX-License-Identifier: Apache-2.0 */
/* Fill the rim of a synthetic view (peripheral enhancement): a compressed breast is thinner at its rim, so that a line integral
 * fades toward the skin. Add what homogeneous tissue in the missing thickness would have:
 *
 *   image(x, y) += L (1 - T(x, y) / H)      L = mu_ref H, H: compressed thickness, T: thickness of the breast
 *
 * What is added varies slowly along the skin and with the distance from it, so fine detail does not change. Byng 1997, Snoeren &
 * Karssemeijer 2005.
 *
 * - L is the level of the tissue that is mostly fat: the LEVEL_PART quantile of means over 5 mm, deeper than the rim.
 * - T / H is estimated from the view: the medians of its values by the distance from the skin, in sectors along the
 *   skin, smoothed, never decreasing from the skin inward until they reach L. Dense tissue, muscle and calcifications do not
 *   decide in a median of a fat rim; where they reach the skin the rim is filled less. */
#ifndef TOMONODE_RECON_RIM_FILL_H
#define TOMONODE_RECON_RIM_FILL_H

#include <stdbool.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

struct rim_fill_report {
	bool used;
	char reason[120]; /* a clause: why the rim is not filled; "": it is */
	double level;	  /* L, in units of the image */
	int sectors;	  /* of 72 around the breast: with a profile from which T / H was estimated */
};

/* Fill the rim of an image of line integrals: n[0] * n[1] floats of the grid, x fastest, x = 0 at the chest wall. If the image has no
 * skin line or too few values, it is not changed, and *ret says why. Threaded; bitwise the same result for any number of threads.
 * ret: may be NULL. EINVAL, ENOMEM. */
int rim_fill(const struct grid *grid, float *image, struct rim_fill_report *ret, struct err *err);

#endif
