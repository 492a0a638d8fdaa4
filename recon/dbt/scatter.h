/* SPDX-License-Identifier: Apache-2.0 */
/* Subtract scattered radiation from one projection of a breast, on a detector without or with an anti-scatter grid.
 *
 * A projection shows I = P + S, relative to the unattenuated intensity: primary P and scattered intensity S, which varies slowly.
 * S is estimated on cells of about SCATTER_CELL and subtracted bin by bin, so that the contrast of small structures is restored
 * too:
 *
 *   S(r) = scale sum over cells c of area SPR(T_c, a_c) m_c sqrt(P(c)) exp(-f_c L(b)) k(r - r_c; T_c, gap + l_c, slope_c)
 *
 * T_c: thickness of the breast on the ray of the cell, mm: the compressed thickness, and less near the skin, in the ratio of the
 * line integral to its median. SPR(T, a): ratio of scattered to primary intensity behind an infinitely wide slab, rays at the
 * angle a to its normal. k: where the scatter of a ray goes, per mm^2; it depends on the gap below the tissue and is displaced
 * toward the source, because scatter comes from above the ray's end. The other factors are what a slab does not have:
 *
 * - sqrt(P(c)) is the attenuation on the way to the middle of the tissue on the ray, exp(-f_c L(b)) that on the way from there to
 *   r. This way crosses the rays from c to a point between c and r; b is the middle of that part, L = -ln P its line integral,
 *   and f_c the height of the middle above the lower side of the breast, relative to its thickness.
 * - l_c is the height of the lowest tissue on the ray above the lower side of the breast. It is above 0 at the sides.
 * - m_c is less than 1 if the tissue around c is thinner than T_c: there, photons that were scattered repeatedly are missing.
 *
 * The equation is solved by SCATTER_ITERATIONS steps P = I P / (P + S). If I0 was measured in the air, it includes scatter. Then
 * I is multiplied by a factor that makes P in the air 1.
 *
 * SPR and k for five thicknesses are fitted to a Monte Carlo (recon/phantom/scatter_mc.h) of 20 keV in tissue of 0.055/mm. Other
 * energies and tissues are not distinguished: from 0.046 to 0.07/mm the SPR changes by 6 %. Support and paddle are not part of
 * it. */
#ifndef TOMONODE_RECON_SCATTER_H
#define TOMONODE_RECON_SCATTER_H

#include <stdbool.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

#define SCATTER_THICKNESS_LEAST 20.0 /* mm; the table's range: SPR is extrapolated linearly beyond it */
#define SCATTER_THICKNESS_MOST 80.0
/* mm, degrees: with more of both, errors of single areas are up to 7 % (docs/numerics.md). */
#define SCATTER_THICKNESS_SURE 70.0
#define SCATTER_ANGLE_SURE 20.0
#define SCATTER_CELL 8.0 /* mm */
#define SCATTER_ITERATIONS 4

struct scatter {
	double thickness; /* of the compressed breast, mm */
	double gap;	  /* from the lower side of the breast to the detector, mm */
	double scale;	  /* S / P of the system relative to one without grid */
	bool of_air;	  /* I0 was measured in the air of the images, which shows scatter too */
};

struct scatter_report {
	double mean, most; /* ratio of scattered to primary intensity in the cells with tissue; 0: there are none */
	double air;	   /* scattered intensity in the air that I0 included, relative to I0 without it */
};

/* Return the ratio of scattered to primary intensity behind an infinitely wide slab. slope: tangent of the angle to its normal.
 */
double scatter_ratio(double thickness, double slope);

/* Correct the line integrals of one view of a SCAN_DBT in place. scan: with the detector's own bins; `bin` x `bin` of them are
 * merged. line: (n_v / bin) * (n_u / bin) line integrals, u fastest. valid: as many floats; only bins above 0 are corrected.
 * ret_report: may be NULL. Threaded; the result does not depend on the number of threads. */
int scatter_correct_view(const struct scatter *s, const struct scan *scan, int view, int bin, float *line, const float *valid,
			 struct scatter_report *ret_report, struct err *err);

#endif
