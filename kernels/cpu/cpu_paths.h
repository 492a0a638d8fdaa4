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

/* The planes plane, plane + stride, ..., which are 2 slices apart. */
struct cpu_lane {
	int plane, stride, n;
	int width; /* number of floats that the loops process: 1, or n rounded up to a multiple of 8, at most CPU_LANE_MOST */
	int base;  /* slice index, even */
	float z;   /* height of the first plane's rays at their middle, minus one half, relative to base; slices */
	int lowest, highest; /* range of slice pairs (even and odd), relative to base, that the rays of the first plane reach.
				Limited to the range in which a plane of the lane can be inside the grid */
	int sums;	     /* index of the lane's first sum in the array of the sums of all lanes */
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
};

#endif
