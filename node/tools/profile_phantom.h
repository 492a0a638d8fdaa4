/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a bead phantom, a JSON file:
 *
 *	{"diameter_mm": 1.0, "beads_mm": [[-60, -80, 5], [10.5, 40, 55], ...]}     positions known
 *	{"diameter_mm": 1.0, "layers_mm": [5, 55]}                                only the heights of layers known
 *	{"diameter_mm": 1.0}                                                      heights unknown: no fit accepts this
 *
 * x and y are in any axes of the phantom that are seen unmirrored from the tube; z is the height of a bead's centre above the
 * surface on which the phantom lies. */
#ifndef TOMONODE_NODE_PROFILE_PHANTOM_H
#define TOMONODE_NODE_PROFILE_PHANTOM_H

#include "recon/calibration/bead_fit.h"

#define PHANTOM_BEADS_MAX 200
#define PHANTOM_LAYERS_MAX 8

struct profile_phantom {
	double diameter; /* of the beads, mm */
	enum bead_knowledge knowledge;
	int n_beads, n_layers;
	double at[PHANTOM_BEADS_MAX][3];  /* BEADS_KNOWN, mm */
	double layer[PHANTOM_LAYERS_MAX]; /* BEADS_IN_LAYERS: heights, ascending, mm */
};

/* EBADMSG: not such a file, or a number is out of range. */
int profile_phantom_read(const char *path, struct profile_phantom *ret_phantom, struct err *err);
/* Read such a file's bytes, for fuzzing. */
int profile_phantom_parse(const char *bytes, size_t size, struct profile_phantom *ret_phantom, struct err *err);

#endif
