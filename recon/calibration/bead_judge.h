/* SPDX-License-Identifier: Apache-2.0 */
/* Decide whether a fit (recon/calibration/bead_fit.h) determines the geometry of a system well enough to be used. */
#ifndef TOMONODE_RECON_BEAD_JUDGE_H
#define TOMONODE_RECON_BEAD_JUDGE_H

#include "recon/calibration/bead_conventions.h"

/* Return the largest standard deviation of a parameter that is accepted. 1 mm of axis_height moves a bead by 0.1 mm along z, 1 mm
 * of source_axis or source_x by up to 0.1 mm along x; source_y and angle_offset compensate each other. If angles are as seen from
 * the detector, axis_height and source_axis compensate each other, too: then the limit of 1 mm is for their sum. */
double bead_sd_limit(int parameter, enum angle_definition definition);
#define BEAD_NOISE_LIMIT 0.5 /* bins: beads are found to about 0.1 bin; more is a model that does not fit */

/* Check a fit. EDOM: heights are unknown, a parameter is not determined or is at its limit, or the residuals are too large; the
 * text has the reason. */
int bead_judge_fit(const struct bead_fit_input *input, const struct bead_fit *fit, struct err *err);
/* Check the conventions. EDOM: mirrored images, or two conventions that the data do not tell apart. A wrong sign or definition is
 * no error: trials[best] has the right one. */
int bead_judge_conventions(const struct bead_conventions *c, struct err *err);

struct bead_view_residual {
	int n;
	double mean[2], rms; /* bins, of measured minus fitted along u and v */
};
/* Compute the residuals of each view; ret: n_views elements. Returns the largest mean of a view in units of its standard
 * deviation: above 5 the residuals depend on the view, which the model does not describe. */
double bead_judge_views(const struct bead_fit_input *input, const struct bead_fit *fit, struct bead_view_residual *ret);

#endif
