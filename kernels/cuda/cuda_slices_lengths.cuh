/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the back pass of the slice-by-slice operator on the CUDA device, for a detector that stands still: A'd of RULE_EM
 * where all bins that touch a voxel are used. It is the sum of the weights times the length of the ray at their mean position,
 *
 *   scale * sqrt(square along x + square along y),
 *
 * where the squares are those of the distances from the source, and the height of the source belongs to x. Over the three bins of
 * an axis the length is linear but for BIN_ANGLE_MAX^2 / 4 of it. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_LENGTHS_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_LENGTHS_CUH

#include <float.h>

#include "kernels/cuda/cuda_slices_back.cuh"

#define BIN_ANGLE_MAX 1e-3 /* a bin over the height of the source: for an error below 3e-7 */

/* Return the position, along an axis relative to the source, of the first bin that touches the block, mm. */
static __device__ __forceinline__ float length_origin(const struct back_job &job, const struct scan_view *view,
						      const struct slice_axis &a, int axis)
{
	return (float)(job.scan.lo[axis] + view->shift[axis] + (a.base + 0.5) * job.scan.h[axis] - view->src[axis]);
}

/* Return the part along x, for the voxels of a lane, whose weights are x: the sum of the weights times the scale, and the square.
 * origin: length_origin(); height: of the source. */
static __device__ __forceinline__ float2 length_x(const struct back_job &job, const struct slice_axis &a, const float4 &x,
						  float origin, float height)
{
	const float sum = x.x + x.y + x.z;
	const float d = origin + (float)job.scan.h[0] * ((float)(__float_as_int(x.w) - a.base) +
							 __fdividef(fmaf(2, x.z, x.y), fmaxf(sum, FLT_MIN)));

	return make_float2(__fdividef(sum * (float)job.grid.h[2], height), fmaf(d, d, height * height));
}

/* Return the part along y: the sum of the weights, and the square. bin: counted from the first bin that touches the block;
 * moment: sum of the weights of bin + t times t. */
static __device__ __forceinline__ float2 length_y(const struct back_job &job, float origin, int bin, float sum, float moment)
{
	const float d = origin + (float)job.scan.h[1] * ((float)bin + __fdividef(moment, fmaxf(sum, FLT_MIN)));

	return make_float2(sum, d * d);
}

/* Add A'd of a view to the voxels of a thread. x, y: the parts. */
template <int ROWS> static __device__ __forceinline__ void add_lengths(const float2 x, const float2 y[ROWS], float den[ROWS])
{
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		den[r] = fmaf(x.x * y[r].x, cuda_sqrt(x.y + y[r].y), den[r]);
}

#endif
