/* SPDX-License-Identifier: Apache-2.0 */
/* From the frames of a detector to line integrals of parallel beams: views, flat fields (open beam) and dark fields (no beam), in
 * the order in which they were taken.
 *
 *   y = ln((F - D) / (I - D))        (Beer-Lambert; NXtomo, DXchange and all programs of beamlines have this form)
 *
 * I: intensity of a bin in a view. D: mean of its dark fields, 0 without any. F: its flat field at the time of the view: the means
 * of the runs of flat fields before and after it, interpolated linearly in the number of frames; only one of them, if there is no
 * other. Negative values stay: noise makes half of the bins beside the object negative. */
#ifndef TOMONODE_RECON_PARALLEL_FLAT_H
#define TOMONODE_RECON_PARALLEL_FLAT_H

#include "recon/parallel/parallel.h"

/* The numbers of NXtomo's image_key. */
enum parallel_frame {
	PARALLEL_FRAME_VIEW,
	PARALLEL_FRAME_FLAT,
	PARALLEL_FRAME_DARK,
	PARALLEL_FRAME_UNUSED,
	PARALLEL_FRAME_KINDS
};

/* Frames that follow each other and are of one kind. */
struct parallel_run {
	enum parallel_frame kind;
	int n;
};

struct parallel_frames {
	int n;				/* of all runs */
	int n_runs;			/* 0: the data are line integrals */
	const struct parallel_run *run; /* owned by whoever fills it */
};

struct parallel_flat_report {
	int n_flat, n_dark;  /* frames */
	size_t bins, values; /* detector bins of all slices; line integrals */
	size_t dead; /* of bins: their flat field is less than a fifth or more than five times that of their neighbours, or no light */
	size_t hot; /* of bins: brighter in the dark fields than their neighbours by a fifth of the light, or without any change */
	size_t noisy; /* of bins: their noise is more than 3 times that of their neighbours */
	size_t hits;  /* of values: bright in this view alone */
	size_t dark;  /* of values: no more than 1e-4 of the flat field arrived; they are set to ln(1e4) */
};

/* EINVAL: the frames do not belong to the scan (its angles are the views), or there is no flat field; the message says what is
 * wrong. */
int parallel_flat_check(const struct parallel_frames *f, const struct parallel_scan *s, struct err *err);

/* Convert slice k: values[frame][radial bin] to ret_lines[angle][radial bin], and add its numbers to *report, which is zero before
 * the first slice, and to *gaps what is no measurement: dead, hot and noisy bins, and hits (parallel_gaps.c). Their line integrals
 * are interpolated between the nearest other bins of the view. Parallel; the same bits with any number of threads. EBADMSG: a value
 * is not finite, no bin has a flat field, or most of those with light are dead. ENOMEM. */
int parallel_flat_lines(const struct parallel_frames *f, const struct parallel_scan *s, int k, const float *values,
			float *ret_lines, struct parallel_gaps *gaps, struct parallel_flat_report *report, struct err *err);

#endif
