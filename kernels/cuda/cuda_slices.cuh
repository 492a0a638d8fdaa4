/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the slice-by-slice operator on the CUDA device: code that its forward and its back pass share. Positions: a block of
 * threads computes results that are close together. The position of the first result among the inputs is computed in double and
 * split into an index and a fraction. The positions of the others are computed from it in float: result d is at distance d + bend
 * * d, with bend = scale - 1, which is small if bins and voxels have about the same size. The error is about 1e-7 of a voxel, at
 * column 3584 as at column 0. Both directions compute a weight from the same sum, so the adjoint is exact except for that
 * rounding. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_CUH

#include "kernels/cuda/cuda.cuh"

#define SLICES_LANES 32 /* results of a block along x: a warp */
#define SLICES_WARPS (CUDA_THREADS / SLICES_LANES)

/* Range of the scale (voxels per bin) for which the fast kernels are valid: at most 3 bins touch a voxel along an axis, and the
 * position of the next result is at most one input further. */
#define SLICES_SCALE_MIN (2.0 / 3 + 1e-6)
#define SLICES_SCALE_MAX (1.0 + 1e-9)
#define SLICES_TURNING_MAX 1.1 /* along y, for a detector that turns: its rows are further apart where it leans to the source */

/* One axis of one slice in one view, relative to a block of results. */
struct slice_axis {
	float first, bend;
	int base;
};

/* Forward: bin first + d is at voxel position base + d + (first + bend d). */
static inline __device__ struct slice_axis slice_axis_forward(const struct slice_map *map, int axis, int first_bin)
{
	double at = fma(map->scale[axis], (double)first_bin, map->shift[axis]), base = floor(at);
	struct slice_axis s = {(float)(at - base), (float)(map->scale[axis] - 1), (int)base};

	return s;
}

/* Back: bin base + n is at position (first + bend n) + n relative to voxel first_voxel; base is the first bin that touches it. */
static inline __device__ struct slice_axis slice_axis_back(const struct slice_map *map, int axis, int first_voxel)
{
	double base = slice_first_bin(map, axis, first_voxel);
	struct slice_axis s = {(float)(fma(map->scale[axis], base, map->shift[axis]) - first_voxel),
			       (float)(map->scale[axis] - 1), (int)base};

	return s;
}

/* Return whether the fast kernels are valid for these scales along y up to largest_y. */
static inline bool slices_fast(const struct projection *a, double largest_y)
{
	return a->scale_min[0] > SLICES_SCALE_MIN && a->scale_min[1] > SLICES_SCALE_MIN && a->scale_max[0] < SLICES_SCALE_MAX &&
	       a->scale_max[1] < largest_y;
}

/* Return whether all results are in one tile. */
static inline bool projection_one_tile(const struct projection *a)
{
	return (a->tile[0] <= 0 || a->tile[0] >= a->scan.n_u) && (a->tile[1] <= 0 || a->tile[1] >= a->scan.n_v);
}

/* Return the planes in memory for the pairs of all bins; their cells are not set. */
static inline struct bin_planes bin_planes_in(const struct projection *a, float *pairs)
{
	return {pairs, pairs + (size_t)a->n_views * scan_view_size(&a->scan), a->full};
}

static inline __device__ bool bin_counts(const float *mask, size_t i)
{
	return !mask || mask[i] > 0;
}

/* The tile of results of this block, and the block's first result. Blocks of a tile are consecutive. */
struct slice_place {
	int first[2]; /* the block's first result */
	int end[2];   /* end of the tile */
};

static inline __device__ struct slice_place slice_place_of(const struct cuda_tiling *t, long long block, int per_block_x,
							   int per_block_y, int n_x, int n_y)
{
	int in_tile = t->blocks[0] * t->blocks[1], b = (int)(block % in_tile);
	long long tile = block / in_tile;
	int tx = (int)(tile % t->tiles[0]) * t->size[0], ty = (int)(tile / t->tiles[0]) * t->size[1];
	struct slice_place p = {{tx + b % t->blocks[0] * per_block_x, ty + b / t->blocks[0] * per_block_y},
				{min(tx + t->size[0], n_x), min(ty + t->size[1], n_y)}};

	return p;
}

/* Divide n_x by n_y results into tiles of tile[0] by tile[1] (0: one tile). */
static inline struct cuda_tiling cuda_tiling_make(const int tile[2], int n_x, int n_y, int per_block_x, int per_block_y)
{
	int n[2] = {n_x, n_y}, per_block[2] = {per_block_x, per_block_y};
	struct cuda_tiling t;

	for (int c = 0; c < 2; c++) {
		t.size[c] = tile[c] > 0 && tile[c] < n[c] ? tile[c] : n[c];
		t.tiles[c] = (n[c] + t.size[c] - 1) / t.size[c];
		t.blocks[c] = (t.size[c] + per_block[c] - 1) / per_block[c];
	}
	return t;
}

static inline long long cuda_tiling_blocks(const struct cuda_tiling *t)
{
	return (long long)t->tiles[0] * t->tiles[1] * t->blocks[0] * t->blocks[1];
}

#endif
