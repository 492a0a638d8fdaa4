/* SPDX-License-Identifier: Apache-2.0 */
/* Find the air beside the breast in a plane, and how far the points of the plane are from it. */
#ifndef TOMONODE_RECON_SKIN_DISTANCE_H
#define TOMONODE_RECON_SKIN_DISTANCE_H

#include "kernels/err.h"

/* Mark the air among n[0] * n[1] values (x fastest, x = 0 at the chest wall): those below 0.08 of the level of the tissue that are
 * connected with an edge other than the chest wall. Return that level, the mean of the values weighted by themselves, so that the
 * amount of air does not count; 0: no value is above 0. work: an int for each value. */
double skin_air(const int n[2], const float *value, int *work, unsigned char *ret_air);

/* Compute for each of n[0] * n[1] cells (x fastest, h[0] x h[1] mm) the distance in mm from its centre to that of the nearest cell
 * whose air is not 0, and the index of this cell; 0 and its own index in air; INFINITY and -1 if there is no air. Exact: lower
 * envelopes of parabolas, Felzenszwalb & Huttenlocher 2012. ret_nearest: may be NULL. Threaded; needs 8 bytes per cell. EINVAL,
 * ENOMEM. */
int skin_distance(const int n[2], const double h[2], const unsigned char *air, float *ret_distance, int *ret_nearest,
		  struct err *err);

#endif
