/* Which voxels the data say anything about. */
#ifndef TOMONODE_RECON_SUPPORT_H
#define TOMONODE_RECON_SUPPORT_H

#include "kernels/err.h"
#include "kernels/geometry.h"

/* Sets voxels to 0 that no counted ray of a SCAN_DBT comes within one voxel of (in the middle plane of their slice) and that
 * still hold `start`, the value the reconstruction began with. Only voxels equal to `start` are looked at. valid: 1 or 0 per bin,
 * of the scan's view i at valid + order[i] * bins of a view. volume: host memory. */
int support_clear(const struct scan *scan, const struct grid *grid, const float *valid, const int *order, float start,
		  float *volume, struct err *err);

#endif
