/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the back passes of the slice-by-slice operator on the CUDA device that read bins from boxes in shared memory
 * (cuda_slices_back_boxes.cu, cuda_slices_back_view.cu): the EM update for a detector that stands still, from planes of bins.
 * - Bins outside the detector are 0 in a box. If all bins of a box are used, A'd is known from the weights
 *   (cuda_slices_lengths.cuh), and only q is read.
 * - A warp has only BOX_LANES voxels along x. Their bins are within 32 neighbours, so no two lanes need different values of one
 *   bank of shared memory: each of the three reads of a row of bins takes one cycle.
 * - A thread computes ROWS voxels along y. */
#ifndef TOMONODE_KERNELS_CUDA_SLICES_BACK_BOXES_CUH
#define TOMONODE_KERNELS_CUDA_SLICES_BACK_BOXES_CUH

#include "kernels/cuda/cuda_box.cuh"
#include "kernels/cuda/cuda_slices_lengths.cuh"

#define BOX_LANES 28
#define ROWS 8

/* Rows of bins are counted from the first one that touches the thread's voxels. Voxel r is touched by rows r to r + 2 if r < 5,
 * else by rows r to r + 3, for scales above 6 / 7 along y. So row m touches voxels first_voxel(m) to end_voxel(m) - 1; its
 * weights are at weight_at(m, voxel), and those of all rows follow each other. */
#define BIN_ROWS (ROWS + 3)
#define WEIGHTS 28 /* 27, and one more for alignment */

struct box_axis {
	struct slice_axis map;
	float origin; /* length_origin() */
};

struct box_corner {
	int u, v;   /* the first bin of the box */
	bool known; /* all bins are used */
	float height;
};

/* Weights along x of a warp's voxels in a slice. */
struct box_columns {
	float4 x[SLICES_LANES]; /* of three bins; offset of the first one in a row of the box (int) */
	float2 length[SLICES_LANES];
};

/* Weights along y of a warp's voxels in a slice. */
struct box_lines {
	float4 y[WEIGHTS / 4]; /* weight_at() */
	float2 length[ROWS];
	int row; /* offset of the first row of bins in the box */
};

struct box_job {
	struct back_job back;
	int box_rows;
	float *sums; /* of several views: A'd, volume */
};

/* Return the largest distance, along an axis, from the first bin of a block's first voxel to that of its voxel `voxels`, in
 * `group` slices that follow each other. The distance is largest at an end of the volume. */
double back_boxes_widest(const struct slice_map *maps, int n_views, const struct grid *g, int axis, int voxels, int group);

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ constexpr int first_voxel(int m)
{
	return m < 3 ? 0 : m < 8 ? m - 2 : m - 3;
}

static __device__ constexpr int end_voxel(int m)
{
	return m < ROWS ? m + 1 : ROWS;
}

static __device__ constexpr int weight_at(int m, int voxel)
{
	return (m < 2 ? m : m < 10 ? 3 * (m - 1) : 26) + voxel - first_voxel(m);
}

static_assert(weight_at(1, 0) == 1 && weight_at(2, 0) == 3 && weight_at(8, 5) == weight_at(7, 7) + 1 &&
		      weight_at(9, 6) == weight_at(8, 7) + 1 && weight_at(10, 7) == weight_at(9, 7) + 1 &&
		      weight_at(10, 7) < WEIGHTS,
	      "weights follow each other");

/* Return the corner of the box of a view. base: the first bin, along u in even lanes and along v in odd ones, of a slice. All
 * lanes of a warp call it. */
static __device__ __forceinline__ struct box_corner box_corner_at(const struct box_job &job, int view, int base, int lane)
{
	base = min(base, (lane % 2 ? job.back.scan.n_v : job.back.scan.n_u) - 3); /* as weigh_lane() */
#pragma unroll
	for (int d = 2; d < 32; d *= 2)
		base = min(base, __shfl_xor_sync(0xffffffffu, base, d));
	const int u = __shfl_sync(0xffffffffu, base, 0) & ~3, v = __shfl_sync(0xffffffffu, base, 1);

	return {u, v, false, (float)job.back.views[view].src[2]};
}

/* Return whether all bins of the box of a view are used. u, v: its corner. All lanes of a warp call it. */
template <int COLUMNS>
static __device__ __forceinline__ bool box_known(const struct box_job &job, int view, int u, int v, int lane)
{
	constexpr int across = COLUMNS <= 3 * BIN_CELL ? 4 : 8; /* cells along u, at most */
	const struct bin_planes &p = job.back.planes;
	const int cell_u = max(u, 0) / BIN_CELL + lane % across, end_u = min(u + COLUMNS, job.back.scan.n_u),
		  end_v = min(v + job.box_rows, job.back.scan.n_v);
	const unsigned char *full = p.full + (unsigned)view * (unsigned)p.cells[1] * (size_t)p.cells[0] + cell_u;
	unsigned known = 1;

	static_assert(COLUMNS <= 7 * BIN_CELL, "a box is in at most 8 cells along u");
	if (cell_u * BIN_CELL < end_u)
#pragma unroll 4
		for (int cell_v = (max(v, 0) >> p.log2_rows) + lane / across; cell_v << p.log2_rows < end_v;
		     cell_v += 32 / across)
			known &= full[(unsigned)cell_v * (size_t)p.cells[0]]; /* no branch: the loads overlap */
	return __all_sync(0xffffffffu, known);
}

/* Compute the weights along x of a warp whose first voxel is `first` of the block. LENGTHS: also what A'd needs. */
template <int COLUMNS, bool LENGTHS>
static __device__ __forceinline__ void weigh_columns(const struct box_job &job, const struct box_axis &axis,
						     const struct box_corner &corner, int first, int lane,
						     struct box_columns *ret)
{
	float4 x = weigh_lane(job.back, axis.map, first + min(lane, BOX_LANES - 1));

	if (LENGTHS)
		ret->length[lane] = length_x(job.back, axis.map, x, axis.origin, corner.height);
	x.w = __int_as_float(min(max(__float_as_int(x.w) - corner.u, 0), COLUMNS - 3));
	ret->x[lane] = x;
}

/* Compute the weights along y of line n of the block's voxels. lines: of the block's warps along y. */
template <int COLUMNS, bool LENGTHS>
static __device__ __forceinline__ void weigh_line(const struct box_job &job, const struct box_axis &axis,
						  const struct box_corner &corner, int n, struct box_lines *lines)
{
	const struct slice_axis a = axis.map;
	const int r = n % ROWS, m = first_tap(a, n - r), v = a.base + m;
	struct box_lines *ret = lines + n / ROWS;
	float *y = (float *)ret->y, sum = 0, moment = 0;

#pragma unroll
	for (int t = 0; t < 4; t++) {
		const float w = hat_weight(a, m + r + t, n), on = (unsigned)(v + r + t) < (unsigned)job.back.scan.n_v ? w : 0;

		if (t < 3 || r >= 5)
			y[weight_at(r + t, r)] = w;
		sum += on;
		moment = fmaf(on, (float)t, moment);
	}
	if (LENGTHS)
		ret->length[r] = length_y(job.back, axis.origin, m + r, sum, moment);
	if (r == 0)
		ret->row = min(max(v - corner.v, 0), job.box_rows - BIN_ROWS) * COLUMNS;
}

/* Gather for the voxels of a thread in one slice, from a box. */
template <int COLUMNS>
static __device__ __forceinline__ void gather_box(const float *p, const float4 &wx, const float4 *y, float sum[ROWS])
{
	float wy[WEIGHTS];

#pragma unroll
	for (int n = 0; n < WEIGHTS / 4; n++)
		*reinterpret_cast<float4 *>(wy + 4 * n) = y[n];
#pragma unroll
	for (int m = 0; m < BIN_ROWS; m++) {
		const float *row = p + m * COLUMNS;
		const float s = fmaf(wx.z, row[2], fmaf(wx.y, row[1], wx.x * row[0]));

#pragma unroll
		for (int r = first_voxel(m); r < end_voxel(m); r++)
			sum[r] = fmaf(wy[weight_at(m, r)], s, sum[r]);
	}
}

/* Return whether some voxel of the warp is in the support. */
static __device__ __forceinline__ bool some_live(const float old[ROWS])
{
	bool some = false;

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		some = some || old[r] != 0;
	return __any_sync(0xffffffffu, some);
}
#endif

#endif
