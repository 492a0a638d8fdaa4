/* Making and checking a `struct scan` (kernels/geometry.h). A scan from scan_create_* owns its views;
 * free it with scan_free(). */
#ifndef TOMONODE_RECON_SCAN_H
#define TOMONODE_RECON_SCAN_H

#include "kernels/err.h"
#include "kernels/geometry.h"

/* A stationary detector and a source that turns in the plane x = source_x about an axis parallel to x (docs/geometry.md). */
struct dbt_geometry {
	int n_u, n_v;	    /* bins along x (away from the chest wall) and y (along it) */
	double pitch;	    /* bin size, mm */
	double axis_height; /* rotation axis above the detector plane, mm */
	double source_axis; /* source to rotation axis, mm; SID = axis_height + source_axis at 0 degrees */
	double source_x;    /* x of the source, mm; 0: over the chest-wall edge */
	int n_views;
	const double *angle; /* degrees, n_views of them; positive: the source stands at y > 0 */
};

/* Views are kept in the order given. Refuses NaN, fewer than 2 views, equal angles (closer than 0.01 degree), sources at or below
 * 0. */
int scan_create_dbt(const struct dbt_geometry *g, struct scan **ret_scan, struct err *err);

/* The same rays with `bin` x `bin` bins merged (remaining rows and columns are dropped) and the views in `order`
 * (n_views indices into scan->views; NULL: as they are). */
int scan_create_binned(const struct scan *scan, int bin, const int *order, struct scan **ret_scan, struct err *err);

/* cos and sin of an angle in degrees; exact at multiples of 90. */
void scan_turn(double degrees, double ret_turn[2]);

struct scan *scan_free(struct scan *scan); /* takes NULL, returns NULL */

#endif
