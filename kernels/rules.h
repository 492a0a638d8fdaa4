/* The update rules: what a sub-iteration makes of its bins and of its voxels. C11, C++17 and CUDA C++: one body for each formula.
 *
 *   p = A x;   (q, d) = rule_bin(y, p, l);   (num, den) = (A'q, A'd);   x = rule_voxel(x, num, den)
 *
 * A: lengths in mm of the rays of one subset in the voxels, x: attenuation in 1/mm, y and p: line integrals, l = A 1 over the
 * support: the length of each ray in the volume, mm (rules for which rule_needs_length() is true).
 *
 * - A bin that does not count has q = d = 0.
 * - A voxel that is exactly 0 lies outside the support and stays 0; one inside never becomes 0.
 */
#ifndef TOMONODE_KERNELS_RULES_H
#define TOMONODE_KERNELS_RULES_H

#include <math.h>
#include <stdbool.h>

#include "kernels/geometry.h"

enum rule_kind {
	RULE_EM =
		1, /* x A'(y / A x) / A'1: Shepp & Vardi 1982, Hudson & Larkin 1994; on line integrals as the seed thesis does */
	RULE_EM_ROWS,	   /* the same with every row of A divided by its sum: the seed's own matrix, for comparison only */
	RULE_TRANSMISSION, /* x + x r, r = A'(e^-p - e^-y) / A'(p e^-p): one Newton step of the convex algorithm, Lange & Fessler
			      1995; per subset OSC. The unattenuated intensity is the same for all bins of a subset and
			      cancels. A step down is x / (1 - r): the same to first order, but where x is far too large, as the
			      start is at the skin, Newton's step goes below 0 and the next views would answer with a bright rim
			    */
	RULE_SART,	   /* x + step A'((y - p) / l) / A'1: Andersen & Kak 1984; one projection per subset is ART by views */
	RULE_EM_RELAXED, /* x + step x (num - den) / den, the EM update in parts: with the gradient of a penalty taken from num it
			    is BSREM, De Pierro & Yamagishi 2001, Ahn & Fessler 2003 */
	RULE_BACKPROJECT, /* A'(y / l) / A'1, whatever x holds: shift and add, and the last step of filtered backprojection */
};

struct rule {
	enum rule_kind kind;
	float bin_floor;   /* least p (EM) and least l, mm, that is divided by; > 0 */
	float voxel_floor; /* least den that is divided by; > 0 */
	float step;	   /* SART, EM_RELAXED: relaxation, 0 < step < 2 */
	bool negative;	   /* voxels may become negative; else the least is RULE_TINY */
};

struct rule_pair {
	float q, d;
};

/* On the GPU without the slow path for extreme operands: 2 ulp. */
static inline TOMONODE_HD float rule_divide(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fdividef(a, b);
#else
	return a / b;
#endif
}

#define RULE_TINY 1e-9f /* 1/mm: instead of 0 in a voxel of the support; a thousandth of air */

static inline TOMONODE_HD bool rule_needs_length(enum rule_kind kind)
{
	return kind == RULE_EM_ROWS || kind == RULE_SART || kind == RULE_BACKPROJECT;
}

/* Does the rule look at p = A x at all? */
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
	case RULE_EM_ROWS: /* p / l is the row's sum; both sides of the update carry 1 / l once more */
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

/* Does its d depend on x? If not, A'd of a subset can be kept. */
static inline TOMONODE_HD bool rule_keeps_den(enum rule_kind kind)
{
	return kind != RULE_TRANSMISSION;
}

/* The q of a bin of the model y ~ Poisson(m (A x) + b), EM: m y / (m p + b); m: what is detected of the activity (attenuation,
 * normalisation), b: what is detected beside it (randoms, scatter), in counts. Other rules take m = 1 and b = 0. The d of such a
 * bin is m. Politte & Snyder 1991. */
static inline TOMONODE_HD float rule_data_bin(const struct rule *r, float y, float p, float l, float m, float b)
{
	return m > 0 ? m * rule_bin(r, y, m * p + b, l).q : 0;
}

/* Without a branch: what is not wanted is computed and thrown away. */
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
	case RULE_BACKPROJECT: /* negative after a filter, and rightly so */
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
