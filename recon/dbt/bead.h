/* SPDX-License-Identifier: Apache-2.0 */
/* Locate a small bright detail, to a fraction of a voxel, in a window taken from the slices around it.
 *
 * Its image moves from slice to slice: outside its own slice it is displaced along the rays, by x / (height of the source) per
 * mm. So its position in the plane is a straight line over depth, and its depth is the centre of the profile along that line:
 * - in each slice near the middle: the centroid of the values above the slice's median, weighted with a Gaussian around the line;
 * - the line: least squares through the centroids, each weighted by the height there;
 * - the profile: in each slice the mean above the median, weighted with a Gaussian of the detail's radius around the line; a
 *   fitted Gaussian (recon/core/figures.h) gives its centre and width;
 * - repeat from the first step until nothing changes. Lengths in mm. */
#ifndef TOMONODE_RECON_BEAD_H
#define TOMONODE_RECON_BEAD_H

#include <stddef.h>

#include "kernels/err.h"

struct bead_window {
	int n[3];	     /* voxels along x and y, and slices */
	double h[2];	     /* voxel size along x and y; the centre of the first voxel is at 0 */
	const double *depth; /* z of each slice, ascending */
	const float *values; /* x fastest; NaN: outside the image. All pointers are borrowed */
};

struct bead {
	double at[3];	 /* x, y, depth */
	double slope[2]; /* change of x and y per mm of depth */
	double fwhm;	 /* width along depth; NaN: too few slices, or no peak: at[2] is then the depth of a slice */
};

/* Locate a bead. top: x, y and slice of the voxel with the largest value, where the search starts; radius: of the bead, roughly.
 * ret_profile: n[2] values above the slices' medians along the line of the head comment, NaN where it is outside the window.
 * ENODATA: no value above the median near the line. */
int bead_locate(const struct bead_window *w, const int top[3], double radius, struct bead *ret_bead, double *ret_profile,
		struct err *err);

#endif
