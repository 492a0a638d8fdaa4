/* SPDX-License-Identifier: Apache-2.0 */
/* The attenuation of 511 keV photons from CT or from a map: Hounsfield units to linear attenuation coefficients mu in 1/mm,
 * resampled to the grid of a PET volume, added to those of other maps, smoothed to the resolution of PET.
 *
 * mu(HU), with H = HU + 1000: 9.6e-6 H up to the break point B, and above it a H + b: water and air below, water and bone
 * above. a, b and B depend on the tube voltage (Carney, Townsend, Rappoport, Bendriem 2006, Med Phys 33: 976). Negative
 * values become 0. The two lines meet at B within 1 % (the table is rounded). HU become mu first, and mu is then averaged:
 * the lines are not one line, so that the mean of HU would give another mu. */
#ifndef TOMONODE_RECON_MU_MAP_H
#define TOMONODE_RECON_MU_MAP_H

#include <stdint.h>

#include "kernels/err.h"
#include "kernels/geometry.h"
#include "recon/core/monitor.h"

#define MU_WATER 0.0096	   /* 1/mm at 511 keV */
#define MU_MAP_FWHM 5.0	   /* mm: usual Gaussian of a map */
#define MU_KVP_USUAL 120.0 /* taken if the voltage is not known */

/* An entry of the table. */
struct mu_curve {
	double kvp;	      /* 0: of a map */
	double slope, offset; /* above the break point: mu = slope H + offset, 1/mm */
	double edge;	      /* B, H = HU + 1000 */
};
/* Return the entry whose voltage is nearest; of a voltage that is not above 0 that of MU_KVP_USUAL. */
struct mu_curve mu_curve_of(double kvp);
/* Of a map, whose values are 10000 times mu in 1/cm, as HU: less 1000. */
struct mu_curve mu_curve_of_map(void);
double mu_of_hu(const struct mu_curve *c, double hu); /* 1/mm */

/* A CT or a map with its place in the axes of the grid. */
struct mu_source {
	const int16_t *hu; /* [n[2]][n[1]][n[0]]; borrowed */
	int n[3];
	double at[3][4]; /* centre of voxel (i, j, k), mm: coordinate c is at[c][0] i + at[c][1] j + at[c][2] k + at[c][3] */
};

/* Resample to a grid: the mean over each voxel, of points that are at most one CT voxel apart, linear between the centres of CT
 * voxels. Outside the CT, mu is 0. The order is that of the grid. Of voxels of more than MU_MAP_POINTS CT voxels along an axis,
 * that many points. Parallel. The progress is that of the stage "read"; monitor: NULL: none. EINVAL: `at` cannot be inverted;
 * ENOMEM; ECANCELED. */
#define MU_MAP_POINTS 32
int mu_map_resample(const struct mu_source *ct, const struct mu_curve *curve, const struct grid *grid,
		    const struct monitor *monitor, float *ret_mu, struct err *err);
/* Return how many slices of the grid the CT does not contain, by the middle of each slice. ret_covered (NULL: not wanted): from
 * and to which z it contains slices; the first is larger than the second if it contains none. EINVAL as above. */
int mu_map_uncovered(const struct mu_source *ct, const struct grid *grid, double ret_covered[2], struct err *err);

/* Return how much one of two maps of the grid repeats the other: sum min(a, b) / sum max(a, b) over the voxels where the one
 * attenuates, the larger of both. 1: it is in the other; 0: they do not touch; what is beside a body, or denser or lighter in
 * it, has little. */
double mu_map_repeated(const struct grid *grid, const float *a, const float *b);

/* Convolve with a Gaussian, in place. Outside the grid mu is unknown, not 0: the weights inside are normalised. Parallel.
 * fwhm: mm; 0: none. ENOMEM. */
int mu_map_smooth(const struct grid *grid, double fwhm, float *mu, struct err *err);

#endif
