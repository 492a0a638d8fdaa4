/* Private to the CPU's transaxial paths (kernels/paths.h): lanes of planes, and the loops that do the work.
 *
 * - The voxels of a path's steps are copied into a slab: a row for each step, in it the even slices and then the odd ones,
 *   each with zeros before and behind them. Planes that lie two slices apart then read neighbouring floats, and a ray that is
 *   beside the grid reads zeros.
 * - A lane is planes of a group two slices apart. In a step, they all have the same piece of it in their upper slice, so the
 *   list of a lane's entries (weight, place in the slab) is made once for all its planes. A step has an entry for the slice of
 *   the ray's high end, and one more where a part of it lies in the slice below.
 * - Forward: sums of a lane's planes += weight * slab; back: slab += weight * bins of the lane's planes.
 */
#ifndef TOMONODE_KERNELS_CPU_PATHS_H
#define TOMONODE_KERNELS_CPU_PATHS_H

#include "kernels/cpu/cpu.h"
#include "kernels/paths.h"

#define CPU_LANE_MOST 32   /* planes of a lane */
#define CPU_PATH_BLOCK 128 /* steps that are worked on at a time, at most */

/* Planes plane, plane + stride, ...; 2 slices apart. */
struct cpu_lane {
	int plane, stride, n;
	int width;	     /* floats that the loops work on: 1 or a multiple of 8 up to CPU_LANE_MOST */
	int base;	     /* slices, even */
	float z;	     /* of the first plane's rays in their middle, less half a slice, above base; slices */
	int lowest, highest; /* pairs of slices (even and odd) that its first plane's rays reach, from base; cut so that all of
				its planes are beside the grid beyond */
	int sums;	     /* where its sums lie among those of all lanes */
};

/* The rays of a lane's planes in one radial bin. With zs = z + slope t at the high end of a step, t in mm:
 * slice b = round(zs) has min(step, (zs - b) inv + rise) of the step, slice b - 1 the rest. */
struct cpu_ray {
	float slope;	 /* slices per mm */
	float inv, rise; /* mm per slice, half of it; a level ray: 0 and without end. Joseph: not used */
	float stretch;	 /* own length per length of path */
};

/* The slab: `row` floats from a step's row to the next, even slices at `front`, odd ones at front + half. */
struct cpu_slab {
	int row, half, front;
	int n_z;
};

/* One table per instruction set. */
struct cpu_path_loops {
	/* Entries of n steps that end (or whose middle is) at t and are `length` long: ret_weight and ret_place, room for 2 n
	 * + 16. Returns how many. */
	int (*split)(const struct cpu_slab *slab, const struct cpu_lane *lane, const struct cpu_ray *ray, const float *t,
		     const float *length, int n, float *ret_weight, int *ret_place);
	void (*forward)(float *sums, const float *slab, int width, const float *weight, const int *place, int n);
	void (*back)(float *slab, const float *bins, int width, const float *weight, const int *place, int n);
	/* row = (1 - share) column + share other; other NULL: column. */
	void (*gather)(const struct cpu_slab *slab, float *row, const float *column, const float *other, float share);
	/* column += weight row */
	void (*scatter)(const struct cpu_slab *slab, const float *row, float weight, float *column);
	/* Between a lane's own floats, as wide as it is, and the bins of its planes; `bins` is that of its first plane. */
	void (*take)(const struct cpu_lane *lane, float stretch, const float *bins, float *ret);
	void (*put)(const struct cpu_lane *lane, float stretch, const float *sums, bool add, float *bins);
};

extern const struct cpu_path_loops baseline_paths, avx2_paths, avx512_paths;

struct cpu_paths {
	struct path *path;	/* n_views * n_v */
	struct path_step *step; /* what they point into */
	int n_lanes;
	struct cpu_lane *lane;
	struct cpu_ray *ray; /* n_v * n_lanes */
	struct cpu_slab slab;
	int block; /* steps that are worked on at a time: rows of the slab */
	int sums;  /* floats of the sums of all lanes */
	int tile;  /* pixels of a unit of work of the back pass, either way */
};

#endif
