/* SPDX-License-Identifier: Apache-2.0 */
/* Decide by fits which conventions the data of a bead phantom follow: the sign of the angles, their definition, and whether
 * images (or the positions of the beads) are mirrored. Every combination is fitted with all parameters free; the wrong ones leave
 * larger residuals.
 *
 * mirrored and the sign belong together: a stored image that is mirrored along y (v) shows the beads mirrored and the angles with
 * the wrong sign; one that is mirrored along x (u) shows the beads mirrored, and the source beyond the other edge. Without known
 * positions of the beads a mirrored image cannot be seen. */
#ifndef TOMONODE_RECON_BEAD_CONVENTIONS_H
#define TOMONODE_RECON_BEAD_CONVENTIONS_H

#include "recon/calibration/bead_fit.h"

#define BEAD_TRIALS 8
#define BEAD_DISTINCT 25.0 /* (5 sigma)^2: least difference of two sums of squares, in units of the noise's variance */

struct bead_trial {
	int sign; /* relative to that of the input */
	enum angle_definition definition;
	bool mirrored;
	double rms;	/* bins; infinite: the fit failed */
	double squares; /* bins^2 */
	double axis_height, axis_height_sd;
};

struct bead_conventions {
	int n;
	struct bead_trial trials[BEAD_TRIALS]; /* trials[0] is the input's own */
	int best;			       /* index of the smallest sum of squares */
	double apart;		 /* least difference of a trial with another sign or handedness to the best, noise variances */
	double definition_apart; /* the same, of the trial that differs from the best in the definition only */
	/* The definitions are not told apart by the data, and give different geometries. A source axis in the plane of the
	 * detector gives the same geometry with both: then this is false. */
	bool definition_open;
};

/* Fit every combination. The sign and definition of input are those of trials[0]. Errors of bead_fit_run() are those of
 * trials[0].
 */
int bead_conventions_test(const struct bead_fit_input *input, struct bead_conventions *ret, struct err *err);
/* Write the input with the conventions of a trial. */
void bead_conventions_apply(const struct bead_fit_input *input, const struct bead_trial *trial, struct bead_fit_input *ret);

#endif
