/* SPDX-License-Identifier: Apache-2.0 */
/* Compute a synthetic two-dimensional view from a stream of slices: tissue as in a mammogram, with small calcifications that a
 * sum over the depth would hide.
 *
 *   image(x, y) = sum over k of h_z f_k + detail * max(0, max over k of (f_k - b_k) - floor)
 *
 * f_k: slice k, 1/mm; b_k: its mean over a square of `blur` mm around (x, y), as far as that is inside the slice. The first term
 * is the line integral of the attenuation along z, mu * mm; the second adds fine detail from the slice where it is
 * strongest, as if that detail were `detail` mm longer along z. Both are computed along z, so the image has the pixel grid of the
 * slices. Slices are added in order; none is stored. One thread at a time; threaded inside, with bitwise the same result for any
 * number of threads. */
#ifndef TOMONODE_RECON_SYNTHETIC_H
#define TOMONODE_RECON_SYNTHETIC_H

#include "kernels/err.h"
#include "kernels/geometry.h"

struct synthetic_conf {
	double blur;   /* mm; rounded to the nearest odd number of voxels, at most 511 */
	double detail; /* mm, >= 0 */
	double floor;  /* 1/mm, >= 0: smaller detail counts as noise */
};

/* Calcifications of some tenths of a mm extend over about 2 mm of slices (the depth resolution of 50 degrees), so 4 mm more
 * triple them. They exceed their surroundings by far more than 0.01 / mm; the noise of a slice does not. */
#define SYNTHETIC_CONF ((struct synthetic_conf){.blur = 2, .detail = 4, .floor = 0.01})

struct synthetic;

int synthetic_open(const struct synthetic_conf *conf, const struct grid *grid, struct synthetic **ret_synthetic, struct err *err);
struct synthetic *synthetic_close(struct synthetic *s); /* accepts NULL; returns NULL */

/* Add the next slice, n[0] * n[1] floats of host memory, 1/mm. EINVAL: all slices have been added. */
int synthetic_add(struct synthetic *s, const float *slice, struct err *err);
/* Compute the image, n[0] * n[1] floats; call it once. EINVAL: slices are missing. */
int synthetic_image(const struct synthetic *s, float *ret_image, struct err *err);

#endif
