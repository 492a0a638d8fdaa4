/* SPDX-License-Identifier: Apache-2.0 */
/* The single events of an acquisition (list mode), for a reconstruction without sinograms (recon/pet/pet_list.h): those of a
 * PETSIRD file (docs/petsird.md), or of the raw data of a Siemens mMR (docs/mmr.md).
 *
 * - Prompts are reconstructed; delayed coincidences are counted, for the randoms. A prompt of two detectors that are not in
 * coincidence (efficiency 0, a gap) is counted, but not used, as such a LOR is not in the sensitivity.
 * - The LORs are all pairs of detectors with an efficiency above 0. If the detectors form regular rings, the sensitivity is
 *   computed by the sinograms of a michelogram with all ring differences; else pair by pair.
 * - The events are read once when they are loaded, which checks and counts all of them. They stay in memory if they fit into a
 *   part of it; else every pass reads the file again. */
#ifndef TOMONODE_NODE_SINOGRAM_LIST_H
#define TOMONODE_NODE_SINOGRAM_LIST_H

#include "node/sinogram/sinogram.h"
#include "recon/pet/michelogram_pairs.h"
#include "recon/pet/pet_list.h"

/* Make and load the list of an opened acquisition, whose frames are set. ENOTSUP: it has no list mode, or gates. */
int sinogram_list_open(struct sinogram *s, struct err *err);

/* ---- s->list is not NULL ---- */

struct sinogram_list_report {
	uint64_t used;	     /* events of all frames */
	uint64_t dead;	     /* prompts of detectors that are not in coincidence */
	uint64_t between;    /* other prompts in no time frame */
	bool kept;	     /* the events are in memory */
	size_t bytes;	     /* of the host's memory */
	double seconds_read; /* to read and check all events */
};

/* The data of the chosen frame, borrowed. */
const struct pet_list *sinogram_list_data(const struct sinogram *s);
const struct sinogram_list_report *sinogram_list_report(const struct sinogram *s);
/* Describe the detectors, for provenance and UIDs; "": by the michelogram of EMISSION. */
const char *sinogram_list_geometry(const struct sinogram *s);

/* ---- the bins of the events, for corrections that are computed: sinogram_list_bins.c ---- */

/* Return the bins: those of the sensitivity, with the TOF bins of the list; NULL: the detectors are no regular cylinder, and
 * there are no bins. Each LOR is in one bin or, far outside of the field of view, in none. */
const struct michelogram *sinogram_list_bins(const struct sinogram *s);
/* Find the bin of an event and its TOF bin (0 without). false: there is none. From any thread. */
bool sinogram_list_bin(const struct sinogram *s, const struct event *e, struct michelogram_bin *ret, int *ret_k);
/* Count the events of the chosen frame in the bins, all TOF bins together: ret[plane][angle][radial]. Reads them all; not while a
 * session reads them. */
int sinogram_list_count(const struct sinogram *s, float *ret, struct err *err);
/* Whether the delayed coincidences are among the events; else they are a role of the objects. Count them in the same way. */
bool sinogram_list_has_delayeds(const struct sinogram *s);
int sinogram_list_delayeds(const struct sinogram *s, float *ret, struct err *err);
/* Compute the factors of the bins of a plane, sums of those of their LORs: ret[angle][radial]. From any thread. */
void sinogram_list_factors(const struct sinogram *s, size_t plane, float *ret);

#endif
