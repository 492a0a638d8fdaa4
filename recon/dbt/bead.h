/* Where a small bright detail lies, to a fraction of a voxel, in a window cut out of the slices around it.
 *
 * Its image moves from slice to slice: beside its own slice it lies along the rays, x / (height of the source) for each mm. So
 * its place in the plane is a straight line over depth, and its depth is the centre of the profile along that line:
 * - in each slice near the middle the centroid of what rises above the slice's median, weighted with a Gaussian about the line;
 * - the line: least squares through the centroids, each weighted by the height there;
 * - the profile: in each slice the mean above the median, weighted with a Gaussian of the detail's radius about the line; its
 *   centre and width from a fitted Gaussian (recon/core/figures.h);
 * - again from the first step, until nothing moves. Lengths in mm.
 */
#ifndef TOMONODE_RECON_BEAD_H
#define TOMONODE_RECON_BEAD_H

#include <stddef.h>

#include "kernels/err.h"

struct bead_window {
	int n[3];	     /* along x, y and slices */
	double h[2];	     /* voxel along x and y; the first one's middle is at 0 */
	const double *depth; /* of each slice, ascending */
	const float *values; /* x fastest; NaN where there is no image; all borrowed */
};

struct bead {
	double at[3];	 /* x, y, depth */
	double slope[2]; /* x and y for each mm of depth */
	double fwhm;	 /* along depth; NaN: too few slices, or no peak among them: at[2] is then the depth of a slice */
};

/* top: x, y and slice of the voxel to begin with, the highest one; radius: about that of the detail. ret_profile: n[2] values
 * above the slices' medians, NaN where the line leaves the window. ENODATA: nothing rises above the median there. */
int bead_locate(const struct bead_window *w, const int top[3], double radius, struct bead *ret_bead, double *ret_profile,
		struct err *err);

#endif
