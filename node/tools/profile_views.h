/* SPDX-License-Identifier: Apache-2.0 */
/* The beads of every view of an exam, and a picture of a view for the report. */
#ifndef TOMONODE_NODE_PROFILE_VIEWS_H
#define TOMONODE_NODE_PROFILE_VIEWS_H

#include "node/tomo/exam.h"
#include "recon/calibration/bead_track.h"
#include "recon/core/monitor.h"

/* Find the beads of a diameter (mm) in all views. ret_spots: n_views elements, empty for a view without beads; free them with
 * profile_views_free(). */
int profile_views_find(const struct exam *exam, double diameter, const struct monitor *monitor, struct bead_spots **ret_spots,
		       struct err *err);
void profile_views_free(struct bead_spots *spots, int n_views);

/* Write a view as an 8-bit grey PNG, reduced to at most `side` pixels, attenuation bright. It is oriented as in the scan: u to
 * the right, v downward. ret_size: its width and height. */
int profile_views_picture(const struct exam *exam, int view, int side, const char *path, int ret_size[2], struct err *err);

#endif
