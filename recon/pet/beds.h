/* SPDX-License-Identifier: Apache-2.0 */
/* Bed positions of a PET acquisition: the volumes of several beds joined to one.
 *
 * - Each bed is an acquisition of its own time, with the scanner's centre at another place along the axis. The volumes of all
 * beds have the same grid. The joint grid has the same voxels and the slices of bed 1, continued in both directions. A bed whose
 *   distance from bed 1 is not whole slices is interpolated linearly between its slices: this mixes two of them, f and 1 - f, and
 *   is a smoothing along z with the variance f (1 - f) slice^2, at most that of a FWHM of 1.18 slices. Distances within 0.01
 * slices of a whole number count as whole.
 * - A value of bed b is multiplied by gain_b = F_b / F_1, F = exp(lambda t) lambda / (1 - exp(-lambda T)) for a bed that begins
 *   t after the start of the acquisition and lasts T (1 / T without decay): x is in counts of its bed, and x F is in proportion
 *   to the activity at the start of the acquisition.
 * - In the overlap the joint value is the mean of the beds with the smallest variance. A slice with sensitivity S_b has x S_b
 *   counts on average, so that x has the variance x / S_b; with the activity a = F x, F x has the variance F^2 x / S_b = F a /
 * S_b: independent values with one mean are best weighted with the inverse of their variances (Gauss-Markov), w_b ~ S_b / gain_b,
 *   sum 1. This is the number of counts of each bed.
 * - S is the number of ring pairs that measure a slice on the axis (for all ring differences a triangle over the planes),
 *   attenuation and efficiencies left out: the mean is without bias for any weights, and an error of the weights changes the
 *   variance only in second order. */
#ifndef TOMONODE_RECON_PET_BEDS_H
#define TOMONODE_RECON_PET_BEDS_H

#include "kernels/geometry.h"
#include "recon/pet/images.h"
#include "recon/pet/michelogram.h"

#define PET_BEDS_ASIDE 0.1 /* mm: largest distance of a bed's centre from the axis of bed 1 */

/* Return F of a bed, 1/s; lambda: 1/s, 0 without decay. */
double pet_bed_factor(const struct pet_image *b, double lambda);

struct pet_join {
	struct grid bed, grid; /* of one bed, centred on it; of the joint volume, relative to the centre of bed 1 */
	int n;
	struct {
		double along; /* mm: distance from bed 1 along z */
		double shift; /* position of its first slice, in slices of the joint volume; whole if not interpolated */
		double gain;
		int first, end;	   /* slices of the joint volume that it has */
		bool interpolated; /* it is not whole slices from bed 1 */
	} part[PET_BEDS_MAX];
	float *weight;	 /* [bed][slice of the joint volume]; 0 where the bed has no slice, sum over the beds 1 */
	double *counted; /* [slice of the joint volume]: sensitivity of all beds together / largest of bed 1 */
};

/* Plan the join. axis: direction cosines of x, y, z in the frame of reference. lambda: 1/s, 0 without decay. EBADMSG: a bed is
 * beside the axis of bed 1, or beds leave a gap. pet_join_clear() frees what belongs to it, and accepts zeros. */
int pet_join_plan(const struct pet_images *beds, const double axis[3][3], const struct grid *bed, const struct michelogram *m,
		  double lambda, struct pet_join *ret, struct err *err);
void pet_join_clear(struct pet_join *j);

/* Add a bed, from 0, to the joint volume, which is 0 at first; both x fastest, slices in ascending z. Each bed once. */
void pet_join_add(const struct pet_join *j, int bed, const float *volume, float *joint);

/* Return the bed, from 0, that has the largest weight in a slice of the joint volume. */
int pet_join_bed_of(const struct pet_join *j, int slice);

/* Compute the sensitivity of the slices of a bed: the mean number of ring pairs over the thickness of each. */
void pet_bed_sensitivity(const struct michelogram *m, const struct grid *bed, double *ret_sensitivity);

#endif
