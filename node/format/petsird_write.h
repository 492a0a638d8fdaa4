/* SPDX-License-Identifier: Apache-2.0 */
/* Write PETSIRD files (schema 0.12) of a scanner that is a regular cylinder: `node/format/petsird.h` and other programs read
 * them.
 *
 * - One type of modules: module c is the column of all rings of crystal c, element r is its detector in ring r. So detector
 * number = ring + rings crystal, which is also the detection bin (one energy bin, 435 to 650 keV).
 * - Centres of detectors are on the cylinder where rays end; the box of a crystal is PETSIRD_DEPTH mm deep.
 * - Efficiencies are 1, or 0 for detectors that are gaps and for pairs that the michelogram does not have (ring difference,
 * radial bin). No calibration.
 * - TOF bins: those of the michelogram, in the format's order; without time of flight one bin that contains everything.
 * Blocks are written one by one. The file appears under its name when it is complete. */
#ifndef TOMONODE_NODE_PETSIRD_WRITE_H
#define TOMONODE_NODE_PETSIRD_WRITE_H

#include "node/format/petsird.h"
#include "recon/pet/michelogram_pairs.h"

#define PETSIRD_DEPTH 20.0	    /* mm, of a crystal */
#define PETSIRD_WRITE_CRYSTALS 4096 /* of a ring: the table of pairs of modules has the square of this */

struct petsird_scan {
	const char *model;	     /* name of the scanner */
	const struct michelogram *m; /* span 1, not arc-corrected, as many angles as half of the detectors of a ring */
	double start;		     /* of the acquisition, s since 1970; 0: unknown */
	/* Is this crystal of each ring a gap between blocks? NULL: none is. */
	bool (*is_gap)(int crystal);
};

struct petsird_writer;

/* Write the header. EINVAL: not a michelogram; ENOTSUP: it is not one of the above, or has too
 * many detectors. */
int petsird_create(const char *path, const struct petsird_scan *scan, struct petsird_writer **ret, struct err *err);
/* Write one time block, start to stop in ms. Of the events detector, tof (as petsird_next() returns it, for this order of the
 * detectors) and delayed are used. */
int petsird_write(struct petsird_writer *w, uint32_t start, uint32_t stop, const struct petsird_event *events, size_t n,
		  struct err *err);
/* Write one time block of prompts in parts: the number of all, the events (petsird_add(), as often as needed), the end. EINVAL:
 * not this number of events. */
int petsird_begin(struct petsird_writer *w, uint32_t start, uint32_t stop, uint64_t prompts, struct err *err);
int petsird_add(struct petsird_writer *w, const struct petsird_event *events, size_t n, struct err *err);
int petsird_end(struct petsird_writer *w, struct err *err);
/* Finish the file and free w, also on error. */
int petsird_finish(struct petsird_writer *w, struct err *err);
void petsird_abort(struct petsird_writer *w); /* remove what was written and free w; NULL: nothing */

/* Make the prompt of a bin of the michelogram that is written: its only pair of detectors, and TOF bin k of the data. x: the
 * index of m. */
struct petsird_event petsird_event_of(const struct michelogram *m, const struct michelogram_index *x, int k,
				      const struct michelogram_bin *bin);

#endif
