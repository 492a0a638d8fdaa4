/* SPDX-License-Identifier: Apache-2.0 */
/* Compute thick slabs from a stream of slices: the mean or the maximum of the slices whose centres are in
 *
 *   [i * step, i * step + thickness) above the volume's lower face, i = 0, 1, ...
 *
 * up to the first slab that contains the uppermost slice. Slices are added in order, k = 0 first, as dbt_read_slices() returns
 * them; only unfinished slabs are in memory, never the volume. Lengths in mm. One thread at a time; threaded inside. */
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

/* A slab's slices first .. first + n - 1, and its extent: z of its lower and its upper face. */
struct slabs_range {
	int first, n;
	double z[2];
};

struct slabs;

/* Open a computation for volumes with this grid. EINVAL: thickness or step is less than the distance of slices, so that slabs
 * would be empty or equal. */
int slabs_open(enum slabs_mode mode, double thickness, double step, const struct grid *grid, struct slabs **ret_slabs,
	       struct err *err);
struct slabs *slabs_close(struct slabs *s); /* accepts NULL; returns NULL */

int slabs_count(const struct slabs *s);
struct slabs_range slabs_range(const struct slabs *s, int slab); /* 0 <= slab < slabs_count() */

/* Add the next slice, n[0] * n[1] floats of host memory, in the unit of the slices. *ret_slab: the slab that it completes (at
 * most one, in order), valid until the next call; NULL: none. EINVAL: all slices have been added. */
int slabs_add(struct slabs *s, const float *slice, const float **ret_slab, struct err *err);

#endif
