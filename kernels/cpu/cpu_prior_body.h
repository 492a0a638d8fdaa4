/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a penalty (kernels/prior.h) over a piece of a line of voxels. A template without an include guard, included once
 * per instruction set by a file that defines PRIOR(name) for the names of the functions and PRIOR_TARGET for their attribute;
 * undefines both. Each voxel adds its neighbours in the order of `piece`. */

PRIOR_TARGET static inline __attribute__((always_inline)) void PRIOR(sums_of)(enum prior_kind kind, const struct prior *prior,
									      const struct piece *piece, bool ratio, int n,
									      float *restrict num, float *restrict den)
{
	struct prior p = *prior;
	const float *restrict x = piece->x;
	float slope[PIECE] = {0}, weight[PIECE] = {0};

	p.kind = kind;
	for (int m = 0; m < piece->n_neighbours; m++) {
		const struct neighbour *at = &piece->neighbour[m];
		const float *restrict other = x + at->step;

		for (int i = at->first; i < at->end; i++) {
			float s = prior_slope(&p, x[i], other[i]);
			bool counts = (x[i] != 0) & (other[i] != 0);

			slope[i] += counts ? at->weight * s : 0;
			weight[i] += counts ? at->weight : 0;
		}
	}
	for (int i = 0; i < n; i++) {
		float c = den ? weight[i] * prior_bound(&p, x[i]) : 0;

		num[i] = num[i] + (ratio ? c : 0) - slope[i];
		if (den)
			den[i] += c;
	}
}

PRIOR_TARGET static void PRIOR(sums)(const struct prior *prior, const struct piece *piece, bool ratio, int n, float *num,
				     float *den)
{
#define X(kind_of)                                                                                                               \
	if (prior->kind == (kind_of))                                                                                            \
		PRIOR(sums_of)(kind_of, prior, piece, ratio, n, num, den);
	PRIORS(X)
#undef X
}

#undef PRIOR
#undef PRIOR_TARGET
