/* SPDX-License-Identifier: Apache-2.0 */
/* Find small round beads in a projection, to a fraction of a bin.
 *
 * - Candidates: bins whose neighbourhood (a square inside the bead) is higher than each of eight such squares around it, by a
 *   multiple of the noise. Edges of a phantom or a breast have a square at the same height on one side, so they are none.
 * - Of the candidates within a diameter of each other the highest one remains.
 * - Position: the centroid of the values above a plane, within the bead's radius and a margin; the plane is fitted to the ring
 *   around it. Repeated until the window no longer moves.
 * The noise is estimated from the picture itself, so that the unit of the values does not matter. */
#ifndef TOMONODE_RECON_BEAD_FIND_H
#define TOMONODE_RECON_BEAD_FIND_H

#include <stddef.h>

#include "kernels/err.h"

struct bead_picture {
	int n_u, n_v;
	const float *value; /* n_v * n_u attenuations, u fastest; NaN: no data; borrowed */
};

struct bead_spot {
	double at[2];	 /* u, v; 0: the centre of the first bin */
	double height;	 /* mean value inside, above the highest of the squares around it */
	double contrast; /* height divided by the noise of one such difference */
};

#define BEAD_SPOTS_MAX 2000 /* of one picture: more are no beads */

/* Find the beads of a diameter in bins, 3 to 200. ret_spots: the caller frees it. ENODATA: no value, or no bead. ERANGE: more
 * than BEAD_SPOTS_MAX. */
int bead_find(const struct bead_picture *picture, double diameter, struct bead_spot **ret_spots, size_t *ret_n, struct err *err);

#endif
