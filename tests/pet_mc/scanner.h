/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner of the Monte Carlo: a cylinder of radius R whose inner surface is divided into crystals, and its sinograms.
 *
 * - Column i of a ring is centred at the angle i 360 / columns degrees from x towards y; ring 0 has the least z. A photon is
 * found where it meets the cylinder, in the crystal of that place, with the probability of the crystal's efficiency and if its
 * measured energy is in the window. The measured energy is normal, its full width at half maximum resolution sqrt(511 keV / E) E.
 * - A pair of columns a (first end), b has the radial bin t with a - b = columns / 2 - t and the view (a + b) / 2, rounded up, in
 *   0 .. columns / 2 - 1: of the two orders of a pair one has such a view. The ring difference is that of the first end's ring
 * and the second's. Two views are added into one angle. This is docs/sinogram-object.md, with columns that count from another
 * angle.
 * - Segments of SPAN ring differences, in the order 0, +1, -1, +2 ...; bins [plane][angle][radial]. */
#ifndef TOMONODE_TESTS_PET_MC_SCANNER_H
#define TOMONODE_TESTS_PET_MC_SCANNER_H

#include <stddef.h>

#include "tests/pet_mc/photons.h"

#define SCANNER_SPAN 3
#define SCANNER_MASH 2

struct mc_scanner {
	int rings, columns, n_radial, n_angles, n_segments, n_planes, difference; /* the largest ring difference */
	double radius, ring_spacing;
	double kev_low, kev_high, resolution;
	int segment[64][3]; /* lowest and highest ring difference, number of planes */
	int base[128];	    /* [difference + rings - 1]: plane of a ring pair is this + (sum of rings); INT_MIN: none */
	double *efficiency; /* [ring][column], at most 1 */
};

/* The scanner with sinograms. spread: efficiencies are uniform within +- this of their mean, drawn by seed. -1: no memory. */
int mc_scanner_init(struct mc_scanner *s, double spread, uint64_t seed);
/* The mMR, without sinograms: for lists of events. efficiencies: file of float [ring][column]. -1: it cannot be read. */
int mc_scanner_mmr(struct mc_scanner *s, const char *efficiencies);
void mc_scanner_free(struct mc_scanner *s);

size_t mc_scanner_bins(const struct mc_scanner *s);
/* Return the bin of two crystals (ring * columns + column), or -1. */
long mc_scanner_bin(const struct mc_scanner *s, int p, int q);
/* Return the crystal that finds a photon that left the phantom, or -1. */
int mc_scanner_find(const struct mc_scanner *s, const struct photon *f, struct rng *g);
/* Return the probability that a photon of this energy is in the window. */
double mc_scanner_window(const struct mc_scanner *s, double kev);

/* Compute the part of all annihilations along the line of two crystals, per mm of the line and per annihilation in a mm^3, that
 * both find: surfaces times cosines over the square of the distance, over 2 pi, and efficiencies. */
double mc_scanner_share(const struct mc_scanner *s, int p, int q);
/* Compute the ends of the ray that docs/sinogram-object.md defines for a bin: first and second. */
void mc_scanner_ray(const struct mc_scanner *s, size_t bin, double ret_first[3], double ret_second[3]);

/* Write FOLDER/NAME.hs and .s: uint16 or float values of all bins. counts or values is NULL. -1: it cannot be written. */
int mc_scanner_write(const struct mc_scanner *s, const char *folder, const char *name, const unsigned *counts,
		     const float *values);

#endif
