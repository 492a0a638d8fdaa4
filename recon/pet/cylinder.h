/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether the detectors of a scanner, given by their positions, are those of a regular cylinder: rings at equal
 * distances along z, and on each ring positions at equal angles around the z axis. Positions may be empty (gaps between blocks).
 *
 * A position may differ from the regular one by `tolerance` mm along each of: radius, angle (as an arc), z; along the last two by
 * at most a quarter of the distance of neighbouring positions, so that each detector has one place only. The smallest numbers of
 * rings and of positions that fit are taken; at least half of each must have a detector.
 *
 * Crystal 0 is the first one at (within 0.001 of a crystal) or behind the negative y axis, towards ascending angles (from x
 * towards y); with angle_offset as below, crystals are numbered as in recon/pet/michelogram_pairs.h. */
#ifndef TOMONODE_RECON_CYLINDER_H
#define TOMONODE_RECON_CYLINDER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/pet/michelogram.h"

#define CYLINDER_CRYSTALS_MAX 16384 /* positions on a ring */

struct pet_cylinder {
	struct pet_scanner scanner; /* radius: of the positions, without a depth of interaction; bin: their distance */
	double angle_offset;  /* degrees, of a michelogram of all views: crystal c is at angle_offset - 90 + c 360 / detectors */
	double centre;	      /* z of the middle of the rings, mm */
	double deviation;     /* largest one of a detector from its regular position, mm */
	size_t n;	      /* detectors */
	uint16_t (*place)[2]; /* [n]: ring, crystal; owned */
	int32_t *detector;    /* [ring][crystal]: number of the detector, -1: none; owned */
};

/* n positions (x, y, z), mm. ENOTSUP: no such cylinder; the text names what deviates. */
int pet_cylinder_find(const float (*position)[3], size_t n, double tolerance, struct pet_cylinder *ret, struct err *err);
void pet_cylinder_clear(struct pet_cylinder *c);

#endif
