/* SPDX-License-Identifier: Apache-2.0 */
/* Private to recon/dbt: a projection in cells of about 1 mm, each the mean of its bins. Less noise, and what looks for edges takes
 * little time compared with reading the projection once. */
#ifndef TOMONODE_RECON_VIEW_CELLS_H
#define TOMONODE_RECON_VIEW_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/geometry.h"

#define VIEW_CELLS_NO_DATA (-1.0f) /* a cell of which less than half of the bins have a datum; means of data are not negative */

struct view_cells {
	int n_u, n_v;	       /* number of cells */
	int bins_u, bins_v;    /* bins of a cell; the last cells may have fewer */
	double size_u, size_v; /* size of a cell, mm */
};

/* Divide the bins of a scan into cells of 1 mm or slightly more (of one bin if bins are larger). */
struct view_cells view_cells_of(const struct scan *scan);

/* Compute the mean line integral of each cell, or VIEW_CELLS_NO_DATA. valid: > 0: the bin has a datum; < 0: so it has if `air`; 0: no
 * datum, as if its line integral is not finite. ret_mean: n_v * n_u of the cells. Threaded. */
void view_cells_average(const struct scan *scan, const struct view_cells *c, bool air, const float *line, const float *valid,
			float *ret_mean);

#endif
