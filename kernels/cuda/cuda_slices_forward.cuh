/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the forward pass of the slice-by-slice operator on the CUDA device: code that its kernels share. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_FORWARD_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_FORWARD_CUH

#include <cuda.h>

#include "kernels/cuda/cuda_slices.cuh"

struct forward_job {
	struct scan scan;
	struct grid grid;
	struct cuda_tiling tiling;
	const struct scan_view *views;
	const struct slice_map *maps;
	int strip_rows, strips, n_views;
	const float *mask, *x, *y, *row;
	float *out;
	struct bin_planes planes; /* q NULL: pairs, or line integrals */
	bool add, pairs;
	struct rule rule;
};

/* Store what the sum of a bin's slices, without the ray's length, results in. counts: whether the bin is used. */
static __device__ __forceinline__ void finish_bin(const struct forward_job &job, int view, int u, int v, bool counts, float sum)
{
	size_t at = (size_t)view * scan_view_size(&job.scan) + (size_t)v * job.scan.n_u + u;
	float length = counts ? cuda_slice_length(&job.scan, job.views + view, &job.grid, u, v) : 0;
	struct rule_pair pair = {0, 0};

	sum *= length;
	if (!job.pairs) {
		job.out[at] = job.add ? job.out[at] + sum : sum; /* the length, and so the sum, is 0 if the bin is not used */
		return;
	}
	if (counts)
		pair = rule_bin(&job.rule, job.y[at], sum, job.row ? job.row[at] : 0);
	if (job.planes.q) {
		job.planes.q[at] = pair.q * length;
		job.planes.d[at] = pair.d * length;
	} else {
		reinterpret_cast<float2 *>(job.out)[at] = make_float2(pair.q * length, pair.d * length);
	}
}

/* Return the planes with cells of `rows` rows. */
static inline struct bin_planes bin_planes_cells(struct bin_planes planes, const struct projection *a, int rows)
{
	planes.log2_rows = rows == 8 ? 3 : rows == 4 ? 2 : 0;
	planes.cells[0] = (a->scan.n_u + BIN_CELL - 1) / BIN_CELL;
	planes.cells[1] = (a->scan.n_v + rows - 1) / rows;
	return planes;
}

/* Return whether a block of cuda_slices_forward_boxes.cu can compute this scan, and set *ret_map for volume x. */
bool forward_boxes_fit(const struct projection *a, const float *x, CUtensorMap *ret_map);
/* Start it; job: all members but tiling, n_views and planes. */
int forward_boxes_start(struct projection *a, struct forward_job *job, const CUtensorMap *map, struct bin_planes *planes,
			struct err *err);

#endif
