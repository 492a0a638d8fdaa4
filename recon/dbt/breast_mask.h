/* The skin line: which bins of a projection show nothing but air, so that no tissue lies on their rays.
 *
 * The air is the connected region of small line integrals that reaches the side of the detector opposite the chest wall. What is
 * dark inside the breast is never air, nor is a bin less than `margin` from what is not air: a voxel is given up as soon as one
 * view sees air there (mark() in kernels/device.h), so skin must not be cut in any.
 */
#ifndef TOMONODE_RECON_BREAST_MASK_H
#define TOMONODE_RECON_BREAST_MASK_H

#include <stddef.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

#define BREAST_MASK_MARGIN 3.0 /* mm, in the detector's plane */

enum breast_mask_verdict {
	BREAST_MASK_MARKED = 1,
	BREAST_MASK_NO_AIR,  /* the breast fills the detector, or there is no data */
	BREAST_MASK_ALL_AIR, /* there is nothing but air: something is wrong with the view */
};

struct breast_mask_report {
	enum breast_mask_verdict verdict;
	double air;	  /* line integral of the air, no unit; 0 where there is none */
	double threshold; /* up to which a bin's surroundings count as air */
	size_t marked;	  /* bins */
};

/* One view of a SCAN_DBT, of which the number and pitch of bins matter. line: n_v * n_u line integrals. valid: as many, > 0
 * counts; set to -1 in place where the view shows air. Bins that do not count stay as they are. Nothing is marked where the
 * verdict is not MARKED. Threaded; needs 9 bytes for each square mm of the view (for each bin, where bins are larger).
 * ret_report: may be NULL. */
int breast_mask_view(const struct scan *scan, double margin, const float *line, float *valid,
		     struct breast_mask_report *ret_report, struct err *err);

#endif
