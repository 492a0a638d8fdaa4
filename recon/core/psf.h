/* SPDX-License-Identifier: Apache-2.0 */
/* A resolution model in image space: an operator applied to a volume blurred with a Gaussian, A D G (Reader & al. 2003).
 *
 * G is its own adjoint (kernels/device.h, blur()) and assumes 0 outside the volume. But above and below the volume the activity
 * is unknown, not 0: D divides each slice by the fraction of the Gaussian's weight that is inside the volume. So a volume that is
 * uniform along z stays uniform, and the last slices need not compensate for activity outside. The adjoint is exactly G D A'. */
#ifndef TOMONODE_RECON_PSF_H
#define TOMONODE_RECON_PSF_H

#include "recon/core/session.h"

#define PSF_WORK_VOLUMES 4		      /* three work volumes, and D */
#define PSF_FWHM_PER_SIGMA 2.3548200450309493 /* 2 sqrt(2 ln 2) */

/* Return the fraction of the weight of a Gaussian around slice k that is inside the volume; weight, reach: from blur_weights()
 * along z. */
static inline double psf_inside(const float *weight, int reach, int n, int k)
{
	double inside = 0;

	for (int j = k - reach; j <= k + reach; j++)
		inside += j >= 0 && j < n ? weight[j < k ? k - j : j - k] : 0;
	return inside;
}

/* Allocate the volumes in the memory of a session, and compute D. */
int psf_work_alloc(struct session_memory *m, const struct grid *grid, double fwhm, struct buf ret_work[PSF_WORK_VOLUMES],
		   struct err *err);

/* Create the operator. On success it owns `a`; a->n_in must be the size of the grid, which is copied. fwhm: mm. work: from
 * psf_work_alloc() with the same device, grid and fwhm; borrowed; operators whose calls do not overlap may share it. The operator
 * does not support pairs (ENOTSUP), so it can be used only in subsets that keep their den. */
int psf_create(struct linop *a, const struct grid *grid, double fwhm, const struct buf work[PSF_WORK_VOLUMES],
	       struct linop **ret_op, struct err *err);

#endif
