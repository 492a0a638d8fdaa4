/* The DBT pipeline: from line integrals to a volume of attenuation.
 *
 * dbt_plan() decides grid, binning, subsets and memory before anything is allocated and refuses with numbers;
 * dbt_reconstruct() carries the plan out. Both are deterministic functions of their arguments.
 */
#ifndef TOMONODE_RECON_DBT_H
#define TOMONODE_RECON_DBT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"
#include "recon/monitor.h"
#include "recon/scan.h"

enum dbt_algorithm {
	DBT_OSEM = 1, /* Hudson & Larkin 1994 on log data; MLEM is one subset */
	DBT_MLEM,     /* Shepp & Vardi 1982 on log data */
};

/* A protocol, as configured (conf/ documents units, defaults and ranges of each key). */
struct dbt_protocol {
	enum dbt_algorithm algorithm;
	int iterations;
	int subsets;	      /* 0: one per projection; ignored by MLEM */
	double voxel;	      /* in-plane voxel, mm; 0: the detector's own pitch */
	double slice_spacing; /* mm */
	enum projection_model projector;
	int tile[2];	     /* bins; 0: untiled */
	size_t memory_limit; /* bytes on the device; 0: all it has */
	bool deterministic;
};

struct dbt_plan {
	struct grid grid;
	int bin;	       /* detector bins merged per axis before the log */
	int n_u, n_v, n_views; /* of the binned projections */
	int subsets;
	size_t bytes_volume, bytes_projections, bytes_work, bytes_total; /* on the device */
	int tile[2];
};

/* `detector`: the scan at the detector's own resolution. The volume covers the detector in x and y, and in z
 * ceil(thickness / slice_spacing) slices from z = support (top of the breast support above the detector plane), mm. */
int dbt_plan(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness, struct device *dev,
	     struct dbt_plan *ret_plan, struct err *err);

struct dbt_report {
	double seconds_setup, seconds_iterate, seconds_download;
	double sum_data,
		sum_model; /* sum of y and of A x over bins that count, after the last sub-iteration of an MLEM; 0 otherwise */
};

/* line, valid: n_views * n_v * n_u floats in the detector scan's view order: line integrals (mu * mm, >= 0) and 1 or 0.
 * ret_volume: grid_size() floats, attenuation in 1/mm. Host memory, the caller's. ECANCELED when the monitor says so. */
int dbt_reconstruct(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector, struct device *dev,
		    const float *line, const float *valid, const struct monitor *monitor, float *ret_volume,
		    struct dbt_report *ret_report, struct err *err);

#endif
