/* SPDX-License-Identifier: Apache-2.0 */
/* PET sinograms of a cylindrical scanner: their planes and the positions of their rays.
 *
 * - Rings are numbered 0 .. rings-1 along +z. A plane of a sinogram belongs to a segment: the ring differences first .. last
 *   (first end minus second end, in rings; see below) whose ring pairs with the same sum were added. Planes of a segment are half
 *   a ring apart, or a whole ring if first == last; in ascending z, symmetric about the scanner's middle: plane a of n is at (a -
 *   (n-1)/2) times that distance.
 * - The ring difference of a plane is the mean of those in first .. last that have the parity of its ring pairs' sum: the
 *   segment's mean for an odd number of differences (span 3, 7, 11), the plane's own if each plane is one ring pair (GE's span
 *   2).
 * - In memory a michelogram is float data[plane][angle][radial], radial fastest, planes in the order of the segments. With time
 * of flight it is data[TOF bin][plane][angle][radial]: plane p of TOF bin k is number k n + p of the data's planes, n being the
 *   number of planes of a TOF bin. TOF bins ascend in the position along the ray, positive towards the first end
 *   (kernels/geometry.h, struct scan_tof); files have them in the opposite order (node/format/interfile.h).
 * - Views are added (mashed) if half of the detectors is a whole multiple mash > 1 of the angles. angle_offset is that of the
 *   scanner's first view, as in files; angle 0 is the mean of the first mash views, (mash - 1) / 2 views further (as STIR has
 * it).
 * - The rays: kernels/geometry.h, SCAN_PARALLEL, with phi = michelogram_angle(a), radius r = (t - n_radial / 2) bin (integer
 * division) for arc-corrected data, else R sin((t - n_radial / 2) pi / detectors), R = radius + interaction_depth. The end at
 * positive t along the ray (first end) is difference / 2 rings above the middle. This is STIR's convention for Interfile.
 * - Axes: x to the right, y down, z into the gantry, for an observer at the bed: for a patient who is head first and supine these
 *   are the patient's left, back and head. */
#ifndef TOMONODE_RECON_MICHELOGRAM_H
#define TOMONODE_RECON_MICHELOGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

#define MICHELOGRAM_RINGS_MAX 1024

struct pet_scanner {
	int rings, detectors;	  /* number of rings; of detectors per ring */
	double ring_spacing;	  /* distance of neighbouring rings, mm */
	double radius;		  /* inner radius, mm */
	double interaction_depth; /* mean depth of interaction in the crystals, mm; rays end at radius + this */
	double bin;		  /* mm: radial bin of arc-corrected data; else the detector spacing */
};

struct michelogram_segment {
	int first, last; /* ring differences */
	int n_planes;
};

#define MICHELOGRAM_SEGMENTS_MAX 1024
#define MICHELOGRAM_TOF_MAX 1024
struct michelogram {
	struct pet_scanner scanner;
	int n_radial, n_angles;
	double angle_offset; /* degrees, of the scanner's first view */
	bool arc_corrected;
	int n_segments;
	struct michelogram_segment *segments; /* owned by the creator */
	struct scan_tof tof;		      /* tof.n = 0: no time of flight */
};

/* Compute the segments of a span, in the order 0, +1, -1, +2, ..., up to a largest ring difference. span: odd; or 2, as GE uses
 * it: ring differences -1, 0 and 1 in segment 0, then pairs of differences. The caller frees ret_segments. */
int michelogram_segments(int rings, int span, int largest_difference, struct michelogram_segment **ret_segments, int *ret_n,
			 struct err *err);

/* The same for all ring differences: those beyond the last full segment are one narrower segment on each side. span: odd. */
int michelogram_segments_all(int rings, int span, struct michelogram_segment **ret_segments, int *ret_n, struct err *err);

/* Return the number of planes of a segment with ring differences first .. last; 0: a scanner with this number of rings does not
 * have all these differences. */
int michelogram_segment_planes(int rings, int first, int last);
int michelogram_check(const struct michelogram *m, struct err *err); /* EINVAL: the message says what is wrong */
/* Compute where the TOF bins and the radial bins end, mm from the middle of the rings. false: the TOF bins end far inside, and
 * would miss most annihilations: their width is wrong, as in headers whose mashing factor is not that of their bins. */
bool michelogram_tof_reaches(const struct michelogram *m, double *ret_reach, double *ret_largest);
size_t michelogram_planes(const struct michelogram *m);	     /* of a TOF bin */
size_t michelogram_data_planes(const struct michelogram *m); /* of all TOF bins */
size_t michelogram_size(const struct michelogram *m);	     /* number of bins, all TOF bins */
/* Return the segment whose mean ring difference is next to 0, the first of several; ret_first: its first plane. There must be
 * one.
 */
const struct michelogram_segment *michelogram_direct(const struct michelogram *m, size_t *ret_first);
/* Return the number of ring pairs that were added in a plane of a segment. */
int michelogram_pairs(const struct michelogram *m, int segment, int plane);
/* The same of a plane of a TOF bin, times the views that were added into an angle: the pairs of detectors in each of its bins. 0:
 * the numbers of rings are not known. */
int michelogram_bin_pairs(const struct michelogram *m, size_t plane);
/* Compute the place of a plane of a segment: z of its middle, mm from the scanner's middle, and how far its first end is above it
 * (the second end is as far below). */
void michelogram_place(const struct michelogram *m, int segment, int plane, double *ret_z, double *ret_rise);
/* Compute phi of an angle, degrees; it may be a fraction, or beyond the last one. */
double michelogram_angle(const struct michelogram *m, double angle);
double michelogram_radius(const struct michelogram *m, int t); /* position of a radial bin, mm */

/* Add `factor` neighbouring TOF bins into one: compute the michelogram of such data, with the same edges. ret borrows the
 * segments of m. factor: ignored without time of flight. EINVAL: it does not divide the number of TOF bins. */
int michelogram_mash(const struct michelogram *m, int factor, struct michelogram *ret, struct err *err);

/* Create the scan of the rays: views in `order` (n_angles indices of angles; NULL: ascending), planes sorted as struct scan
 * requires. ret_plane[u]: the plane of the michelogram that is plane u of the scan (michelogram_planes() elements; the caller
 * frees it). Free the scan with scan_free(). */
int scan_create_michelogram(const struct michelogram *m, double fov_radius, const int *order, struct scan **ret_scan,
			    int **ret_plane, struct err *err);

/* The same for the pairs of detectors themselves, without arc correction: the rays of the radial bins of one parity, first, first
 * + 2 ... (first = 0 or 1; n_radial > first), which end at their detectors. Rays of odd t = radial - n_radial / 2 are half a
 * detector beside those of the sinogram (recon/pet/michelogram_pairs.h). */
int scan_create_pairs(const struct michelogram *m, double fov_radius, int first, struct scan **ret_scan, int **ret_plane,
		      struct err *err);

/* Number of bins of a plane, and of all planes of a TOF bin. */
static inline size_t michelogram_plane_bins(const struct michelogram *m)
{
	return (size_t)m->n_angles * (size_t)m->n_radial;
}
static inline size_t michelogram_bins(const struct michelogram *m)
{
	return michelogram_planes(m) * michelogram_plane_bins(m);
}

#endif
