/* SPDX-License-Identifier: Apache-2.0 */
/* Fit the geometry of a tomosynthesis system to the positions of beads in its views, by least squares.
 *
 * The model is that of docs/geometry.md. The source of a view is at (source_x, source_y + source_axis sin b, axis_height +
 * source_axis cos b); b is the angle about the rotation axis, b = sign * angle + angle_offset. If the system states the angle as
 * seen from the detector's middle instead, that sum is the angle c of the line from (source_x, source_y, 0) to the source, and b
 * = c + asin(axis_height / source_axis sin c). The detector turns by detector_ratio * b about the line y = detector_axis_y, z =
 * detector_axis_height, parallel to x, and is the plane z = 0 at b = 0; detector_ratio = 0: it does not move.
 *
 * The phantom lies on the breast support: a bead at the height p_z above the phantom's bottom is at z = support + p_z. What is
 * known of the beads decides which further parameters are fitted:
 * - BEADS_KNOWN: all coordinates in the phantom. Fitted: where the phantom lies (x, y) and how it is turned about z.
 * - BEADS_IN_LAYERS: the heights. Fitted: x and y of each bead.
 * - BEADS_UNKNOWN: nothing. Fitted: x, y, z of each bead. The scale along z is then nearly free, and `support` is not in the
 * model at all; this mode exists to compute how uncertain the result would be.
 *
 * Levenberg-Marquardt (Levenberg 1944, Marquardt 1963) on residuals in bins, with parameters limited to [lo, hi]. Lengths in mm,
 * angles in degrees, positions in views in bins, 0 at the centre of the first bin.
 *
 * Standard deviations, BEADS_KNOWN: the jackknife (Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, ch. 3)
 * over groups; a group is the positions of one bead along one axis. Without group g of n, the parameters change by
 * d_g = -(J'J - J_g'J_g)^-1 J_g' r_g (linearised); a variance is (n - 1) / n times the sum of d_g^2. The errors of one bead are
 * alike in its views: its place in the phantom is wrong, or a bead that stays at nearly the same u is sampled alike by the bins.
 * Otherwise each bead has its own parameters, which absorb most of that and cannot be left out: roots of the diagonal of
 * s^2 (J'J)^-1, with s^2 the sum of squares over (residuals - parameters), which holds for independent errors. */
#ifndef TOMONODE_RECON_BEAD_FIT_H
#define TOMONODE_RECON_BEAD_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

enum system_parameter {
	SYSTEM_AXIS_HEIGHT,
	SYSTEM_SOURCE_AXIS,
	SYSTEM_SOURCE_X,
	SYSTEM_SOURCE_Y,
	SYSTEM_ANGLE_OFFSET,
	SYSTEM_SUPPORT,
	SYSTEM_RATIO,
	SYSTEM_DETECTOR_AXIS_Y,
	SYSTEM_DETECTOR_AXIS_HEIGHT,
	SYSTEM_PARAMETERS
};

extern const char *const system_parameter_names[SYSTEM_PARAMETERS];
extern const char *const system_parameter_units[SYSTEM_PARAMETERS]; /* "mm", "degrees", "" */

enum angle_definition {
	ANGLE_ABOUT_AXIS = 1, /* the angle by which the source has turned about its axis */
	ANGLE_AT_DETECTOR,    /* the angle of the source as seen from the detector's middle */
};

enum bead_knowledge { BEADS_KNOWN = 1, BEADS_IN_LAYERS, BEADS_UNKNOWN };

/* The views of an exam, and how their angles are to be understood. */
struct bead_views {
	int n_u, n_v;
	double pitch;
	int n_views;
	const double *angle; /* of each view; borrowed */
	int sign;	     /* 1 or -1: factor of the angles */
	enum angle_definition definition;
};

struct bead_point { /* one bead in one view */
	int bead, view;
	double at[2]; /* u, v */
};

struct bead_phantom {
	enum bead_knowledge knowledge;
	int n_beads;
	const double (*at)[3]; /* of each bead; see above: only what is known is used, for BEADS_UNKNOWN z as a start; borrowed */
	bool mirrored;	       /* use -y instead of y, to test whether the images or the positions are mirrored */
};

struct bead_fit_input {
	struct bead_views views;
	struct bead_phantom phantom;
	int n_points;
	const struct bead_point *points; /* borrowed */
	double start[SYSTEM_PARAMETERS]; /* also the values of the parameters that are not fitted */
	bool fitted[SYSTEM_PARAMETERS];	 /* support is never fitted for BEADS_UNKNOWN */
	double lo[SYSTEM_PARAMETERS], hi[SYSTEM_PARAMETERS];
};

struct bead_fit {
	double value[SYSTEM_PARAMETERS];
	double sd[SYSTEM_PARAMETERS]; /* 0: not fitted; infinite: the points do not determine it */
	double sd_sum;		      /* of axis_height + source_axis; 0: one of them is not fitted */
	bool at_limit[SYSTEM_PARAMETERS];
	double pose[3];	       /* BEADS_KNOWN: x, y of the phantom's origin, turn about z */
	int parameters;	       /* number of fitted parameters, those of beads and phantom included */
	double squares;	       /* sum of squared residuals, bins^2 */
	double noise;	       /* s: square root of squares / (2 n_points - parameters), bins */
	double rms;	       /* root mean square of the distances along u and v, bins */
	double (*residual)[2]; /* [n_points]: measured minus fitted; owned */
	double (*bead)[3];     /* [n_beads]: fitted position of each bead; owned */
};

/* Project a point onto the detector of a view: ret_at is u, v. b: angle about the axis. */
void bead_project(const double system[SYSTEM_PARAMETERS], const struct bead_views *views, double b, const double point[3],
		  double ret_at[2]);
/* Compute the angle b about the axis of a view. */
double bead_source_angle(const double system[SYSTEM_PARAMETERS], const struct bead_views *views, int view);

/* Run the fit. EINVAL: the input is contradictory, or a number is not finite. ENODATA: fewer residuals than parameters, or a bead
 * without a point. A fit whose points do not determine a parameter is no error: its sd is infinite. */
int bead_fit_run(const struct bead_fit_input *input, struct bead_fit *ret_fit, struct err *err);
void bead_fit_clear(struct bead_fit *fit);

#endif
