/* SPDX-License-Identifier: Apache-2.0 */
/* Connect the spots of all views to beads, and beads to the positions in a phantom, with a start geometry that is right to about
 * 20 mm and may have the wrong sign of the angles.
 *
 * Tracks: every spot of the view nearest to 0 degrees is projected to heights above and below the detector; the height at which
 * most views have a spot at the expected place is that of the bead. Below the detector means that the angles have the wrong sign.
 * A spot that two tracks use shows two beads in one place and is dropped from both.
 *
 * Matching: the rotation about z and the shift, perhaps with a mirrored phantom, that bring most tracks close to a bead. */
#ifndef TOMONODE_RECON_BEAD_TRACK_H
#define TOMONODE_RECON_BEAD_TRACK_H

#include "recon/calibration/bead_find.h"
#include "recon/calibration/bead_fit.h"

struct bead_spots { /* of one view */
	size_t n;
	const struct bead_spot *spots; /* borrowed */
};

struct bead_track {
	double at[3]; /* position with the start geometry and the sign below, mm */
	double rms;   /* bins, of this position */
	int n_points;
};

struct bead_tracks {
	int sign; /* 1, or -1: the angles have the other sign than views->sign says */
	int n, n_points;
	struct bead_track *tracks; /* owned */
	struct bead_point *points; /* .bead: index of the track; owned */
};

/* ENODATA: fewer than three beads are seen in at least half of the views. */
int bead_tracks_make(const struct bead_views *views, const double system[SYSTEM_PARAMETERS], const struct bead_spots *spots,
		     struct bead_tracks *ret, struct err *err);
void bead_tracks_clear(struct bead_tracks *tracks);

#define BEAD_MATCH_IN_PLANE 3.0 /* mm: largest distance of a track from its bead, in the plane */
#define BEAD_MATCH_DEPTH 15.0	/* mm, along z, relative to the others */

/* Match tracks with known positions. ret_bead[track]: index of its bead, -1: none. ret_mirrored: the phantom is seen mirrored.
 * ENODATA: fewer than three beads match, or less than 60 % of the tracks (of the positions, if there are fewer). */
int bead_tracks_match(const struct bead_tracks *tracks, const double (*at)[3], int n_beads, int *ret_bead, bool *ret_mirrored,
		      struct err *err);
/* Assign every track to the nearest of n layers; height: above the phantom's bottom. ret_layer[track]: -1: between two layers. */
void bead_tracks_layers(const struct bead_tracks *tracks, double support, const double *height, int n, int *ret_layer);

#endif
