/* SPDX-License-Identifier: Apache-2.0 */
/* Activity where a map of mu has no body: voxels of a coarse image, in slices where mu is known, that have no mu and no
 * neighbour with mu, and at least ACTIVITY_OUTSIDE_PART of the mean activity of those with mu. Less is what an image has
 * outside of a body after few iterations, from scatter and randoms, and the noise of few counts. The map is of another place,
 * lacks arms, or is of somebody else. */
#ifndef TOMONODE_RECON_ACTIVITY_OUTSIDE_H
#define TOMONODE_RECON_ACTIVITY_OUTSIDE_H

#include "kernels/geometry.h"

#define ACTIVITY_OUTSIDE_PART 0.33
#define ACTIVITY_OUTSIDE_DOUBTFUL 0.01 /* more is a body beyond the map of mu: docs/pet-corrections.md has what was measured */

/* Average values in the voxels of a coarse grid, x fastest; 0 outside of their grid. */
void activity_outside_average(const struct grid *from, const float *values, const struct grid *grid, int threads, float *ret);
/* Return the part of the activity that is outside. image, mu: on the coarse grid, x fastest; mu in 1/mm; covered: from and to
 * which z mu is known; NULL: everywhere. */
double activity_outside(const struct grid *grid, const float *image, const float *mu, const double *covered);

#endif
