/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the back pass of the slice-by-slice operator on the CUDA device, for a detector that stands still: weights and
 * lengths that the threads of a block share. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_WEIGHTS_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_WEIGHTS_CUH

#include <float.h>

#include "kernels/cuda/cuda_slices_back.cuh"

/* Data that the lanes and the warps of a block share in one step. */
template <int TAPS> struct back_step {
	float4 x[SLICES_LANES];	      /* from weigh_lane() */
	float4 y[SLICES_WARPS][TAPS]; /* BACK_ROWS times TAPS weights */
	int v[SLICES_WARPS];	      /* first row of bins; -1: some are outside the detector */
	struct slice_axis axis[2];
};

/* The same for BACK_PLANES: where all bins that touch the block's voxels are used, A'd is the sum of the weights times the length
 * of the ray at their mean position, scale * sqrt(square along x + square along y). Over the three bins of an axis the length is
 * linear but for BIN_ANGLE_MAX^2 / 4 of it. */
struct back_length {
	float2 x[SLICES_LANES];		   /* sum of the weights times scale, square */
	float2 y[SLICES_WARPS][BACK_ROWS]; /* sum of the weights, square */
	float origin[2];		   /* length_origin() of both axes */
	float height;			   /* of the source */
	bool known;
};

template <int TAPS> struct back_plane_step : back_step<TAPS> {
	struct back_length length;
};

#define BIN_ANGLE_MAX 1e-3 /* a bin over the height of the source: for an error below 3e-7 */

static __device__ __forceinline__ int first_row(const struct slice_axis &a, int d)
{
	return a.base + first_tap(a, d);
}

template <int TAPS>
static __device__ __forceinline__ void weigh_warp(const struct back_job &job, struct back_step<TAPS> &step, int warp)
{
	const struct slice_axis a = step.axis[1];
	int d = warp * BACK_ROWS, m = first_tap(a, d), v = a.base + m;

	step.v[warp] = v >= 0 && v + back_taps<TAPS>::rows <= job.scan.n_v ? v : -1;
#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++)
#pragma unroll
		for (int t = 0; t < TAPS; t++)
			reinterpret_cast<float *>(step.y[warp])[r * TAPS + t] = hat(a, m + r + t, d + r);
}

/* Return the position, along an axis relative to the source, of the first bin that touches the block, mm. */
static __device__ __forceinline__ float length_origin(const struct back_job &job, const struct scan_view *view,
						      const struct slice_axis &a, int axis)
{
	return (float)(job.scan.lo[axis] + view->shift[axis] + (a.base + 0.5) * job.scan.h[axis] - view->src[axis]);
}

/* Return back_length.x of the voxels of a lane, whose weights are x. origin: length_origin(); height: of the source. */
static __device__ __forceinline__ float2 length_x(const struct back_job &job, const struct slice_axis &a, const float4 &x,
						  float origin, float height)
{
	const float sum = x.x + x.y + x.z;
	const float d = origin + (float)job.scan.h[0] * ((float)(__float_as_int(x.w) - a.base) +
							 __fdividef(fmaf(2, x.z, x.y), fmaxf(sum, FLT_MIN)));

	return make_float2(__fdividef(sum * (float)job.grid.h[2], height), fmaf(d, d, height * height));
}

/* Return back_length.y of the voxels at place n along y. */
static __device__ __forceinline__ float2 length_y(const struct back_job &job, const struct slice_axis &a, int n, float origin)
{
	const int m = first_tap(a, n), v = a.base + m;
	float w[3], sum, d;

#pragma unroll
	for (int t = 0; t < 3; t++)
		w[t] = (unsigned)(v + t) < (unsigned)job.scan.n_v ? hat(a, m + t, n) : 0;
	sum = w[0] + w[1] + w[2];
	d = origin + (float)job.scan.h[1] * ((float)m + __fdividef(fmaf(2, w[2], w[1]), fmaxf(sum, FLT_MIN)));
	return make_float2(sum, d * d);
}

static __device__ __forceinline__ void add_lengths(const struct back_length &length, int lane, int warp, float den[BACK_ROWS])
{
	const float2 x = length.x[lane];

#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++)
		den[r] = fmaf(x.x * length.y[warp][r].x, cuda_sqrt(x.y + length.y[warp][r].y), den[r]);
}

#endif
