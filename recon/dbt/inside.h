/* SPDX-License-Identifier: Apache-2.0 */
/* Find the inside of the breast in a slice that was reconstructed with a mask (recon/dbt/breast_mask.h): its voxels of air are 0. */
#ifndef TOMONODE_RECON_INSIDE_H
#define TOMONODE_RECON_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

/* Add every stride-th voxel of a slice (n[0] * n[1] floats) that is more than `depth` mm inside to a histogram of stored values
 * round((value - offset) / step), limited to 0..65535, and to *counted. Outside are squares of about 1 mm of which more than half
 * is exactly 0, so that single zeros inside do not count; without any, all voxels are inside. Threaded in part. EINVAL, ENOMEM. */
int inside_tally(const struct grid *grid, const float *slice, double offset, double step, double depth, size_t stride,
		 uint64_t bins[65536], size_t *counted, struct err *err);

#endif
