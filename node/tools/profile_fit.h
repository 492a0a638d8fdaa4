/* SPDX-License-Identifier: Apache-2.0 */
/* Fit the geometry profile of a tomosynthesis system to an exam of a bead phantom, or check the profile against it.
 *
 * Beads are found in every view, connected and matched with the phantom (recon/calibration/bead_find.h, bead_track.h), starting
 * from the profile that the configuration has for the system. All conventions are tried; the best one is fitted, without
 * positions that are far from it (beads in front of each other), and judged (bead_judge.h). docs/dbt-calibration.md describes the
 * method. */
#ifndef TOMONODE_NODE_PROFILE_FIT_H
#define TOMONODE_NODE_PROFILE_FIT_H

#include "node/config/config.h"
#include "node/tomo/exam.h"
#include "node/tools/profile_phantom.h"
#include "recon/calibration/bead_judge.h"
#include "recon/core/monitor.h"

struct profile_result {
	struct bead_fit_input input; /* its pointers lead to the members below */
	double *angle;		     /* [views] */
	double (*at)[3];	     /* [input.phantom.n_beads] */
	struct bead_point *points;
	int *number; /* [input.phantom.n_beads]: index in the phantom's list of beads or layers; heights unknown: in the order
			found */
	int n_found, n_unmatched;	     /* beads that were found; of these those that are not in the phantom */
	int n_dropped;			     /* positions that were left out because they are far from the fit */
	struct bead_conventions conventions; /* n = 0: not tried, because heights are unknown */
	struct bead_fit fit;
	struct bead_view_residual *views; /* [views] */
	double trend;			  /* of bead_judge_views() */
	char refused[500];		  /* why the fit must not be used; "": it may */
	struct profile_conf profile;	  /* the system's profile with the fitted geometry; empty if refused */
	double rms_before;		  /* bins: residuals with the geometry of the profile in use; infinite: no such fit */
};

/* fixed: parameters that keep the value of the profile. Errors: EBADMSG: the exam does not show the beads of this phantom. */
int profile_fit_run(const struct exam *exam, const struct profile_phantom *phantom, const bool fixed[SYSTEM_PARAMETERS],
		    const struct monitor *monitor, struct profile_result *ret_result, struct err *err);
void profile_result_clear(struct profile_result *r);

/* A fit compared with the profile in use. */
struct profile_change {
	bool compared; /* the parameter was fitted */
	double change, allowed;
	bool passed;
};
struct profile_constancy {
	struct profile_change change[SYSTEM_PARAMETERS];
	char reason[500]; /* the first reason why the profile does not describe the system; "": it does */
};
/* limit: largest residuals with the profile's own geometry, bins. */
void profile_check(const struct profile_result *r, const struct profile_conf *profile, double limit,
		   struct profile_constancy *ret);

#endif
