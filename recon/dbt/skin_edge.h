/* SPDX-License-Identifier: Apache-2.0 */
/* Soften the edge of the skin in the line integrals.
 *
 * At the skin line a bin contains tissue in a part of its width, but a voxel is there or not: the outermost voxel alone explains
 * the bins that it covers in part, and multiplicative algorithms have no other voxel to correct, because all voxels outside are
 * 0. So it becomes too bright, a white line. Where line integrals are small, the intensity is blurred by (1 2 1) / 4 along u and
 * v: the edge is then about two voxels wide, which voxels can represent. */
#ifndef TOMONODE_RECON_SKIN_EDGE_H
#define TOMONODE_RECON_SKIN_EDGE_H

#include <stddef.h>

#include "kernels/err.h"

#define SKIN_EDGE_FULL 0.5f /* line integral below which the blur is full: 11 mm of fat at 20 keV */
#define SKIN_EDGE_NONE 1.0f /* and from which there is none; between them it fades */

/* Soften one view in place. line, valid: n_v * n_u; valid: 1: datum, 0: no datum, < 0: air, as a neighbour a line integral of 0.
 * Only bins with a datum change; a neighbour without one counts as the bin in the middle. Threaded. ENOMEM. */
int skin_edge_soften(int n_u, int n_v, float *line, const float *valid, struct err *err);

#endif
