/* SPDX-License-Identifier: Apache-2.0 */
/* Roughness penalties and their gradients. C11, C++17 and CUDA C++.
 *
 * Relative difference prior (Nuyts, Beque, Dupont & Mortelmans 2002), over the 26 neighbours k of each voxel j:
 *
 *   R(x) = 1/2 sum over j, k of w_jk (x_j - x_k)^2 / (x_j + x_k + gamma |x_j - x_k| + epsilon),  w_jk = h_x / distance
 *   dR/dx_j = sum over k of w_jk prior_slope(x_j, x_k)
 *
 * epsilon > 0 keeps it differentiable where both are 0. Voxels that are exactly 0 are outside the support and do not count as
 * neighbours. */
#ifndef TOMONODE_KERNELS_PRIOR_H
#define TOMONODE_KERNELS_PRIOR_H

#include <math.h>

#include "kernels/geometry.h"

struct prior {
	float beta;    /* weight; the gradient is beta dR/dx */
	float gamma;   /* >= 0; a larger value smooths edges less */
	float epsilon; /* > 0, in the unit of x */
};

/* d/dx of (x - y)^2 / (x + y + gamma |x - y| + epsilon) */
static inline TOMONODE_HD float prior_slope(const struct prior *p, float x, float y)
{
	float d = x - y, s = x + y + p->gamma * fabsf(d) + p->epsilon;

	return d * (2 * s - d - p->gamma * fabsf(d)) / (s * s);
}

#endif
