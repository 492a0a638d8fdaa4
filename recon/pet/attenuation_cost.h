/* SPDX-License-Identifier: Apache-2.0 */
/* What an image lacks because its attenuation was not corrected, as far as the image itself tells.
 *
 * In each slice the body is where activity is: between the outermost voxels of a row, and of a column, that have a quarter of
 * the mean of those above the background, half of the mean. So a body whose middle lost most of its counts is whole. Half of
 * the slices that have a body have a larger one; a circle of the same area has the diameter D. In the middle of a cylinder of
 * water exp(-MU_WATER D) of the annihilations are measured. It is an order of magnitude: cold organs, arms and air are not
 * looked for. */
#ifndef TOMONODE_RECON_ATTENUATION_COST_H
#define TOMONODE_RECON_ATTENUATION_COST_H

#include "kernels/err.h"

struct attenuation_cost {
	double width;  /* D, mm; 0: the image has no body */
	double factor; /* exp(MU_WATER D) */
};

/* image: [n[2]][n[1]][n[0]]; h: mm between columns, between rows. ENOMEM. */
int attenuation_cost(const int n[3], const double h[2], const float *image, struct attenuation_cost *ret, struct err *err);

#endif
