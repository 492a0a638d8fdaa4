/* SPDX-License-Identifier: Apache-2.0 */
/* The length of a ray inside a shape; private to recon/, used for the line integrals of the analytic phantoms.
 *
 * Every shape is convex: the intersection of (perhaps) a quadric |w (p - c)|^2 <= 1 and (perhaps) slabs lo <= p <= hi. A ray p(t)
 * = a + t d, 0 <= t <= 1, meets it in one interval: the intersection of the intervals of its parts.
 *
 *   quadric: with o = w (a - c), e = w d, A = e.e the ray is nearest to the centre at t* = -o.e / A, at q = o + t* e;
 *            the interval is t* -+ sqrt((1 - q.q) / A). With q in the formula the small difference o.o - 1 never appears, so
 *            that a bead of half a millimetre seen from 650 mm keeps its precision.
 *   slab:    (lo - a) / d .. (hi - a) / d, ordered.
 * Directions of exactly 0 are replaced by 1e-300: the interval is then unlimited or empty, never NaN. */
#ifndef TOMONODE_RECON_PHANTOM_BODY_H
#define TOMONODE_RECON_PHANTOM_BODY_H

#include <math.h>
#include <stdbool.h>

#include "recon/phantom/phantom.h"

/* Factor of the height's term in the quadric: the flat faces extend to sqrt(1 - 0.36) = 0.8 of the rim. */
#define BREAST_RIM 0.36
#define TINY 1e-300
#define FAR 1e100 /* mm: a slab without limit */

/* A shape in the form that chord_length() needs. */
struct body {
	double c[3], w[3]; /* quadric: centre, inverse half axes; all w 0: none */
	double lo[3], hi[3];
	double mu;
	int quadric, slab_x;
};

static inline void body_set(const struct shape *s, struct body *ret)
{
	*ret = (struct body){
		.mu = s->mu, .quadric = s->kind != SHAPE_BOX, .slab_x = s->kind == SHAPE_BOX || s->kind == SHAPE_BREAST};
	for (int i = 0; i < 3; i++) {
		bool slab = s->kind == SHAPE_BOX || (i == 2 && s->kind != SHAPE_ELLIPSOID);

		ret->c[i] = s->c[i];
		ret->w[i] = ret->quadric ? 1 / s->r[i] : 0;
		ret->lo[i] = slab ? s->c[i] - s->r[i] : -FAR;
		ret->hi[i] = slab ? s->c[i] + s->r[i] : FAR;
	}
	if (s->kind == SHAPE_CYLINDER_Z)
		ret->w[2] = 0;
	if (s->kind == SHAPE_BREAST) {
		ret->w[2] *= sqrt(BREAST_RIM);
		ret->lo[0] = 0;
	}
}

static inline double larger_of(double a, double b)
{
	return a > b ? a : b;
}

static inline double smaller_of(double a, double b)
{
	return a < b ? a : b;
}

static inline void clip_slab(double a, double d, double lo, double hi, double *t0, double *t1)
{
	double inv = 1 / (d == 0 ? TINY : d);
	double p = (lo - a) * inv, q = (hi - a) * inv;

	*t0 = larger_of(*t0, smaller_of(p, q));
	*t1 = smaller_of(*t1, larger_of(p, q));
}

/* Compute the part t0 <= t <= t1 of 0 <= t <= 1 inside the body; t1 < t0: none. Branches depend only on the body, so that a loop
 * over rays vectorises. */
static inline void body_interval(const struct body *s, const double a[3], const double d[3], double *ret_t0, double *ret_t1)
{
	double t0 = 0, t1 = 1;

	clip_slab(a[2], d[2], s->lo[2], s->hi[2], &t0, &t1);
	if (s->slab_x) {
		clip_slab(a[0], d[0], s->lo[0], s->hi[0], &t0, &t1);
		clip_slab(a[1], d[1], s->lo[1], s->hi[1], &t0, &t1);
	}
	if (s->quadric) {
		double o[3], e[3], q[3], aa = TINY, near, half;

		for (int i = 0; i < 3; i++) {
			o[i] = s->w[i] * (a[i] - s->c[i]);
			e[i] = s->w[i] * d[i];
			aa += e[i] * e[i];
		}
		near = -(o[0] * e[0] + o[1] * e[1] + o[2] * e[2]) / aa;
		for (int i = 0; i < 3; i++)
			q[i] = o[i] + near * e[i];
		half = sqrt(larger_of(0, 1 - (q[0] * q[0] + q[1] * q[1] + q[2] * q[2])) / aa);
		t0 = larger_of(t0, near - half);
		t1 = smaller_of(t1, near + half);
	}
	*ret_t0 = t0;
	*ret_t1 = t1;
}

/* Return the length of the part of 0 <= t <= 1 inside the body. */
static inline double chord_length(const struct body *s, const double a[3], const double d[3])
{
	double t0, t1;

	body_interval(s, a, d, &t0, &t1);
	return larger_of(0, t1 - t0);
}

#endif
