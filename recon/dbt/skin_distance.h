/* SPDX-License-Identifier: Apache-2.0 */
/* Compute how far the points of a plane are from the air beside the breast. */
#ifndef TOMONODE_RECON_SKIN_DISTANCE_H
#define TOMONODE_RECON_SKIN_DISTANCE_H

#include "kernels/err.h"

/* Compute for each of n[0] * n[1] cells (x fastest, h[0] x h[1] mm) the distance in mm from its centre to that of the nearest cell
 * whose air is not 0, and the index of this cell; 0 and its own index in air; INFINITY and -1 if there is no air. Exact: lower
 * envelopes of parabolas, Felzenszwalb & Huttenlocher 2012. ret_nearest: may be NULL. Threaded; needs 8 bytes per cell. EINVAL,
 * ENOMEM. */
int skin_distance(const int n[2], const double h[2], const unsigned char *air, float *ret_distance, int *ret_nearest,
		  struct err *err);

#endif
