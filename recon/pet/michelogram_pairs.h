/* SPDX-License-Identifier: Apache-2.0 */
/* Which detectors a bin of a michelogram connects: from the two detectors of an event to its bin, and from a bin to its pairs of
 * detectors. Only for sinograms without arc correction, whose bins are pairs of detectors.
 *
 * - The detectors of a ring are numbered c = 0 .. N-1 (N even) towards ascending angles; detector c is at the angle angle_offset
 *   + (c - N/4) 360 / N degrees, from x towards y, on the ring where the rays end (recon/pet/michelogram.h).
 * - The pair of radial bin t = radial - n_radial / 2 of view v: its second end is detector v + floor(t / 2), its first end is
 *   detector v - floor((t + 1) / 2) + N/2, both modulo N. This is STIR's numbering; STIR's first detector is the second end here.
 * - The rays of even t end exactly at these two detectors. Those of odd t are half a detector further along the ring, at both
 *   ends: a sinogram has one angle for the bins of a view.
 * - With N = 2 mash n_angles, views mash a .. mash a + mash - 1 were added to angle a.
 * - The pair of two detectors may be stored the other way round: a bin has the ring difference and the ends of one order only.
 *   Then `exchanged` is set, and the first end of the bin is the second one of the event: a time of flight changes its sign.
 *
 * All functions but the first are pure and cheap: no memory, no loop over the segments; threads may share an index. */
#ifndef TOMONODE_RECON_MICHELOGRAM_PAIRS_H
#define TOMONODE_RECON_MICHELOGRAM_PAIRS_H

#include "recon/pet/michelogram.h"

struct michelogram_ends { /* [0]: first end, [1]: second end */
	int ring[2], crystal[2];
};

struct michelogram_bin {
	int plane, angle, radial;
	bool exchanged;
};

/* An entry of a list of events. */
enum pet_entry_type { PET_ENTRY_OTHER, PET_ENTRY_MARK, PET_ENTRY_PROMPT, PET_ENTRY_DELAYED };
struct pet_entry {
	enum pet_entry_type type;
	long ms;		    /* of a time mark */
	struct michelogram_bin bin; /* of an event */
};

struct michelogram_index {
	int rings, detectors, n_radial, n_angles, mash, n_planes;
	struct {
		int base, step; /* plane of a ring pair: base + sum of its rings / step; step 0: no plane has this difference */
	} difference[2 * MICHELOGRAM_RINGS_MAX - 1]; /* [ring difference + rings - 1] */
	int n_segments;
	const struct michelogram_segment *segments; /* borrowed from the michelogram */
};

/* EINVAL: not a michelogram, arc-corrected, an odd number of detectors, or angles that are not a whole number of views. m must
 * outlive the index. */
int michelogram_index_init(const struct michelogram *m, struct michelogram_index *ret, struct err *err);

/* Compute the bin of two detectors. false: the michelogram does not have it (ring difference, radius), the detectors are the same
 * one of a ring, or a number is out of range. */
static inline bool michelogram_bin_of(const struct michelogram_index *x, const struct michelogram_ends *e,
				      struct michelogram_bin *ret)
{
	int n = x->detectors, c1 = e->crystal[1], c2 = e->crystal[0], t, v, first, second;
	bool exchanged;

	if ((unsigned)c1 >= (unsigned)n || (unsigned)c2 >= (unsigned)n || (unsigned)e->ring[0] >= (unsigned)x->rings ||
	    (unsigned)e->ring[1] >= (unsigned)x->rings || c1 == c2)
		return false;
	t = c1 - c2 + n / 2; /* modulo n: -n/2 < t < n/2, as c1 is not c2 */
	t -= t >= n / 2 ? n : 0;
	v = c1 + c2 + n / 2 + (t & 1); /* 2 v modulo n; + n/2 is - n/2 */
	v = (v >= 2 * n ? v - 2 * n : v >= n ? v - n : v) / 2;
	exchanged = c1 != (v + (t >> 1) + n) % n;
	first = e->ring[exchanged];
	second = e->ring[!exchanged];
	t = (exchanged ? -t : t) + x->n_radial / 2;
	if (t < 0 || t >= x->n_radial || x->difference[first - second + x->rings - 1].step == 0)
		return false;
	ret->plane = x->difference[first - second + x->rings - 1].base +
		     (first + second) / x->difference[first - second + x->rings - 1].step;
	ret->angle = v / x->mash;
	ret->radial = t;
	ret->exchanged = exchanged;
	return true;
}

/* Compute the crystals of the pair number `view` (0 .. mash-1) of the bins (angle, radial), which must exist. */
static inline void michelogram_crystals(const struct michelogram_index *x, int angle, int radial, int view, int ret_crystal[2])
{
	int n = x->detectors, v = angle * x->mash + view, t = radial - x->n_radial / 2;

	ret_crystal[0] = (v - ((t + 1) >> 1) + n / 2 + n) % n;
	ret_crystal[1] = (v + (t >> 1) + n) % n;
}

/* The ring pairs of a plane: first ring + second ring = sum, and first - second = first_difference, + 2, ... n of them. */
struct michelogram_rings {
	int sum, difference, n;
};

/* Compute the ring pairs of a plane, 0 .. n_planes-1. */
struct michelogram_rings michelogram_plane_rings(const struct michelogram_index *x, int plane);

#endif
