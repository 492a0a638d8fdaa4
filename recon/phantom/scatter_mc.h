/* SPDX-License-Identifier: Apache-2.0 */
/* A Monte Carlo of scattered photons in a breast, for simulated exams and for tests of scatter corrections. It shares no formula
 * with recon/dbt/scatter.h.
 *
 * Photons of SCATTER_MC_KEV go from the source of a view into the object. They are scattered by free electrons (Klein & Nishina
 * 1929) times an incoherent scattering function, and coherently with a form factor; the rest of the attenuation is absorption.
 * Every collision is forced, and each contributes its expected value to the detector, which is ideal, counts energy and has no
 * anti-scatter grid. Breast support and paddle do not scatter, and there is no body beyond the chest wall.
 *
 * Sources, all from memory and at 20 keV: incoherent 0.0169 and coherent 0.0063 /mm in adipose tissue, 0.0184 and 0.0088 /mm in
 * glandular tissue (NIST XCOM for water and ICRU 44 tissues, times the density), interpolated by attenuation. Incoherent
 * scattering function of water: 1 - exp(-3.4 x^1.08). Form factor of oxygen: 1 / (1 + (x / 0.3)^2), with x = sin(theta / 2) /
 * wavelength in 1/Angstrom; below 0.1 /Angstrom it is reduced by the interference of neighbouring molecules, 1 - exp(-(x /
 * 0.1)^2). */
#ifndef TOMONODE_RECON_SCATTER_MC_H
#define TOMONODE_RECON_SCATTER_MC_H

#include <stdint.h>

#include "recon/phantom/phantom.h"
#include "recon/phantom/voxel_phantom.h"

#define SCATTER_MC_KEV 20.0

/* The object as a grid of about 3 mm with the mean attenuation of each voxel, 1/mm. */
struct scatter_mc {
	struct grid grid;
	float *mu;
};

/* Sample the bodies of an analytic phantom (its beads and lesions are too small to scatter much), or a phantom of voxels. */
int scatter_mc_of_phantom(const struct phantom *p, struct scatter_mc **ret_object, struct err *err);
int scatter_mc_of_voxels(const struct voxel_phantom *p, struct scatter_mc **ret_object, struct err *err);
struct scatter_mc *scatter_mc_free(struct scatter_mc *m); /* accepts NULL; returns NULL */

struct scatter_mc_run {
	int cell;	/* bins of a cell along u and v */
	size_t photons; /* number of photons that start toward the beam's field */
	uint64_t seed;
	int collisions; /* follow photons to this number of collisions; 0: until they have no weight */
	double beam[4]; /* field of the beam on the detector, bins: u0, u1, v0, v1; all 0: the whole detector */
};

/* Compute the scattered intensity in each cell of one view, relative to the unattenuated intensity there: ret_scatter[rows of
 * cells][columns], (n_u + cell - 1) / cell columns. Threaded; only `run` determines the random numbers, not the number of
 * threads. ret_sigma: standard deviation of each cell, or NULL. */
int scatter_mc_view(const struct scatter_mc *m, const struct scan *scan, int view, const struct scatter_mc_run *run,
		    float *ret_scatter, float *ret_sigma, struct err *err);

#endif
