/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU device: lanes of planes, and the inner loops of the transaxial paths (kernels/paths.h).
 *
 * - The voxels of a path's steps are copied into a slab: one row per step with the even slices, then the odd ones, each padded
 *   with zeros on both sides. Planes that are two slices apart then read adjacent floats, and a ray outside the grid reads zeros.
 * - A lane consists of planes of a group that are two slices apart. In a step all of them have the same share in their upper
 *   slice, so one list of entries (weight, place in the slab) serves all planes of a lane. A step has one entry for the slice in
 *   which the ray's upper end is, and a second one if part of the step is in the slice below.
 * - Forward: sums of a lane's planes += weight * slab. Back: slab += weight * bins of the lane's planes. */
#ifndef TOMONODE_KERNELS_CPU_PATHS_H
#define TOMONODE_KERNELS_CPU_PATHS_H

#include "kernels/cpu/cpu.h"
#include "kernels/paths.h"

#define CPU_LANE_MOST 32   /* largest number of planes of a lane */
#define CPU_PATH_BLOCK 128 /* largest number of steps processed together */
#define CPU_TOF_BINS 8	   /* largest number of TOF bins processed together */

/* The planes plane, plane + stride, ..., which are 2 slices apart. */
struct cpu_lane {
	int plane, stride, n;
	int width; /* number of floats that the loops process: 1, or n rounded up to a multiple of 8, at most CPU_LANE_MOST */
	int base;  /* slice index, even */
	float z;   /* height of the first plane's rays at their middle, minus one half, relative to base; slices */
	int lowest, highest; /* range of slice pairs (even and odd), relative to base, that the rays of the first plane reach.
				Limited to the range in which a plane of the lane can be inside the grid */
	int sums;	     /* index of the lane's first sum in the array of the sums of all lanes, divided by the number of TOF
				bins; the sums of a TOF bin are contiguous */
};

/* The rays of a lane's planes in one radial bin. With zs = z + slope t at the upper end of a step, t in mm: min(step, (zs - b)
 * inv + rise) of the step's length is in slice b = round(zs), the rest is in slice b - 1. */
struct cpu_ray {
	float slope;	 /* slices per mm */
	float inv, rise; /* mm per slice, and half of that; for a ray without slope 0 and 1e30. Not used with JOSEPH */
	float stretch;	 /* length of the ray per length of path */
};

/* The slab: rows of `row` floats, one per step; even slices start at `front`, odd ones at front + half. */
struct cpu_slab {
	int row, half, front;
	int n_z;
};

/* Time of flight: windows and their weights; see kernels/cpu/cpu_tof.h. */
struct cpu_tof {
	int n;	       /* TOF bins; 0: no time of flight */
	int window;    /* number of bins of a window */
	int row;       /* length of a row of weights, floats: window rounded up to a multiple of 8 */
	double per_mm; /* the distribution of a point at t mm along the ray ends at per_mm t + offset, in bins from the lower edge
			  of bin 0, */
	double offset; /* plus window, so that no value is negative where a window is needed */
	float per_bin; /* rows of the table per bin */
	float last;    /* position of the last row that is interpolated; the rows after it are the same */
	float *weight; /* the table */
};

/* A run of a lane: adjacent steps with the same window. Step i has the entry (weight[i], place[i]) and, if length[i] > weight[i],
 * a second one: the rest of its length, at the next of second_place. */
struct cpu_run {
	int n;	   /* steps */
	int width; /* of the lane */
	const float *length, *weight;
	const int *place, *second_place;
	const float *bin; /* weights of the TOF bins; those of step i start at i row */
	int row, bins;	  /* bins: how many of them, 1 to CPU_TOF_BINS */
};

/* One table per instruction set. */
struct cpu_path_loops {
	/* Compute the entries of n steps of `length` mm with their end (JOSEPH: middle) at t, mm. ret_weight and ret_place:
	 * arrays of 2 n + 16 elements. Return the number of entries. */
	int (*split)(const struct cpu_slab *slab, const struct cpu_lane *lane, const struct cpu_ray *ray, const float *t,
		     const float *length, int n, float *ret_weight, int *ret_place);
	void (*forward)(float *sums, const float *slab, int width, const float *weight, const int *place, int n);
	void (*back)(float *slab, const float *bins, int width, const float *weight, const int *place, int n);
	/* row = (1 - share) column + share other; if other is NULL: row = column */
	void (*gather)(const struct cpu_slab *slab, float *row, const float *column, const float *other, float share);
	/* column += weight row */
	void (*scatter)(const struct cpu_slab *slab, const float *row, float weight, float *column);
	/* load_bins(): copy the bins of a lane's planes, times `stretch`, to `width` contiguous floats. store_bins(): write the
	 * lane's sums, times `stretch`, to the bins of its planes, or add them. `bins` points to the bin of the first plane. */
	void (*load_bins)(const struct cpu_lane *lane, float stretch, const float *bins, float *ret);
	void (*store_bins)(const struct cpu_lane *lane, float stretch, const float *sums, bool add, float *bins);
	/* Compute the windows of n points at t on the path, mm: their first bins, and rows of weights. */
	void (*tof_windows)(const struct cpu_tof *tof, const float *t, float stretch, int n, int *ret_first, float *ret_weight);
	/* As forward() and back(), for a run and a few of its TOF bins. Return the second_place after those used. */
	const int *(*tof_forward)(const struct cpu_run *run, const float *slab, float *sums);
	const int *(*tof_back)(const struct cpu_run *run, const float *sums, float *slab);
};

extern const struct cpu_path_loops baseline_paths, avx2_paths, avx512_paths;

struct cpu_paths {
	struct path *path;	/* n_views * n_v elements */
	struct path_step *step; /* the steps of all paths */
	int n_lanes;
	struct cpu_lane *lane;
	struct cpu_ray *ray; /* n_v * n_lanes elements */
	struct cpu_slab slab;
	int block; /* number of steps of a path that are processed together; the slab has a row for each */
	int sums;  /* length of the sums of all lanes, floats */
	int tile;  /* edge of a tile of the back pass, pixels */
	struct cpu_tof tof;
};

/* The working memory of one thread. */
struct cpu_work {
	float *slab;
	float *weight; /* entries of a lane */
	int *place;
	float *t, *length; /* end and length of the steps of a block, mm; t[0] is the beginning of the first step */
	float *sums;	   /* sums of all lanes */
	/* the members below: only with time of flight */
	float *middle; /* of the steps of a block, mm */
	int *first;    /* bin of each step's window */
	float *bin;    /* weights of each step's window */
};

#endif
