/* Thick slabs out of a stream of slices: the mean or the maximum of the slices whose centres lie in
 *
 *   [i * step, i * step + thickness) above the volume's lower face, i = 0, 1, ...
 *
 * up to the first slab that holds the uppermost slice. Slices come in order, k = 0 first, as dbt_read_slices() gives them; only
 * the slabs that are begun are held, never the volume. Lengths in mm. One thread at a time; threaded inside.
 */
#ifndef TOMONODE_RECON_SLABS_H
#define TOMONODE_RECON_SLABS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

enum slabs_mode {
	SLABS_MEAN = 1,
	SLABS_MAXIMUM,
};

/* A slab's slices first .. first + n - 1, and from where to where these reach: z of the lower and of the upper face. */
struct slabs_range {
	int first, n;
	double z[2];
};

struct slabs;

/* EINVAL where thickness or step are less than the slices' distance: slabs would be empty or repeat themselves. */
int slabs_open(enum slabs_mode mode, double thickness, double step, const struct grid *grid, struct slabs **ret_slabs,
	       struct err *err);
struct slabs *slabs_close(struct slabs *s); /* takes NULL, returns NULL */

int slabs_count(const struct slabs *s);
struct slabs_range slabs_range(const struct slabs *s, int slab); /* 0 <= slab < slabs_count() */

/* The next slice, n[0] * n[1] floats of host memory, in the unit of the slices. *ret_slab: the slab that it completes, if any (at
 * most one, in order), to be used before the next call; else NULL. EINVAL after the last slice. */
int slabs_add(struct slabs *s, const float *slice, const float **ret_slab, struct err *err);

#endif
