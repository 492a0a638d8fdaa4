/* SPDX-License-Identifier: Apache-2.0 */
/* Analytic phantoms: sums of ellipsoids, boxes and elliptic cylinders, with their exact line integrals.
 *
 * Lengths in mm, attenuation in 1/mm, axes of kernels/geometry.h. Shapes add: a lesion in tissue has the difference as its value.
 * The line integrals are closed formulas (quadratic and slab intersections) and share no code with the projectors under test. */
#ifndef TOMONODE_RECON_PHANTOM_H
#define TOMONODE_RECON_PHANTOM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

enum shape_kind {
	SHAPE_ELLIPSOID = 1,
	SHAPE_BOX,
	SHAPE_CYLINDER_Z, /* elliptic cylinder along z: half axes r[0], r[1], half height r[2] */
	SHAPE_BREAST,	  /* (x/r0)^2 + (y/r1)^2 + 0.36 (z/r2)^2 <= 1 around c, |z| <= r[2], x >= 0: flat faces, rounded rim */
};

enum shape_role {
	ROLE_BODY = 1, /* bulk tissue */
	ROLE_BEAD,     /* small, high contrast; tests search for its position in the image */
	ROLE_LESION,   /* larger, low contrast */
	ROLE_METAL,    /* a clip: in no list of what is measured */
};

struct shape {
	enum shape_kind kind;
	enum shape_role role;
	double c[3]; /* centre */
	double r[3]; /* half axes */
	double mu;   /* attenuation added inside, 1/mm */
};

struct phantom {
	char name[32];
	size_t n;
	struct shape *shapes;
};

enum phantom_kind {
	PHANTOM_SLAB = 1,
	PHANTOM_BEADS,
	PHANTOM_ELLIPSOIDS,
	PHANTOM_CALIBRATION, /* beads of 1 mm in two layers, 5 mm above the bottom and below the top of a plate */
	PHANTOM_AIR,	     /* no shapes: an exposure without object, for flat fields */
};

/* Create a phantom of `thickness` mm, from z = support upwards, that fits a detector of size[0] x size[1] mm. The same seed gives
 * the same phantom. It is not symmetric in x or y, so that tests detect a mirrored image. */
int phantom_create(enum phantom_kind kind, const double size[2], double support, double thickness, unsigned seed,
		   struct phantom **ret_phantom, struct err *err);
struct phantom *phantom_free(struct phantom *p);

/* Enlarge beads smaller than `radius` mm to that radius, with the same line integral through the middle: for detectors with a
 * coarse pitch, where rays would miss a small bead. */
void phantom_grow_beads(struct phantom *p, double radius);

double phantom_value(const struct phantom *p, const double at[3]); /* mu at a point, 1/mm */

/* Compute the line integrals of all bins of one view: ret_line[n_v * n_u], threaded. Each shape is evaluated only for the bins
 * onto which it projects. */
int phantom_project(const struct phantom *p, const struct scan *scan, int view, float *ret_line, struct err *err);

/* Compute counts: i0 * exp(-line) with Poisson noise (exact, recon/phantom/poisson.h), limited to max_value (1..65535). Only the
 * seed and the bin index determine the noise, not the number of threads. noise = 0: the expected counts, rounded. EINVAL: i0 <=
 * 0, or a line is NaN. */
int phantom_counts(const float *line, size_t n, double i0, uint64_t seed, int noise, int max_value, uint16_t *ret_counts,
		   struct err *err);

#endif
