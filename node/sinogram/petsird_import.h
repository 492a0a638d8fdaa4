/* SPDX-License-Identifier: Apache-2.0 */
/* Make sinogram objects of a PETSIRD file (node/format/petsird.h), for scanners whose detectors are those of a regular cylinder
 * (recon/pet/cylinder.h).
 *
 * - EMISSION: the prompts of each bin, with TOF bins if the file has equidistant ones. A bin of a segment of several ring
 *   differences has the sum of its detector pairs.
 * - With e the sum of the efficiencies of a bin's pairs of detection bins, without the calibration factor (1 for each pair of
 *   detectors if the file has no efficiencies): NORMALISATION 1/e, and MULTIPLICATIVE 0 where e is 0, 1 elsewhere. These roles
 *   are omitted if their values are 1 everywhere.
 * - Delayed coincidences are counted only.
 * Every event is in a bin, or counted as outside (ring difference or radial position that the sinograms do not have). */
#ifndef TOMONODE_NODE_PETSIRD_IMPORT_H
#define TOMONODE_NODE_PETSIRD_IMPORT_H

#include "node/format/petsird.h"
#include "node/sinogram/sinogram.h"
#include "recon/pet/cylinder.h"

struct petsird_import {
	const char *path;
	int span;	    /* of the segments; 0: 1 up to 24 rings, else 11 */
	int max_difference; /* largest ring difference; -1: as many as the span fills */
	int n_radial;	    /* radial bins; 0: two thirds of the detectors of a ring */
	double tolerance;   /* of the detectors' positions, mm */
	const char *axes;   /* axes of the file that are x, y, z of the scanner: "x,y,z", "-y,x,z" ...; a rotation */
	bool no_tof;	    /* add all TOF bins */
	/* Time frames or gates; an event has the time of the start of its time block, minus that of the first. Marks of a signal
	 * other than PET_SIGNAL_TABLE are read from the file. */
	struct pet_images images;
};

struct petsird_import_report {
	char model[64];
	struct petsird_counts counts;
	uint64_t stored, outside; /* prompts in a bin, and others */
	uint64_t between;	  /* prompts in no time frame or gate */
	struct pet_cycles cycles; /* with gates: those used and left out */
	uint64_t marks_outside;	  /* time marks of the file before its events or behind them, which are left out */
	struct michelogram m;	  /* segments: NULL */
	size_t planes;
	size_t missing;	  /* positions of the cylinder without a detector */
	double deviation; /* of the detectors, mm */
	double calibration;
	bool normalisation; /* this role was written */
	size_t objects;
};

/* conf: like sinogram_import(); header is ignored. Errors: EBADMSG, ENOTSUP (no regular cylinder, TOF bins that are not
 * equidistant, a bed or gantry that moves, gates shorter than the time blocks), EINVAL (an option), ENOMEM. */
int petsird_import(const struct petsird_import *o, const struct sinogram_import *conf, struct petsird_import_report *ret,
		   struct err *err);

/* Say how the axes of a file are taken. axes: of --axes; NULL: the default. */
void petsird_axes_text(const char *axes, char *ret, size_t size);

#endif
