/* A resolution model in image space: an operator behind a Gaussian blur of the volume, A G. G is its own adjoint
 * (kernels/device.h, blur()), so the adjoint is G A', exactly. Reader & al. 2003.
 */
#ifndef TOMONODE_RECON_PSF_H
#define TOMONODE_RECON_PSF_H

#include "recon/linop.h"

#define PSF_ROOMS 3
#define PSF_FWHM_PER_SIGMA 2.3548200450309493 /* 2 sqrt(2 ln 2) */

/* `a` is taken over on success; its n_in is the size of the grid, which is copied. fwhm: mm. room: volumes on the same device,
 * borrowed; operators whose calls do not overlap may share them. It has no passes with pairs: subsets keep their den. */
int psf_create(struct linop *a, const struct grid *grid, double fwhm, const struct buf room[PSF_ROOMS], struct linop **ret_op,
	       struct err *err);

#endif
