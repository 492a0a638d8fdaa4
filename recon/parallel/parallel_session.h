/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of slices open on a device, step by step: for the benchmark, which times the steps (recon/bench), and for the files of
 * recon/parallel.
 *
 * Order of calls: parallel_plan(), parallel_views_make(), a session with p, plan, s, dev, work, unit = 1 and views,
 * parallel_part_open(); then load the host's data, and run; parallel_part_release(), subsets_release(). */
#ifndef TOMONODE_RECON_PARALLEL_SESSION_H
#define TOMONODE_RECON_PARALLEL_SESSION_H

#include "kernels/device.h"
#include "recon/core/session.h"
#include "recon/core/subsets.h"
#include "recon/parallel/parallel.h"

/* The operation on a stack; the Radon transform is one of them. */
enum parallel_work {
	PARALLEL_WORK_BACK = 1, /* BP and FBP */
	PARALLEL_WORK_ROWS,	/* ART: ray by ray */
	PARALLEL_WORK_RULE,	/* SART, MLEM, OSEM: all views, or subsets of them */
	PARALLEL_WORK_RADON,
};

/* The angles in processing order; the caller releases them. */
int parallel_views_make(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			struct subsets *ret_views, struct err *err);

/* Set the plan's bytes and part_slices, the largest number of slices that fits into the memory. */
int parallel_fit(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work, struct device *dev,
		 struct parallel_plan *plan, struct err *err);

/* State while slices [first, first + n) are processed. */
struct parallel_session {
	const struct parallel_protocol *p;
	const struct parallel_plan *plan;
	const struct parallel_scan *s; /* result of parallel_padded_scan() */
	int pad;		       /* zero bins added before and after each row of the caller */
	struct device *dev;
	struct session_memory memory; /* of a part */
	const struct monitor *monitor;
	enum parallel_work work;
	struct subsets views;
	double unit;	  /* power of two: data are multiplied and volumes divided by it (parallel_rule.c) */
	double data_mean; /* mean of the data times unit; for the rules */

	int n; /* number of slices for which the members below are allocated; 0: not allocated */
	struct grid grid;
	struct scan *scan;
	struct buf x, y;
	float *host;		    /* host memory of the device: the data or the volume in the device's order, one at a time */
	struct projection *a;	    /* NULL for PARALLEL_WORK_RULE, which uses operators */
	struct parallel_back *back; /* private to each kind of work */
	struct parallel_rows *rows;
	struct parallel_rule *rule;

	const float *lines;	  /* the caller's data */
	int first, done;	  /* first slice of the part; slices finished before */
	double sum_gap, sum_data; /* |A x - y|^2 and |y|^2 of the slices finished so far */
	double seconds_filter, seconds_iterate;
};

/* Allocate and free the memory for n slices; call parallel_views_make() before. */
int parallel_part_open(struct parallel_session *s, int n, struct err *err);
void parallel_part_release(struct parallel_session *s);

/* Copy from the caller's order to the device's. scale: a factor for each angle; NULL: s->unit for all. share: one for each bin of
 * the caller; NULL: 1 for all. */
void parallel_bins_in(const struct parallel_session *s, const double *scale, const double *share, float *ret_bins);
void parallel_volume_in(const struct parallel_session *s, const float *volume, float *ret_out);

/* Filter s->lines (not for BP), upload them, and backproject them into s->x. */
int parallel_back_run(struct parallel_session *s, struct err *err);

#endif
