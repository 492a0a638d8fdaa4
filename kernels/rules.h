/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules: the formulas of a sub-iteration for its bins and its voxels. C11, C++17 and CUDA C++; one body per formula.
 *
 *   p = A x;   (q, d) = rule_bin(y, p, l);   (num, den) = (A'q, A'd);   x = rule_voxel(x, num, den)
 *
 * A: lengths in mm of the rays of one subset in the voxels, x: attenuation in 1/mm, y and p: line integrals, l = A 1 over the
 * support: the length of each ray in the volume, mm (only for rules where rule_needs_length() is true).
 *
 * - A bin that is not used (mask not above 0) has q = d = 0.
 * - A voxel that is exactly 0 is outside the support and stays 0; a voxel inside never becomes 0. */
#ifndef TOMONODE_KERNELS_RULES_H
#define TOMONODE_KERNELS_RULES_H

#include <math.h>
#include <stdbool.h>

#include "kernels/geometry.h"

enum rule_kind {
	RULE_EM = 1,  /* x A'(y / A x) / A'1: Shepp & Vardi 1982, Hudson & Larkin 1994; applied to line integrals, as in the seed
			 thesis */
	RULE_EM_ROWS, /* RULE_EM with every row of A divided by its sum: the matrix of the seed thesis, for comparison only */
	RULE_TRANSMISSION, /* x + x r, r = A'(e^-p - e^-y) / A'(p e^-p): one Newton step of the convex algorithm, Lange & Fessler
			      1995; OSC if applied per subset. The unattenuated intensity is the same for all bins of a subset and
			      cancels. A step down is x / (1 - r), equal to first order: where x is far too large, as the start
			      image is at the skin, Newton's step would become negative and the next views would compensate with a
			      bright rim */
	RULE_SART,	   /* x + step A'((y - p) / l) / A'1: Andersen & Kak 1984; one projection per subset is ART by views */
	RULE_EM_RELAXED,   /* x + step x (num - den) / den, the EM update in additive form: with the gradient of a penalty
			      subtracted from num it is BSREM, De Pierro & Yamagishi 2001, Ahn & Fessler 2003 */
	RULE_BACKPROJECT,  /* A'(y / l) / A'1, independent of x: shift and add, and the last step of filtered backprojection */
};
/* X(rule, a rule with the same formula for bins, one with the same formula for voxels), for loops over one rule each. */
#define RULES(X)                                                                                                                 \
	X(RULE_EM, RULE_EM, RULE_EM)                                                                                             \
	X(RULE_EM_ROWS, RULE_EM_ROWS, RULE_EM)                                                                                   \
	X(RULE_TRANSMISSION, RULE_TRANSMISSION, RULE_TRANSMISSION)                                                               \
	X(RULE_SART, RULE_SART, RULE_SART)                                                                                       \
	X(RULE_EM_RELAXED, RULE_EM, RULE_EM_RELAXED)                                                                             \
	X(RULE_BACKPROJECT, RULE_BACKPROJECT, RULE_BACKPROJECT)

struct rule {
	enum rule_kind kind;
	float bin_floor;   /* smallest divisor p (EM) and smallest divisor l, mm; the quotient with a smaller one is 0; > 0 */
	float voxel_floor; /* smallest divisor den; a voxel with a smaller one is not changed; > 0 */
	float step;	   /* SART, EM_RELAXED: relaxation, 0 < step < 2 */
	bool negative;	   /* allow negative voxels; false: the smallest value of a voxel is RULE_TINY */
	bool weighted;	   /* a mask between 0 and 1 is the weight of its bin, rule_weigh(); false: it counts as 1 */
};

struct rule_pair {
	float q, d;
};

/* Return a / b. On the GPU: within 2 ulp, without the slow path for extreme operands. */
static inline TOMONODE_HD float rule_divide(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fdividef(a, b);
#else
	return a / b;
#endif
}

/* Return whether it is one of RULES. */
static inline bool rule_is_known(enum rule_kind kind)
{
#define X(rule, bins, voxels) || kind == (rule)
	return false RULES(X);
#undef X
}

static inline TOMONODE_HD bool rule_has_step(enum rule_kind kind)
{
	return kind == RULE_SART || kind == RULE_EM_RELAXED;
}

/* Smallest value of a voxel in the support, 1/mm; far below the attenuation of air. With `negative`, it only replaces 0. */
#define RULE_TINY 1e-9f

static inline TOMONODE_HD bool rule_needs_length(enum rule_kind kind)
{
	return kind == RULE_EM_ROWS || kind == RULE_SART || kind == RULE_BACKPROJECT;
}

/* Return whether the rule uses p = A x. */
static inline TOMONODE_HD bool rule_needs_line(enum rule_kind kind)
{
	return kind != RULE_BACKPROJECT;
}

static inline TOMONODE_HD struct rule_pair rule_bin(const struct rule *r, float y, float p, float l)
{
	struct rule_pair pair = {0, 0};

	switch (r->kind) {
	case RULE_EM:
	case RULE_EM_RELAXED:
		pair.q = p > r->bin_floor ? rule_divide(y, p) : 0;
		pair.d = 1;
		break;
	case RULE_EM_ROWS: /* p / l is the row's sum; numerator and denominator have one more factor 1 / l */
		if (l > r->bin_floor) {
			pair.q = p > r->bin_floor ? rule_divide(y, p) : 0;
			pair.d = rule_divide(1, l);
		}
		break;
	case RULE_TRANSMISSION:
		pair.q = expf(-p) - expf(-y);
		pair.d = p * expf(-p);
		break;
	case RULE_SART:
		if (l > r->bin_floor) {
			pair.q = rule_divide(y - p, l);
			pair.d = 1;
		}
		break;
	case RULE_BACKPROJECT:
		if (l > r->bin_floor) {
			pair.q = rule_divide(y, l);
			pair.d = 1;
		}
		break;
	}
	return pair;
}

/* Return whether num equals den at a solution, as in a ratio of data and model; false: num is then 0. */
static inline TOMONODE_HD bool rule_is_ratio(enum rule_kind kind)
{
	return kind == RULE_EM || kind == RULE_EM_RELAXED || kind == RULE_EM_ROWS;
}

/* Return the pair of a bin with weight w, 0 < w < 1: d w, and w^2 times the bin's correction (q - d with EM, else q). So the
 * correction of a voxel changes continuously where a bin begins with w = 0, whether other bins of the subset reach the voxel or
 * none does; and a solution of A x = y stays one. RULE_BACKPROJECT computes the mean weighted with w. */
static inline TOMONODE_HD struct rule_pair rule_weigh(enum rule_kind kind, struct rule_pair pair, float w)
{
	if (rule_is_ratio(kind))
		pair.q = pair.d + w * (pair.q - pair.d);
	else if (kind != RULE_BACKPROJECT)
		pair.q *= w;
	pair.q *= w;
	pair.d *= w;
	return pair;
}

/* Return whether d is independent of x, so that A'd of a subset needs to be computed only once. */
static inline TOMONODE_HD bool rule_keeps_den(enum rule_kind kind)
{
	return kind != RULE_TRANSMISSION;
}

/* Return q of a bin of the model y ~ Poisson(m (A x) + b). EM: m y / (m p + b). m: detected fraction of the activity
 * (attenuation, normalisation); b: additional counts (randoms, scatter). Other rules: use m = 1 and b = 0. d of such a bin is m.
 * Politte & Snyder 1991. */
static inline TOMONODE_HD float rule_data_bin(const struct rule *r, float y, float p, float l, float m, float b)
{
	return m > 0 ? m * rule_bin(r, y, m * p + b, l).q : 0;
}

/* Return the logarithm of the Poisson likelihood of y counts where p > 0 are expected, without the term of y alone: y ln p - p;
 * in double. A bin without counts, or with fewer after a subtraction, contributes -p. */
static inline TOMONODE_HD double rule_log_likelihood(float y, float p)
{
	return (y > 0 ? (double)y * log((double)p) : 0) - p;
}

/* Compute the new value of a voxel. To avoid branches, values that may not be needed are computed and then discarded. */
static inline TOMONODE_HD float rule_voxel(const struct rule *r, float x, float num, float den)
{
	bool live = (x != 0) & (den > r->voxel_floor);
	float change = rule_divide(num, den), next;

	switch (r->kind) {
	case RULE_TRANSMISSION:
		next = x * (change < 0 ? rule_divide(1, 1 - change) : 1 + change);
		break;
	case RULE_EM_RELAXED:
		next = x + r->step * x * (change - 1);
		break;
	case RULE_SART:
		next = x + r->step * change;
		break;
	case RULE_BACKPROJECT: /* negative values are correct after a filter */
		next = change == 0 ? RULE_TINY : change;
		return live ? next : x;
	default:
		next = x * change;
		break;
	}
	next = (next > RULE_TINY) | (r->negative & (next < 0)) ? next : RULE_TINY;
	return live ? next : x;
}

#endif
