/* SPDX-License-Identifier: Apache-2.0 */
/* Photons in a phantom: Compton scatter at free electrons and photoelectric absorption.
 *
 * - Attenuation of water: 3.3428e20 electrons/mm^3 times the cross-section of Klein and Nishina, plus absorption of 2.07e-6/mm at
 *   511 keV that rises with 1 / energy^3 (XCOM's 2.76e-4/mm at 100 keV): 0.00958/mm at 511 keV. Coherent scatter, 1 % of it, does
 *   not change a photon's direction enough to matter and is left out.
 * - Free paths are sampled by delta tracking (Woodcock 1965) with the attenuation of water, the largest in the phantoms, so that
 * no surface is computed. */
#ifndef TOMONODE_TESTS_PET_MC_PHOTONS_H
#define TOMONODE_TESTS_PET_MC_PHOTONS_H

#include <stdbool.h>

#include "tests/pet_mc/phantom.h"

#define ELECTRON_KEV 511.0 /* rest energy, and energy of the photons of an annihilation */

struct matter {
	double mu[512], compton[512]; /* of water at each whole keV, 1/mm; probability of Compton scatter per collision */
	double kev_least;	      /* photons of less are no longer followed: nothing detects them */
};

/* mu: attenuation at 511 keV, all of it Compton scatter (for comparison with formulas); 0: that of water. */
void matter_init(struct matter *m, double mu, double kev_least);

struct photon {
	double at[3], d[3]; /* d: unit vector */
	double kev;
	int scatters;
};

/* Follow a photon until it leaves the phantom's box; at: then a place outside or on its surface. false: absorbed, or below the
 * least energy. */
bool photon_follow(const struct matter *m, const struct mc_phantom *p, struct rng *g, struct photon *photon);

/* Sample the first photon of an annihilation. */
void photon_first(const double at[3], struct rng *g, struct photon *ret);
/* Sample the second one; d: direction in which the first one started. deviation: standard deviation (radian) of each of the two
 * components of their acollinearity. */
void photon_second(const double at[3], const double d[3], double deviation, struct rng *g, struct photon *ret);

#endif
