/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of an image and the noise in them. Lengths in mm; no files, no allocation except in noise_spectrum_create().
 *
 * A pixel counts with the part of its area that is inside a circle, a voxel with the part of its volume that is inside a sphere
 * (NEMA NU 2, section 7: the analysis takes partial pixels into account). With weights w and values v
 *
 *   mean = sum(w v) / sum(w)        s^2 = sum(w (v - mean)^2) / (sum(w) - sum(w^2) / sum(w))
 *
 * which is the usual n - 1 where all weights are 1 (West 1979 for the running sums). */
#ifndef TOMONODE_RECON_REGIONS_H
#define TOMONODE_RECON_REGIONS_H

#include <stddef.h>

#include "kernels/err.h"

/* Return the area of the rectangle lo .. hi that is inside the circle of radius r around (0, 0), mm^2. Exact. */
double circle_area(double r, const double lo[2], const double hi[2]);
/* Return the volume of the box lo .. hi that is inside the sphere of radius r around (0, 0, 0), mm^3: exact areas, Gauss-Legendre
 * along z, error below 1e-4 of the box. */
double sphere_volume(double r, const double lo[3], const double hi[3]);

/* Running sums of weighted values. Start from zero. */
struct region_sum {
	size_t n; /* values with a weight above 0 */
	double weight, weight2, mean, m2, min, max;
};

void region_add(struct region_sum *s, double weight, double value);
double region_sd(const struct region_sum *s); /* NaN: fewer than two values */

/* Noise power spectrum (ICRU Report 87) of `n` square regions of side x side pixels of h[0] x h[1] mm:
 *
 *   NPS(i, j) = h0 h1 / (side^2) mean |DFT(region - plane)|^2       value^2 mm^2
 *
 * The plane is a least-squares fit to each region. The sum over all frequencies times their distance 1 / (side h0) 1 / (side h1)
 * is the mean of the regions' variances around their planes (Parseval). */
struct noise_spectrum {
	int side;
	double h[2];
	size_t n;	 /* regions added */
	double variance; /* mean of (v - plane)^2 over all pixels of all regions */
	double *power;	 /* [side][side], sums of |DFT|^2; columns fastest; index 0: frequency 0 */
	double *work;	 /* cosines and sines, one region, its transform along rows */
};

/* EINVAL: side is not 4 to 256, or a distance is not above 0. */
int noise_spectrum_create(int side, const double h[2], struct noise_spectrum *ret, struct err *err);
void noise_spectrum_clear(struct noise_spectrum *s);
/* Add the region whose first pixel is at `values`; rows are `stride` values apart. */
void noise_spectrum_add(struct noise_spectrum *s, const float *values, size_t stride);
/* Return NPS(i, j) of the regions added, i along columns. */
double noise_spectrum_at(const struct noise_spectrum *s, int i, int j);

struct noise_bin {
	double frequency, power; /* means over the frequencies of the bin, 1/mm and value^2 mm^2 */
	size_t n;		 /* frequencies */
};

/* Mean over rings of width 1 / (side max(h)): ring k has the frequencies within half a width of k widths, up to the largest
 * frequency of the coarser axis. Writes side / 2 bins, k from 1. Frequency 0 is not among them. */
void noise_spectrum_rings(const struct noise_spectrum *s, struct noise_bin *ret_bins);
/* Return the integral over all frequencies: the variance. */
double noise_spectrum_integral(const struct noise_spectrum *s);

#endif
