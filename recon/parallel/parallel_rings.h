/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: detector bins whose gain or flat field is a little wrong have a constant offset of their line integral in all views, and
 * a circle about the axis in the image. The offsets are found, and subtracted.
 *
 * A bin less the mean of its two neighbours at a distance k, in the median over views, is that of their offsets, plus what the
 * object has there. The latter changes slowly from bin to bin, or differs between sectors of angles: the median is taken in each of
 * six sectors, less that of the bins around, and counts as far as five of them agree, e_k(t). The offsets c explain all distances
 * best:
 *
 *   minimum over c of sum over k, t of (c(t) - (c(t - k) + c(t + k)) / 2 - e_k(t))^2 + a c(t)^2
 *
 * An edge of an object that is round about the axis is a ring, too, but makes the same offsets on both sides of the axis, which bins
 * do not. If that is most of their energy, and of a third of the bins, the offsets c that are alike on both sides count as 0.
 *
 * Agreement makes e_k too small, so it is done again with what is left. A constant offset of a bin cannot blur the image across a
 * ring. Sorting the values of each bin (Vo, Atwood, Drakopoulos 2018, 10.1364/OE.26.028396), which is the usual way, was tried:
 * docs/numerics.md has both in figures.
 */
#ifndef TOMONODE_RECON_PARALLEL_RINGS_H
#define TOMONODE_RECON_PARALLEL_RINGS_H

#include "recon/parallel/parallel.h"

#define PARALLEL_RING_WIDTH_MAX 15

/* Offsets in line integrals, root mean square over the bins of up to 8 slices: those that were found, and those that are still
 * found afterwards. */
struct parallel_rings {
	double before, after;
	int n_round; /* slices with an object that is round about the axis, whose edges are left as they are */
};

/* Subtract the offsets of rings of up to `width` bins. lines: [slice][angle][radial bin], in place. Parallel; the same bits with
 * any number of threads. EINVAL: width is not from 1 to PARALLEL_RING_WIDTH_MAX, or there are fewer than 8 width radial bins
 * or 12 angles; ENOMEM; ECANCELED: the monitor, which hears of every slice, has cancelled. */
int parallel_remove_rings(const struct parallel_scan *s, int width, float *lines, const struct monitor *monitor,
			  struct parallel_rings *ret, struct err *err);

#endif
