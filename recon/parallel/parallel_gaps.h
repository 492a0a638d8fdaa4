/* SPDX-License-Identifier: Apache-2.0 */
/* Find detector bins, and single values, that are no measurement. Private to recon/parallel; the method is in parallel_gaps.c. */
#ifndef TOMONODE_RECON_PARALLEL_GAPS_H
#define TOMONODE_RECON_PARALLEL_GAPS_H

#include "recon/parallel/parallel.h"

enum parallel_gap_kind {
	PARALLEL_GAP_NONE,
	PARALLEL_GAP_DEAD,     /* no flat field like its neighbours' */
	PARALLEL_GAP_HOT,      /* bright in the dark fields, or the same value in all frames */
	PARALLEL_GAP_FLICKERS, /* noise of several times that of its neighbours */
};

/* Frames of one kind, in the order of time. */
struct parallel_series {
	const float *values; /* [frame][n_radial] */
	size_t n_radial;
	const int *frame; /* numbers of the frames */
	int n;
	const double *dark; /* [n_radial], subtracted; NULL: these are the dark fields */
};

/* Mark bins that flicker, where mark[n_radial] (enum parallel_gap_kind) is NONE, and list hits by frame and bin: view is the
 * number in the series, slice 0. Marked bins are left out. light: [n_radial] of the open beam. ret_noise: [n_radial], standard
 * deviation of the square root of the light; 0: fewer than 3 frames. Parallel; the same result with any number of threads. ENOMEM. */
int parallel_find_gaps(const struct parallel_series *s, const double *light, unsigned char *mark, double *ret_noise,
		       struct parallel_gaps *hits, struct err *err);

/* The median of up to 17 bins around each, without those that `skip`, unless NULL, marks. */
void parallel_usual(const double *x, const unsigned char *skip, size_t n, double *ret);

int parallel_gap_add(struct parallel_gaps *g, int slice, int bin, int view, struct err *err);

#endif
