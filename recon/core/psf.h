/* A resolution model in image space: an operator behind a Gaussian blur of the volume, A D G (Reader & al. 2003).
 *
 * G is its own adjoint (kernels/device.h, blur()) and sees 0 outside the volume. Above and below it there is not nothing, only
 * nothing known: D divides each slice by the part of the Gaussian's weight that lies in the volume, so that what is uniform along
 * z stays so and the last slices do not have to stand for what lies beyond them. The adjoint is G D A', exactly.
 */
#ifndef TOMONODE_RECON_PSF_H
#define TOMONODE_RECON_PSF_H

#include "recon/core/linop.h"

#define PSF_WORK_VOLUMES 4		      /* three to work in, and D */
#define PSF_FWHM_PER_SIGMA 2.3548200450309493 /* 2 sqrt(2 ln 2) */

/* Part of a Gaussian's weight about slice k that lies in the volume; weight, reach: of blur_weights() along z. */
static inline double psf_inside(const float *weight, int reach, int n, int k)
{
	double inside = 0;

	for (int j = k - reach; j <= k + reach; j++)
		inside += j >= 0 && j < n ? weight[j < k ? k - j : j - k] : 0;
	return inside;
}

/* Allocates the volumes and makes D. */
int psf_work_alloc(struct device *dev, const struct grid *grid, double fwhm, struct buf ret_work[PSF_WORK_VOLUMES],
		   struct err *err);
void psf_work_release(struct buf work[PSF_WORK_VOLUMES]); /* empty ones are fine */

/* `a` is taken over on success; its n_in is the size of the grid, which is copied. fwhm: mm. room: of the same device,
 * grid and fwhm, borrowed; operators whose calls do not overlap may share them. It has no passes with pairs: subsets keep their
 * den. */
int psf_create(struct linop *a, const struct grid *grid, double fwhm, const struct buf work[PSF_WORK_VOLUMES],
	       struct linop **ret_op, struct err *err);

#endif
