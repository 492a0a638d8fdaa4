/* SPDX-License-Identifier: Apache-2.0 */
/* Roughness penalties, their gradients, and the size of a step that does not oscillate. C11, C++17 and CUDA C++.
 *
 *   R(x) = 1/2 sum over j, k of w_jk f(x_j, x_k),  k: the 26 neighbours of voxel j,  w_jk = h_x / distance
 *   f = (x_j - x_k)^2 / (x_j + x_k + gamma |x_j - x_k| + epsilon)   relative difference prior (Nuyts, Beque, Dupont & Mortelmans
 *                                                                   2002)
 *   f = (x_j - x_k)^2 / (2 level)                                   quadratic penalty: the same between neighbours near `level`
 *   dR/dx_j = sum over k of w_jk prior_slope(x_j, x_k)
 *
 * epsilon > 0 keeps it differentiable where both are 0. Voxels that are exactly 0 are outside the support and do not count as
 * neighbours.
 *
 * Step. An update x - x (beta dR/dx + gradient of the data) / (c + sensitivity) with c = beta sum over k of w_jk prior_bound(x_j)
 * does not oscillate for any beta: c / x_j is at least the sum of the magnitudes of row j of the matrix of second derivatives (De
 * Pierro's separable surrogate, 1995; relative difference: if gamma is at least 1/3, or x_k is near x_j; for any gamma, two
 * neighbours that are updated together move towards each other and do not pass). beta dR/dx_j is at most c / 2, so that a step of
 * the penalty never makes a voxel negative. */
#ifndef TOMONODE_KERNELS_PRIOR_H
#define TOMONODE_KERNELS_PRIOR_H

#include <math.h>

#include "kernels/geometry.h"

#define PRIOR_NEIGHBOURS 27 /* of a voxel, with itself */

enum prior_kind {
	PRIOR_RELATIVE = 0,
	PRIOR_QUADRATIC,
};
#define PRIORS(X) X(PRIOR_RELATIVE) X(PRIOR_QUADRATIC) /* for loops over one kind each */

struct prior {
	float beta;    /* weight; the gradient is beta dR/dx */
	float gamma;   /* RELATIVE: >= 0; a larger value smooths edges less */
	float epsilon; /* RELATIVE: > 0, in the unit of x */
	enum prior_kind kind;
	float level;  /* QUADRATIC: > 0, in the unit of x */
	float across; /* factor of w between voxels of different slices (z); 1: w as above; 0: each slice by itself */
};

/* d/dx of f(x, y) */
static inline TOMONODE_HD float prior_slope(const struct prior *p, float x, float y)
{
	float d = x - y, s = x + y + p->gamma * fabsf(d) + p->epsilon;

	if (p->kind == PRIOR_QUADRATIC)
		return d / p->level;
	return d * (2 * s - d - p->gamma * fabsf(d)) / (s * s);
}

/* Twice an upper bound of x d2f/dx2: one for the diagonal of the matrix of second derivatives, one for the rest of its row. */
static inline TOMONODE_HD float prior_bound(const struct prior *p, float x)
{
	return p->kind == PRIOR_QUADRATIC ? 2 * x / p->level : 2;
}

/* Return scale * w of the neighbour at (i, j, k) voxels along x, y, z; 0 for the voxel itself. */
static inline double prior_weight(double scale, double across, const struct grid *g, int i, int j, int k)
{
	double d = sqrt(i * i * g->h[0] * g->h[0] + j * j * g->h[1] * g->h[1] + k * k * g->h[2] * g->h[2]);

	return d > 0 ? scale * g->h[0] / d * (k ? across : 1) : 0;
}

/* Compute beta w of all neighbours: ret[i + 1 + 3 (j + 1) + 9 (k + 1)]. */
static inline void prior_weights(const struct prior *p, const struct grid *g, float ret[PRIOR_NEIGHBOURS])
{
	for (int n = 0; n < PRIOR_NEIGHBOURS; n++)
		ret[n] = (float)prior_weight(p->beta, p->across, g, n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1);
}

/* Return whether all members are in their ranges. */
static inline bool prior_is_valid(const struct prior *p)
{
	return isfinite(p->beta) && p->across >= 0 && p->across <= 1 &&
	       (p->kind == PRIOR_QUADRATIC ? p->level > 0 : p->kind == PRIOR_RELATIVE && p->epsilon > 0 && p->gamma >= 0);
}

#endif
