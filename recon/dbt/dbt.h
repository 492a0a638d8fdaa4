/* SPDX-License-Identifier: Apache-2.0 */
/* The DBT pipeline: from line integrals to a volume of attenuation.
 *
 * dbt_plan() determines grid, binning, subsets, memory and, if the volume does not fit, slabs, before anything is allocated; its
 * error messages give the numbers. A session executes the plan: put views in any order from any thread, run, read slices. Results
 * depend only on the arguments (bitwise with protocol.deterministic). */
#ifndef TOMONODE_RECON_DBT_H
#define TOMONODE_RECON_DBT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"
#include "recon/core/algorithm.h"
#include "recon/core/monitor.h"
#include "recon/core/plan.h"
#include "recon/core/scan.h"
#include "recon/dbt/breast_shape.h"
#include "recon/dbt/metal.h"

/* Filter of filtered backprojection, along the path of the source. */
enum dbt_filter {
	DBT_FILTER_RAMP = 1,
	DBT_FILTER_HANN, /* ramp times a Hann window that reaches 0 at filter_cut of the Nyquist frequency */
};

/* What is done about clips and markers. */
enum dbt_metal {
	DBT_METAL_OFF = 0,
	DBT_METAL_REDUCE, /* recon/dbt/metal.h */
};

/* A protocol, as configured (conf/ documents units, defaults and ranges of each key). */
struct dbt_protocol {
	enum algorithm algorithm; /* dbt_supports() must be true */
	int iterations;		  /* ignored by BP and FBP */
	int subsets;		  /* 0: one per projection; ignored by MLEM, MLTR, BP, FBP */
	double relaxation;	  /* SART, 0 < relaxation < 2 */
	bool normalise_rows;   /* OSEM, MLEM: use the matrix of the seed thesis, every row divided by its sum; for comparison only
				*/
	enum prior_kind prior; /* OSEM, MLEM, OSTR, MLTR: the penalty (kernels/prior.h) */
	double prior_weight;   /* beta, relative to the sensitivity; 0: no penalty */
	double prior_gamma;    /* PRIOR_RELATIVE: gamma */
	double prior_across;   /* factor of the weights between slices, 0 to 1 */
	enum dbt_filter filter;
	double filter_cut;    /* fraction of the Nyquist frequency, 0 < cut <= 1 */
	double edge_taper;    /* mm at the ends of a view that cut the object: recon/dbt/field_edges.h; 0: all bins count fully */
	double voxel;	      /* in-plane voxel, mm; less than 0.9 of the detector's pitch, or 0: the pitch */
	double slice_spacing; /* mm */
	enum projection_model projector;
	bool scatter;	      /* subtract scattered radiation from the projections (recon/dbt/scatter.h) */
	bool breast_mask;     /* do not reconstruct voxels that a projection shows as air (recon/dbt/breast_mask.h) */
	bool breast_shape;    /* begin with the breast's shape, if it is found (recon/dbt/breast_shape.h); not FBP and BP */
	bool skin_edge;	      /* soften the edge of the skin in the projections (recon/dbt/skin_edge.h); OSEM, MLEM, OSTR, MLTR */
	enum dbt_metal metal; /* leave out the shadows of metal, and put it back */
	int tile[2];	      /* size of a tile, detector bins; 0: untiled */
	size_t memory_limit;  /* bytes on the device; 0: the device's memory */
	bool deterministic;
};

/* Return whether tomosynthesis can be reconstructed with a: osem, mlem, ostr, mltr, sart, bp, fbp, and any other algorithm that
 * uses their update rules. */
bool dbt_supports(enum algorithm a);

struct dbt_plan {
	struct grid grid;
	int bin;	       /* bin * bin detector bins are merged into one before the log */
	int n_u, n_v, n_views; /* number of merged bins along u and v, and of projections */
	int subsets;
	int slab_slices;	 /* slices on the device at a time, copied from host memory; grid.n[2]: the whole volume */
	int group_views;	 /* views of a subset that are processed together; 0: all of the subset */
	struct plan_bytes bytes; /* data: projections; tables: with the memory of the iteration */
	int tile[2];
	bool keep_den; /* the device may keep A'd from the first iteration on: projection_spec.keep_den */
};

/* Plan a reconstruction. `detector`: the scan at the detector's full resolution. The volume covers the detector in x and y, and
 * in z ceil(thickness / slice_spacing) slices from z = support (top of the breast support above the detector plane), mm. */
int dbt_plan(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness, struct device *dev,
	     struct dbt_plan *ret_plan, struct err *err);

struct dbt_report {
	double seconds_setup, seconds_iterate;
	double sum_data, sum_model; /* sum of y and of A x over valid bins, after the last iteration of MLEM (equal in theory), if
				       the volume is on the device and no weight is reduced; else 0 */
	struct breast_shape_report shape; /* of the start image */
	struct metal_report metal;
};

struct dbt_session;

/* Open a session; allocates all the memory that it uses. p, plan, detector, dev are borrowed until dbt_close(). */
int dbt_open(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector, struct device *dev,
	     struct dbt_session **ret_session, struct err *err);
struct dbt_session *dbt_close(struct dbt_session *s); /* accepts NULL; returns NULL */

/* dbt_view_begin() returns two buffers for one view (0 .. n_views - 1) of n_v * n_u floats each: line integrals (mu * mm, >= 0)
 * and validity (1: datum, 0: no datum, -1: air). The caller fills both and calls dbt_view_end(), which starts the transfer to the
 * device. Both may be called from any thread, for several views at a time; dbt_view_begin() waits while all staging buffers are
 * in use. Pass each view exactly once, or withdraw it first. If dbt_view_end() fails (EINVAL: a valid bin is negative or not a
 * number), the session returns to its state before dbt_view_begin(). */
int dbt_view_begin(struct dbt_session *s, int view, float **ret_line, float **ret_valid, struct err *err);
int dbt_view_end(struct dbt_session *s, int view, struct err *err);
/* Withdraw a view that was received, so that it can be passed again. */
int dbt_view_withdraw(struct dbt_session *s, int view, struct err *err);

/* Begin with a uniform image although the protocol has breast_shape, because of what the caller knows of the object: a clause for the
 * report. Before dbt_run(). */
void dbt_forgo_shape(struct dbt_session *s, const char *reason);

/* Reconstruct. Call it once, after all views, from the thread that owns the device. ECANCELED: the monitor has cancelled. */
int dbt_run(struct dbt_session *s, const struct monitor *monitor, struct dbt_report *ret_report, struct err *err);
/* Instead of dbt_run(): take a volume that another program has computed as the result, [z][y][x] on the grid of the plan, 1/mm. It
 * is copied. EINVAL: there is a result already. */
int dbt_take(struct dbt_session *s, const float *volume, struct err *err);
/* Replace the result's slices [first, first + n): what is read afterwards, and tallies, are of the new values. They are copied. The
 * same thread as dbt_read_slices(). */
int dbt_replace_slices(struct dbt_session *s, int first, int n, const float *slices, struct err *err);

/* Copy the result's slices [first, first + n), 1/mm, x fastest, into the caller's memory. Only after dbt_run(), from one thread
 * at a time. Reading in order is fastest: the next slices are already being transferred from the device. */
int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err);
/* The same for slice k in its stored form (columns: n[0], rows: n[1] of the grid), which the device computes: less is transferred
 * and nothing remains to be converted. */
int dbt_read_stored(struct dbt_session *s, int k, const struct stored_form *form, uint16_t *ret_values, struct err *err);
/* Compute histogram and counts of the stored values round((mu - offset) / step), see tally() in kernels/device.h. */
int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err);
/* Add to a histogram the stored values of voxels more than `depth` mm inside the breast (recon/dbt/inside.h), of slices that are
 * evenly distributed over the volume. Needs memory for a slice. */
int dbt_tally_inside(struct dbt_session *s, double offset, double step, double depth, uint64_t bins[65536], size_t *ret_counted,
		     struct err *err);

#endif
