/* SPDX-License-Identifier: Apache-2.0 */
/* Create and check a `struct scan` (kernels/geometry.h). A scan from scan_create_* owns its views; free it with scan_free(). */
#ifndef TOMONODE_RECON_SCAN_H
#define TOMONODE_RECON_SCAN_H

#include "kernels/err.h"
#include "kernels/geometry.h"

/* A stationary detector and a source that turns in the plane x = source_x around an axis parallel to x (docs/geometry.md). */
struct dbt_geometry {
	int n_u, n_v;	    /* bins along x (away from the chest wall) and y (along it) */
	double pitch;	    /* bin size, mm */
	double axis_height; /* rotation axis above the detector plane, mm */
	double source_axis; /* source to rotation axis, mm; SID = axis_height + source_axis at 0 degrees */
	double source_x;    /* x of the source, mm; 0: over the chest-wall edge */
	int n_views;
	const double *angle; /* degrees, n_views elements; positive: the source is at y > 0 */
};

/* Create a DBT scan with the views in the given order. EINVAL: NaN, fewer than 2 views, equal angles (closer than 0.01 degree),
 * or a source at z <= 0. */
int scan_create_dbt(const struct dbt_geometry *g, struct scan **ret_scan, struct err *err);

/* Create a scan with the same rays, but with `bin` x `bin` bins merged (remaining rows and columns are dropped) and the views in
 * `order` (n_views indices into scan->views; NULL: unchanged). */
int scan_create_binned(const struct scan *scan, int bin, const int *order, struct scan **ret_scan, struct err *err);

/* Compute the cosine and the sine of an angle in degrees; they are exact at multiples of 90 degrees. */
void scan_turn(double degrees, double ret_turn[2]);

/* Create a scan of parallel rays with room for n_views views, n_u planes and n_v radii, which the caller writes; `like` has the
 * other members. NULL: no memory. */
struct scan *scan_new_parallel(const struct scan *like, struct scan_view **ret_views, struct scan_plane **ret_planes,
			       double **ret_radius);

struct scan *scan_free(struct scan *scan); /* accepts NULL; returns NULL */

#endif
