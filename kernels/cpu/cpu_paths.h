/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU's transaxial paths (kernels/paths.h): lanes of planes, and the inner loops.
 *
 * - The voxels of a path's steps are copied into a slab: one row per step with the even slices, then the odd ones, each padded
 *   with zeros on both sides. Planes that are two slices apart then read adjacent floats, and a ray outside the grid reads zeros.
 * - A lane consists of planes of a group that are two slices apart. In a step all of them have the same share in their upper
 *   slice, so one list of entries (weight, place in the slab) serves all planes of a lane. A step has an entry for the slice of
 *   the ray's upper end, and one more if part of the step is in the slice below.
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
	int width;	     /* floats that the loops process: 1 or a multiple of 8 up to CPU_LANE_MOST */
	int base;	     /* slice index, even */
	float z;	     /* of the first plane's rays at their middle, minus half a slice, relative to base; slices */
	int lowest, highest; /* range of slice pairs (even and odd), relative to base, that its first plane's rays reach; limited
				so that all its planes are outside the grid beyond it */
	int sums;	     /* index of its sums among those of all lanes */
};

/* The rays of a lane's planes in one radial bin. With zs = z + slope t at the upper end of a step, t in mm: slice b = round(zs)
 * has min(step, (zs - b) inv + rise) of the step, slice b - 1 the rest. */
struct cpu_ray {
	float slope;	 /* slices per mm */
	float inv, rise; /* mm per slice, half of that; 0 and infinite for a ray without slope. Not used with JOSEPH */
	float stretch;	 /* length of the ray per length of path */
};

/* The slab: rows of `row` floats, one per step; even slices start at `front`, odd ones at front + half. */
struct cpu_slab {
	int row, half, front;
	int n_z;
};

/* One table per instruction set. */
struct cpu_path_loops {
	/* Compute the entries of n steps of `length` mm with their end (JOSEPH: middle) at t, mm. ret_weight and ret_place: room
	 * for 2 n + 16. Return the number of entries. */
	int (*split)(const struct cpu_slab *slab, const struct cpu_lane *lane, const struct cpu_ray *ray, const float *t,
		     const float *length, int n, float *ret_weight, int *ret_place);
	void (*forward)(float *sums, const float *slab, int width, const float *weight, const int *place, int n);
	void (*back)(float *slab, const float *bins, int width, const float *weight, const int *place, int n);
	/* row = (1 - share) column + share other; if other is NULL: row = column */
	void (*gather)(const struct cpu_slab *slab, float *row, const float *column, const float *other, float share);
	/* column += weight row */
	void (*scatter)(const struct cpu_slab *slab, const float *row, float weight, float *column);
	/* Copy between a lane's `width` contiguous floats and the bins of its planes; `bins` points to the bin of its first
	 * plane. */
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
	int block; /* steps processed together: rows of the slab */
	int sums;  /* length of the sums of all lanes, floats */
	int tile;  /* edge of a tile of the back pass, pixels */
};

#endif
