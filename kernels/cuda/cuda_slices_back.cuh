/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the back pass of the slice-by-slice operator on the CUDA device: code that the kernels for a detector that stands
 * still and for one that turns share. A thread computes BACK_ROWS voxels that are adjacent along y, a lane the voxels at one
 * place along x. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_BACK_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_BACK_CUH

#include <cuda.h>

#include "kernels/cuda/cuda_slices.cuh"

#define BACK_ROWS 4

/* BACK_UPDATE_EM: RULE_EM without negative values. BACK_PLANES: the same, with the bins in planes. */
enum back_mode { BACK_ADJOINT, BACK_SUMS, BACK_UPDATE, BACK_UPDATE_EM, BACK_PLANES };

struct back_job {
	struct scan scan;
	struct grid grid;
	struct cuda_tiling tiling;
	const struct scan_view *views;
	const struct slice_map *maps;
	int strip_rows, strips;
	int n_views;
	int slices, parts;	   /* slices of a block; number of blocks among which the slices of a column are divided */
	const float *mask, *plain; /* BACK_ADJOINT: the bins, unchanged */
	struct bin_planes planes;  /* BACK_PLANES */
	const float2 *pair;	   /* the other modes */
	float *num, *den;	   /* BACK_ADJOINT and BACK_UPDATE: num is the volume */
	bool add;
	struct rule rule;
};

template <int MODE>
static __device__ __forceinline__ float2 load_bin(const struct back_job &job, const struct scan_view *view, size_t at, int u,
						  int v)
{
	if (MODE == BACK_PLANES)
		return make_float2(__ldg(job.planes.q + at), __ldg(job.planes.d + at));
	if (MODE != BACK_ADJOINT)
		return __ldg(job.pair + at);
	if (!bin_counts(job.mask, at))
		return make_float2(0, 0);
	return make_float2(job.plain[at] * cuda_slice_length(&job.scan, view, &job.grid, u, v), 0);
}

/* rule_voxel() of RULE_EM without negative values, in fewer instructions. `den` above the floor is a normal number. */
static __device__ __forceinline__ float em_voxel(float floor, float x, float num, float den)
{
	float inverse;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(den));
	return (x != 0) & (den > floor) ? fmaxf(x * (num * inverse), RULE_TINY) : x;
}

template <int MODE>
static __device__ __forceinline__ void store_voxel(const struct back_job &job, size_t at, float old, float num, float den)
{
	if (MODE == BACK_ADJOINT) {
		job.num[at] = job.add ? job.num[at] + num : num;
	} else if (MODE == BACK_SUMS) {
		job.num[at] = job.add ? job.num[at] + num : num;
		job.den[at] = job.add ? job.den[at] + den : den;
	} else if (MODE == BACK_UPDATE_EM || MODE == BACK_PLANES) {
		__stcs(job.num + at, em_voxel(job.rule.voxel_floor, old, num, den));
	} else {
		__stcs(job.num + at, rule_voxel(&job.rule, old, num, den));
	}
}

/* TAPS: largest number of bins along y that touch a voxel; rows: that of rows of bins that touch BACK_ROWS voxels, floor(5 /
 * scale) + 1. Rows r .. r + TAPS - 1, counted from the first one, touch voxel r. */
template <int TAPS> struct back_taps {
	static constexpr int rows = TAPS == 3 ? 6 : TAPS == 4 ? 7 : 8; /* for scales of at least 5/6, 5/7, 2/3 */
};

static __device__ __forceinline__ float hat_weight(const struct slice_axis &a, int n, int d)
{
	return fmaxf(1 - fabsf(fmaf(a.bend, (float)n, a.first) + (n - d)), 0);
}

/* Return the first bin, relative to the block's first, that touches voxel d. A bin whose weight is as small as the rounding error
 * may be missed. Never below 0: a box of bins begins at the block's first bin. */
static __device__ __forceinline__ int first_tap(const struct slice_axis &a, int d)
{
	return max((int)ceilf(__fdividef(d - 1 - a.first, 1 + a.bend)), 0);
}

/* Return the weights of a lane along x: of three bins, and the index of the first one (the bits of an int). */
static __device__ __forceinline__ float4 weigh_lane(const struct back_job &job, const struct slice_axis a, int lane)
{
	int u = min(max(a.base + first_tap(a, lane), 0), job.scan.n_u - 3), n = u - a.base;

	return make_float4(hat_weight(a, n, lane), hat_weight(a, n + 1, lane), hat_weight(a, n + 2, lane), __int_as_float(u));
}

enum gather_rows { GATHER_ONE, GATHER_TWO, GATHER_EDGE };

/* Gather for a warp from the rows of bins v, v + 1, and so on. first, second: weights along x of the rows before `split`, and of
 * the others unless GATHER_ONE. Rows outside the detector need GATHER_EDGE and the weight 0. */
template <int TAPS, int MODE, enum gather_rows ROWS>
static __device__ __forceinline__ void gather_values(const struct back_job &job, int view, const float4 &first,
						     const float4 &second, int split, const float4 y[TAPS], int v,
						     float num[BACK_ROWS], float den[BACK_ROWS])
{
	float wy[BACK_ROWS * TAPS];
#pragma unroll
	for (int t = 0; t < TAPS; t++)
		*reinterpret_cast<float4 *>(wy + 4 * t) = y[t];
	const size_t start = (size_t)view * scan_view_size(&job.scan);
	size_t row = start + (ptrdiff_t)v * job.scan.n_u;

#pragma unroll
	for (int m = 0; m < back_taps<TAPS>::rows; m++) {
		const float4 wx = ROWS != GATHER_ONE && m >= split ? second : first;
		int u = __float_as_int(wx.w), at_v = ROWS == GATHER_EDGE ? min(max(v + m, 0), job.scan.n_v - 1) : v + m;
		size_t at = (ROWS == GATHER_EDGE ? start + (size_t)at_v * job.scan.n_u : row) + u;
		float2 b0 = load_bin<MODE>(job, job.views + view, at, u, at_v);
		float2 b1 = load_bin<MODE>(job, job.views + view, at + 1, u + 1, at_v);
		float2 b2 = load_bin<MODE>(job, job.views + view, at + 2, u + 2, at_v);
		float2 s = make_float2(fmaf(wx.z, b2.x, fmaf(wx.y, b1.x, wx.x * b0.x)),
				       fmaf(wx.z, b2.y, fmaf(wx.y, b1.y, wx.x * b0.y)));

		row += job.scan.n_u;
#pragma unroll
		for (int r = 0; r < BACK_ROWS; r++)
			if (m >= r && m < r + TAPS) {
				num[r] = fmaf(wy[r * TAPS + m - r], s.x, num[r]);
				den[r] = fmaf(wy[r * TAPS + m - r], s.y, den[r]);
			}
	}
}

/* cuda_slices_back_boxes.cu: the update from planes by a kernel that copies bins as boxes. fit(): return whether it is possible,
 * and set the maps of q and d. start(): start it; back: fill_job(), planes, num and rule. */
bool back_boxes_fit(const struct projection *a, const struct bin_planes *planes, CUtensorMap ret_map[2]);
int back_boxes_start(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err);

/* cuda_slices_back_view.cu: the same for one view; the maps of q and of the volume x. possible(): whether it fits, if the arrays
 * are aligned. */
bool back_view_possible(const struct projection *a);
bool back_view_fit(const struct projection *a, const struct bin_planes *planes, const float *x, CUtensorMap ret_map[2]);
int back_view_start(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err);

/* cuda_slices_turning.cu: return whether its kernel is valid; start it. blocks: of CUDA_THREADS, by the tiling of the job. */
bool back_turning_fast(const struct projection *a);
template <int MODE> void back_turning_start(const struct projection *a, const struct back_job *job, unsigned blocks);

#endif
