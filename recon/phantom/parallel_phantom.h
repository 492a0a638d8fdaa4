/* SPDX-License-Identifier: Apache-2.0 */
/* Analytic phantoms for 2-D parallel beams: sums of ellipses and convex polygons, with their exact line integrals.
 *
 * Lengths in mm, attenuation in 1/mm, axes of recon/parallel/parallel.h: x to the right, y down. Every phantom fits into a square
 * of a given side around (0, 0). Line integrals are closed formulas and share no code with the projectors under test.
 *
 * - circle, square, triangle: uniform, PARALLEL_WATER.
 * - shepp-logan: the ellipses of Shepp & Logan 1974 with the contrasts of Toft 1996 ("modified", easy to see); 1 is
 *   PARALLEL_WATER.
 * - head: the same ellipses with the values of 1974, which are also those of Kak & Slaney 1988, table 3.1: skull 2, brain 1.02,
 *   lesions of 1 and 2 %; 1 is PARALLEL_WATER, so they are 1000, 20, and 10 to 20 HU above the brain. */
#ifndef TOMONODE_RECON_PARALLEL_PHANTOM_H
#define TOMONODE_RECON_PARALLEL_PHANTOM_H

#include <stdint.h>

#include "recon/parallel/parallel.h"

#define PARALLEL_WATER 0.02 /* 1/mm, at about 65 keV */
#define PARALLEL_CORNERS_MAX 8

enum parallel_phantom_kind {
	PARALLEL_PHANTOM_CIRCLE = 1,
	PARALLEL_PHANTOM_SQUARE,
	PARALLEL_PHANTOM_TRIANGLE,
	PARALLEL_PHANTOM_SHEPP_LOGAN,
	PARALLEL_PHANTOM_HEAD,
};

/* n_corners = 0: an ellipse with half axes r, turned by `turn` degrees from x towards y. Else a convex polygon with its corners
 * in the direction from x towards y. */
struct parallel_shape {
	double c[2], r[2], turn;
	int n_corners;
	double corner[PARALLEL_CORNERS_MAX][2];
	double mu; /* attenuation added inside, 1/mm */
};

struct parallel_phantom {
	size_t n;
	struct parallel_shape *shapes;
};

int parallel_phantom_create(enum parallel_phantom_kind kind, double side, struct parallel_phantom **ret_phantom, struct err *err);
struct parallel_phantom *parallel_phantom_free(struct parallel_phantom *p); /* accepts NULL; returns NULL */
extern const char *const parallel_phantom_names[];			    /* [kind - 1]; NULL ends the list */
const char *parallel_phantom_name(enum parallel_phantom_kind kind);	    /* NULL: no such phantom */

double parallel_phantom_value(const struct parallel_phantom *p, double x, double y);
/* Return the line integral along the line x turn[0] + y turn[1] = s; turn: cosine and sine of its angle. Along a straight edge of
 * a polygon it is the mean of the values on both sides. */
double parallel_phantom_line(const struct parallel_phantom *p, const double turn[2], double s);

/* Compute all bins of a scan: ret_lines[slice][angle][radial], threaded. Slice k is the phantom scaled by 1 - taper k / n_slices
 * (0 <= taper < 1), so that no two slices are equal; taper = 0: all are equal. */
int parallel_phantom_project(const struct parallel_phantom *p, const struct parallel_scan *s, double taper, float *ret_lines,
			     struct err *err);
/* Compute the true image on a plan's grid, x fastest, then y, then slice: the value of a pixel is the mean over samples x samples
 * points in it (1 <= samples <= 64). */
int parallel_phantom_draw(const struct parallel_phantom *p, const struct grid *grid, double taper, int samples, float *ret_volume,
			  struct err *err);

/* Add noise in place, threaded: replace each line integral by the one measured with i0 photons per bin, -ln(max(N, 1/2) / i0)
 * with N ~ Poisson(i0 exp(-line)), which depends only on seed and first + index. EINVAL: NaN. */
int parallel_phantom_noise(float *lines, size_t n, size_t first, double i0, uint64_t seed, struct err *err);

#endif
