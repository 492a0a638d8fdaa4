/* A synthetic two-dimensional view out of a stream of slices: tissue as a mammogram shows it, and small calcifications, which a
 * sum over the depth would drown.
 *
 *   image(x, y) = sum over k of h_z f_k + detail * max(0, max over k of (f_k - b_k) - floor)
 *
 * f_k: slice k, 1/mm; b_k: its mean over a square of `blur` mm about (x, y), as far as that lies in the slice. The first term is
 * the line integral of the attenuation along z, mu * mm; the second lets the finest detail of the slice where it is sharpest
 * count as if it were `detail` mm longer. Both run along z: the image has the raster of the slices, pixel on pixel. Slices come
 * in order; none is kept. One thread at a time; threaded inside, the same bits for any number of threads.
 */
#ifndef TOMONODE_RECON_SYNTHETIC_H
#define TOMONODE_RECON_SYNTHETIC_H

#include "kernels/err.h"
#include "kernels/geometry.h"

struct synthetic_conf {
	double blur;   /* mm; the nearest odd number of voxels, at most 511 */
	double detail; /* mm, >= 0 */
	double floor;  /* 1/mm, >= 0: detail below is noise */
};

/* Calcifications of some tenths of a mm reach over about 2 mm of slices (what 50 degrees resolve in depth), so 4 mm more triple
 * them; they stand out of their surroundings by far more than 0.01 / mm, the noise of a slice does not. */
#define SYNTHETIC_CONF ((struct synthetic_conf){.blur = 2, .detail = 4, .floor = 0.01})

struct synthetic;

int synthetic_open(const struct synthetic_conf *conf, const struct grid *grid, struct synthetic **ret_synthetic, struct err *err);
struct synthetic *synthetic_close(struct synthetic *s); /* takes NULL, returns NULL */

/* The next slice, n[0] * n[1] floats of host memory, 1/mm. EINVAL after the last. */
int synthetic_add(struct synthetic *s, const float *slice, struct err *err);
/* n[0] * n[1] floats, once, after the last slice (EINVAL before). */
int synthetic_image(const struct synthetic *s, float *ret_image, struct err *err);

#endif
