/* SPDX-License-Identifier: Apache-2.0 */
/* Create and check a `struct scan` (kernels/geometry.h). A scan from scan_create_* owns its views; free it with scan_free(). */
#ifndef TOMONODE_RECON_SCAN_H
#define TOMONODE_RECON_SCAN_H

#include "kernels/err.h"
#include "kernels/geometry.h"

/* A source that turns in the plane x = source_x around an axis parallel to x (docs/geometry.md). The detector stands still in the
 * plane z = 0, or turns with the source around an axis of its own, or has a projection matrix for each view. */
struct dbt_geometry {
	int n_u, n_v;	    /* bins along x (away from the chest wall) and y (along it) */
	double pitch;	    /* bin size, mm */
	double axis_height; /* rotation axis above the detector plane, mm */
	double source_axis; /* source to rotation axis, mm; SID = axis_height + source_axis at 0 degrees */
	double source_x;    /* x of the source, mm; 0: over the chest-wall edge */
	int n_views;
	const double *angle; /* degrees, n_views elements; positive: the source is at y > 0 */
	double source_y;     /* y of the rotation axis, mm; 0: over the detector's middle */
	/* The bins may be a window of the detector: x of its edge at the chest wall, y of its middle, mm. */
	double window_x, window_y;
	/* At angle a the detector is turned by detector_ratio * a around the line y = detector_axis_y, z = detector_axis_height,
	 * which is parallel to x. A positive turn tilts its normal toward +y. 0: it stands still. */
	double detector_ratio, detector_axis_y, detector_axis_height;
	/* A matrix for each view, or NULL; it replaces everything above except n_u, n_v, pitch, n_views and angle, which then
	 * only orders the views: see scan_view_from_matrix(). */
	const double (*matrix)[12];
	double level_bins; /* with matrices: see scan_view_from_matrix(); 0: SCAN_LEVEL_BINS */
};

/* Create a DBT scan with the views in the given order. EINVAL: NaN, fewer than 2 views, equal angles (closer than 0.01 degree),
 * a source that is not above the whole detector, or a matrix that scan_view_from_matrix() refuses. */
int scan_create_dbt(const struct dbt_geometry *g, struct scan **ret_scan, struct err *err);

/* Convert between the angle by which a source has turned about its axis and the angle at which the line from the point below the
 * axis on the detector to the source is seen, degrees. |axis_height| < source_axis. */
double scan_angle_turned(double seen, double axis_height, double source_axis);
double scan_angle_seen(double turned, double axis_height, double source_axis);

/* Compute source and pose of a detector of n_u x n_v bins from a projection matrix P, 3 x 4, row-major: (u, v, 1) w = P (x, y, z,
 * 1), with whole u and v at the centres of bins and x, y, z in the axes of the scan, mm. `pitch`: distance of bins, which
 * determines how far the detector is from the source. The columns u must run along +x and the rows v along +y. If the columns
 * are parallel to x, except for errors of at most `level_bins` at any bin, then the pose is made exactly so
 * (scan_view_is_level()). EINVAL: the matrix is not finite or singular, its bins are not square with the size `pitch` (within 2
 * %), or they run the wrong way. */
int scan_view_from_matrix(const double matrix[12], int n_u, int n_v, double pitch, double level_bins, struct scan_view *ret_view,
			  struct err *err);
#define SCAN_LEVEL_BINS 0.1

/* Where the detector of a scan is among the bins that a system's own projection matrices count. */
struct scan_matrix_bins {
	double edge_u;	 /* number of bins from their first one to the chest-wall edge; their u runs toward the chest wall */
	double middle_v; /* number of bins from their first one to y = 0 */
	int v_sign;	 /* 1: their v runs along +y; -1: along -y */
	/* Window of the scan's bins: how many bins its chest-wall edge is from that of the detector, along x, and its middle from
	 * y = 0, along y. */
	double window_u, window_v;
};
/* Convert a system's own projection matrix to the bins and the axes of the scan, for scan_view_from_matrix(). Its lengths are mm;
 * its z runs from the detector toward the source, its x and y are arbitrary, and may be left-handed with z. `rest` is the matrix
 * in the same axes at the angle 0: it defines the axes of the scan, with the detector in the plane z = 0. EINVAL: `rest` is not
 * finite or singular, or its bins are not square. */
int scan_matrix_convert(const double rest[12], const double matrix[12], const struct scan_matrix_bins *bins, int n_v,
			double pitch, double ret_matrix[12], struct err *err);

/* Return whether the lines of bins along u are parallel to x, and those along v perpendicular to it: true for a detector that
 * stands still or turns around an axis parallel to x. */
bool scan_view_is_level(const struct scan_view *view);

/* Return the largest z of the detector in a view of SCAN_DBT, mm. */
double scan_detector_top(const struct scan *scan, const struct scan_view *view);

/* Create a scan with the same rays, but with `bin` x `bin` bins merged (remaining rows and columns are dropped) and the views in
 * `order` (n_views indices into scan->views; NULL: unchanged). */
int scan_create_binned(const struct scan *scan, int bin, const int *order, struct scan **ret_scan, struct err *err);

/* Compute the cosine and the sine of an angle in degrees; they are exact at multiples of 90 degrees. */
void scan_turn(double degrees, double ret_turn[2]);

/* Create a scan of SCAN_DBT with room for n_views views, which the caller writes; `like` has the other members. NULL: no memory.
 */
struct scan *scan_new_views(const struct scan *like, int n_views, struct scan_view **ret_views, struct err *err);

/* Create a scan of parallel rays with room for n_views views, n_u planes and n_v radii, which the caller writes; `like` has the
 * other members. NULL: no memory. */
struct scan *scan_new_parallel(const struct scan *like, struct scan_view **ret_views, struct scan_plane **ret_planes,
			       double **ret_radius);

struct scan *scan_free(struct scan *scan); /* accepts NULL; returns NULL */

#endif
