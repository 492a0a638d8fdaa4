/* SPDX-License-Identifier: Apache-2.0 */
/* Find the skin line: which bins of a projection show only air, so that no tissue is on their rays.
 *
 * Air is the connected region of small line integrals that reaches the side of the detector opposite the chest wall. Regions
 * of small line integrals inside the breast are not air, nor are bins closer than `margin` to tissue: a voxel is excluded from
 * the reconstruction if one view shows air there (mark() in kernels/device.h), so the mask must never include skin. */
#ifndef TOMONODE_RECON_BREAST_MASK_H
#define TOMONODE_RECON_BREAST_MASK_H

#include <stddef.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

#define BREAST_MASK_MARGIN 3.0 /* mm, in the detector's plane */

enum breast_mask_verdict {
	BREAST_MASK_MARKED = 1, /* the view shows tissue and air; air is marked */
	BREAST_MASK_NO_AIR,	/* the breast fills the detector, or there are no data */
	BREAST_MASK_ALL_AIR,	/* there is only air: the view is not usable */
};

struct breast_mask_report {
	enum breast_mask_verdict verdict;
	double air;	  /* line integral of the air, dimensionless; 0: no air */
	double threshold; /* largest local mean that counts as air */
	size_t marked;	  /* number of bins marked as air */
};

/* Mark the air of one view of a SCAN_DBT. margin: distance in mm to tissue within which a bin is never air. Only the number and
 * pitch of the scan's bins are used. line: n_v * n_u line integrals. valid: as many floats; > 0: the bin has a datum; air is
 * marked by -1, in place. Bins without a datum are not changed. Nothing is marked unless the verdict is BREAST_MASK_MARKED.
 * Threaded; needs 9 bytes per square mm of the view (per bin if bins are larger). ret_report: may be NULL. */
int breast_mask_view(const struct scan *scan, double margin, const float *line, float *valid,
		     struct breast_mask_report *ret_report, struct err *err);

#endif
