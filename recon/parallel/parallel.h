/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D parallel beams: from sinograms to a stack of slices.
 *
 * g(s, theta) = integral of f along x cos theta + y sin theta = s (Radon 1917). In memory a scan is float
 * data[slice][angle][radial], line integrals: mm times the unit of f. Slices share all rays; they are independent problems, but
 * are computed together.
 *
 * Axes: x to the right, y down, z from slice to slice; (0, 0) is the middle of the image. Angles: first_angle + a arc / n_angles
 * degrees, or any list. Radial bin t is at (t - (n_radial - 1) / 2) bin + offset.
 *
 * parallel_plan() determines all sizes, and its error messages give the numbers. parallel_reconstruct() and parallel_radon() each
 * execute a plan in one call; the caller passes the whole sinogram at once. */
#ifndef TOMONODE_RECON_PARALLEL_H
#define TOMONODE_RECON_PARALLEL_H

#include "kernels/device.h"
#include "recon/core/algorithm.h"
#include "recon/core/monitor.h"
#include "recon/core/plan.h"

/* A bin without datum, or a single value. */
struct parallel_gap {
	int slice, bin, view; /* view: -1: all */
};

struct parallel_gaps {
	size_t n, room;
	struct parallel_gap *gap; /* slice by slice */
};

void parallel_gaps_release(struct parallel_gaps *g);

struct parallel_scan {
	int n_slices, n_angles, n_radial;
	double bin;		 /* distance of neighbouring rays, mm */
	double offset;		 /* position of the middle of the radial bins relative to the rotation axis, mm */
	double slice;		 /* mm: distance of slices */
	double first_angle, arc; /* degrees; arc: > 0, at most 360, 180 for a full set */
	const double *angle; /* degrees, n_angles elements, used in place of first_angle and arc; borrowed; NULL: equal steps */
	bool offset_unknown; /* the header has none; `offset` is 0 until it is found */
	const struct parallel_gaps *gaps; /* bins that iterative algorithms leave out; borrowed; NULL: none. FBP and BP use their
					   * values, which are interpolated */
};

enum parallel_filter { PARALLEL_RAM_LAK = 1, PARALLEL_SHEPP_LOGAN, PARALLEL_COSINE, PARALLEL_HANN };
enum parallel_route { PARALLEL_FOURIER = 1, PARALLEL_CONVOLUTION }; /* two ways of filtering with the same result to 1e-5 */

struct parallel_protocol {
	enum algorithm algorithm; /* parallel_supports() must be true */
	int iterations;		  /* sweeps; ignored by BP and FBP */
	int subsets;		  /* SART, OSEM, OSTR: number of subsets of angles */
	double relaxation;
	bool non_negative; /* ART, SART: set negative values to 0, after each sweep (ART) and each subset (SART) */
	bool in_sequence;  /* ART: use views in the order of their angles; else far from each other, which converges faster */
	enum parallel_filter filter;
	double filter_cut; /* Hann: fraction of the Nyquist frequency */
	enum parallel_route route;
	int matrix;			 /* pixels along x and y; 0: n_radial */
	double pixel;			 /* mm; 0: bin */
	double fov_radius;		 /* mm; pixels with the centre outside become 0; 0: the whole image, corners too */
	enum projection_model projector; /* PATHS (Siddon), JOSEPH, SAMPLED, EXACT */
	double sampling;		 /* SAMPLED: mm; 0: a tenth of a pixel */
	size_t memory_limit; /* bytes on the device; 0: its memory. If not everything fits, slices are processed in parts */
	bool deterministic;
};

/* Return whether parallel beams can be reconstructed with a: bp, fbp, art, sart, mlem, osem, mltr, ostr, and any other algorithm
 * that uses their update rules. bp is voxel-driven and multiplied by the angle between views: blurred, in the unit of line integrals. */
bool parallel_supports(enum algorithm a);

struct parallel_plan {
	struct grid grid;	 /* all slices; (0, 0, 0) is its middle */
	double fov_radius;	 /* the radius in use, mm; larger than the image if the protocol has 0 */
	int subsets, iterations; /* the numbers in use */
	int part_slices;	 /* number of slices processed together */
	struct plan_bytes bytes; /* host: with lines and image of parallel_reconstruct(), of one part if the stack is apart */
};

int parallel_check(const struct parallel_scan *s, struct err *err); /* EINVAL: the message says what is wrong */
size_t parallel_size(const struct parallel_scan *s);		    /* number of bins */
double parallel_angle(const struct parallel_scan *s, int a);	    /* degrees */
double parallel_radius(const struct parallel_scan *s, int t);	    /* position of a radial bin, mm */

/* What the views say about each other, and about the angles and the axis of rotation of the header. */
struct parallel_consistency {
	bool known;	   /* false: the data do not say it, and the following up to `factor` is not set */
	double axis_error; /* mm: position of the real axis, where the scan has 0; only if the angles agree */
	double axis_sigma; /* mm: its standard deviation, from what the views do not explain */
	double axis_doubt; /* mm: the same of what constant errors of single bins, and angles that are all stretched, move it by */
	double stretch; /* the views agree better with angles 1 + stretch times those of the header; 0: with the header's, or noise */
	bool stretched;	  /* that is sure */
	bool axes_differ; /* of a stack: it is the axis of fewer than half of the slices, or of one or two and not of all */
	bool agree;	  /* the angles agree with the views, or nothing is known */
	double centre_rest,
		width_rest; /* mm: deviation of centres of mass and widths from those of the angles, root mean square */
	double centre_limit, width_limit; /* mm: what noise and mass that leaves the field explain */
	double factor;	 /* the views agree with angles this many times those of the header; 0: with none that is known */
	int n_odd, odd;	 /* views whose mass is not that of their neighbours: number, the first of them */
	double odd_mass; /* its mass, in that of its neighbours */
	bool alternate;	 /* the masses are above and below those of their neighbours by turns; only with rough > 0 */
	double rough; /* median deviation of the views' mass from that of their neighbours, in the mean mass; 0: noise, or the ends
		       * are not air */
	double air;   /* line integral of air at both ends of all views, if it is not 0 and the same in all; else 0 */
	bool noisy_air;	   /* the bins at the ends of the views are not all equal: two slices of the same data are a copy */
	double air_spread; /* its standard deviation, if it is not the same in all; else 0 */
};

/* What is wrong with a slice, unlike the rest. */
enum parallel_fault {
	PARALLEL_GOOD,
	PARALLEL_ODD_VIEW, /* one of its views has another mass than those beside it */
	PARALLEL_ANGLES,   /* its views contradict the angles */
	PARALLEL_AXIS,	   /* its axis of rotation is elsewhere; value: mm from that of the rest */
	PARALLEL_COPY,	   /* the same data as the slice before it, noise included */
	PARALLEL_FAULTS,
};

/* Slices with a fault: at most half of them, else the others are the exceptions. */
struct parallel_faults {
	struct {
		int n, first; /* number of slices, and the first of them */
		double value;
		struct parallel_consistency c; /* of the first */
	} of[PARALLEL_FAULTS];
};

/* Find it from mass, centre and variance of the views. lines: [slice][angle][radial bin]. *ret: of the sum of the slices without
 * a fault of their own; *ret_faults, unless NULL: of the others. Returns ret->known: false if the object leaves the field (the
 * mass of the views differs, or their ends are not air), its mass is not positive, or the angles are few or near each other.
 * The monitor, which may be NULL, hears of every slice. Parallel. */
bool parallel_consistency_of(const struct parallel_scan *s, const float *lines, const struct monitor *monitor,
			     struct parallel_consistency *ret, struct parallel_faults *ret_faults);

/* How the axis of rotation was found. */
enum parallel_axis_by {
	PARALLEL_AXIS_PAIRS, /* views of opposite sides are mirror images */
	PARALLEL_AXIS_SEAM,  /* half a turn and its mirror image make a whole one without a seam */
	PARALLEL_AXIS_MASS,  /* the centres of mass of the views turn about it; a search that agrees has its part */
};

/* Why it is not known. */
enum parallel_axis_reason {
	PARALLEL_AXIS_KNOWN,
	PARALLEL_AXIS_FEW,	 /* views or bins */
	PARALLEL_AXIS_ARC,	 /* less than half a turn */
	PARALLEL_AXIS_NOISE,	 /* no place is better than others */
	PARALLEL_AXIS_AMBIGUOUS, /* several places are about as good */
	PARALLEL_AXIS_UNCERTAIN, /* offset and sigma are set, but sigma is too large */
};

struct parallel_axis {
	enum parallel_axis_reason reason;
	enum parallel_axis_by by;
	double offset; /* mm: the scan's offset that the data have */
	double sigma;  /* mm: its standard deviation */
	double lean; /* degrees: of the axis in the plane of the detector, 0: none that can be seen. The offset is that of the middle
			* of all slices, and falls by tan(lean) mm for each mm along z */
};

/* Find the axis of rotation from the data, without the offset of the header. lines: [slice][angle][radial bin]; c: what the views
 * say (parallel_consistency_of()). It is known if three standard deviations are at most half a bin. The object may leave the field,
 * and the axis be near its edge if the views are of a whole turn. Of a stack a few slices that show something are read, and more if
 * these do not say it. Parallel; the same bits with any number of threads. ENOMEM. */
int parallel_find_axis(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *c,
		       struct parallel_axis *ret, struct err *err);

/* Compute the part of the half circle that each view represents, radians, n_angles elements. For equal steps: arc / n_angles, or
 * pi / n_angles if the arc is a multiple of 180 degrees. Else half the distance to the neighbours on either side, where theta and
 * theta + 180 degrees are the same direction. A gap more than three times as wide as all others counts as a sector that was not
 * measured: the views at its ends then extend as far outward as inward. */
int parallel_weights(const struct parallel_scan *s, double *ret_weight, struct err *err);

/* Compute the share of each radial bin in its ray, n_radial elements. A whole turn (arc 360, or a list of angles without a gap
 * of more than three mean steps) measures rays from both sides, but not those farther from the axis than the nearer edge of the
 * field: their share is 2. Up to that edge the shares of opposite bins add up to 2 and change smoothly (half acquisition; Wang 2002,
 * 10.1118/1.1489043, for parallel beams). Return false if all are 1. */
bool parallel_shares(const struct parallel_scan *s, double *ret_share);

/* Plan a reconstruction. EINVAL, ENOMEM: the message gives the key or the bytes. */
int parallel_plan(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
		  struct parallel_plan *ret_plan, struct err *err);
/* Does a plan need more main memory than there is, or, on the CPU, than p->memory_limit, with all lines and the image in it? */
bool parallel_is_too_large(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct device *dev);
/* Plan for a caller that keeps the stack apart from main memory: lines and image are in a mapped file, whose pages it gives back
 * whenever the monitor hears of progress. Then those of one part are in memory at a time, and parts are small enough for that. */
int parallel_plan_apart(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
			struct parallel_plan *ret_plan, struct err *err);

struct parallel_report {
	double seconds_setup, seconds_filter, seconds_iterate;
	double residual; /* |A x - y| / |y| of the result over all rays, ART and SART; else 0 */
};

/* Reconstruct. lines: parallel_size() floats; EINVAL if one is NaN or infinite; for MLEM and OSEM
 * negative; for MLTR and OSTR below -20. ret_volume: nx *
 * ny * n_slices floats, x fastest, then y. ECANCELED: the monitor has cancelled. After any error the content of ret_volume is
 * undefined. */
int parallel_reconstruct(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct parallel_scan *s,
			 struct device *dev, const float *lines, const struct monitor *monitor, float *ret_volume,
			 struct parallel_report *ret_report, struct err *err);

/* Compute the Radon transform of a stack of pictures (x fastest, then y, then slice) with the protocol's projector. ret_lines:
 * parallel_size() floats. */
int parallel_radon(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct parallel_scan *s,
		   struct device *dev, const float *volume, float *ret_lines, struct err *err);

/* Create the scan of the rays with views in `order` (NULL: unchanged), for a field of view of fov_radius mm; plane k has rise 0
 * in the middle of slice k of n_slices. Free it with scan_free(). */
int scan_create_parallel(const struct parallel_scan *s, int n_slices, double fov_radius, const int *order, struct scan **ret_scan,
			 struct err *err);

#endif
