/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_back.cu - the slice-by-slice operator on the CUDA device, back (kernels/slice_map.h): the exact adjoint, gathered.
 * A thread computes BACK_ROWS voxels that are adjacent along y. In each row of bins, the weighted sum of the 3 bins that touch
 * these voxels along x is computed once and used for all voxels that the row touches. This is repeated for all views of the
 * projection; then the voxels are updated in place. Weights along x depend only on the lane and those along y only on the warp,
 * so a block computes them once, into shared memory, for several steps (slice by slice, and in a slice view by view). If there is
 * only one view, a block processes several slices: their bins are nearly the same and stay in the level-1 cache. Only one thread
 * adds to each value, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_slices.cuh"

#define BACK_ROWS 4
#define BACK_BLOCKS 4  /* blocks resident on a multiprocessor: up to 64 registers per thread */
#define BACK_SLICES 20 /* slices per block if there is one view */
#define BACK_STEPS 12  /* steps whose weights are computed together */

enum back_mode { BACK_ADJOINT, BACK_SUMS, BACK_UPDATE, BACK_UPDATE_EM };

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
	const float2 *pair;	   /* the other modes */
	float *num, *den;	   /* BACK_ADJOINT and BACK_UPDATE: num is the volume */
	bool add;
	struct rule rule;
};

template <int MODE>
static __device__ __forceinline__ float2 load_bin(const struct back_job &job, const struct scan_view *view, size_t at, int u,
						  int v)
{
	if (MODE != BACK_ADJOINT)
		return __ldg(job.pair + at);
	if (!bin_counts(job.mask, at))
		return make_float2(0, 0);
	return make_float2(job.plain[at] * cuda_slice_length(&job.scan, view, &job.grid, u, v), 0);
}

template <int MODE>
static __device__ __forceinline__ void store(const struct back_job &job, size_t at, float old, float num, float den)
{
	if (MODE == BACK_ADJOINT) {
		job.num[at] = job.add ? job.num[at] + num : num;
	} else if (MODE == BACK_SUMS) {
		job.num[at] = job.add ? job.num[at] + num : num;
		job.den[at] = job.add ? job.den[at] + den : den;
	} else {
		struct rule rule = job.rule;

		if (MODE == BACK_UPDATE_EM) /* a compile-time constant */
			rule.kind = RULE_EM;
		__stcs(job.num + at, rule_voxel(&rule, old, num, den));
	}
}

/* TAPS: largest number of bins along y that touch a voxel; rows: that of rows of bins that touch BACK_ROWS voxels, floor(5 /
 * scale) + 1. Rows r .. r + TAPS - 1, counted from the first one, touch voxel r. */
template <int TAPS> struct back_taps {
	static constexpr int rows = TAPS == 3 ? 6 : TAPS == 4 ? 7 : 8; /* for scales of at least 5/6, 5/7, 2/3 */
};

/* Data that the lanes and the warps of a block share in one step. */
template <int TAPS> struct back_step {
	float4 x[SLICES_LANES];	      /* weights of three bins; .w: index of the first one (the bits of an int) */
	float4 y[SLICES_WARPS][TAPS]; /* BACK_ROWS times TAPS weights */
	int v[SLICES_WARPS];	      /* first row of bins; -1: some are outside the detector */
	struct slice_axis axis[2];
};

static __device__ __forceinline__ float hat(const struct slice_axis &a, int n, int d)
{
	return fmaxf(1 - fabsf(fmaf(a.bend, (float)n, a.first) + (n - d)), 0);
}

/* Return the first bin, relative to the block's first, that touches voxel d. A bin whose weight is as small as the rounding error
 * may be missed. */
static __device__ __forceinline__ int first_tap(const struct slice_axis &a, int d)
{
	return (int)ceilf(__fdividef(d - 1 - a.first, 1 + a.bend));
}

template <int TAPS>
static __device__ __forceinline__ void weigh_lane(const struct back_job &job, struct back_step<TAPS> &step, int lane)
{
	const struct slice_axis a = step.axis[0];
	int u = min(max(a.base + first_tap(a, lane), 0), job.scan.n_u - 3), n = u - a.base;

	step.x[lane] = make_float4(hat(a, n, lane), hat(a, n + 1, lane), hat(a, n + 2, lane), __int_as_float(u));
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

/* Gather for a warp whose rows of bins are all on the detector. */
template <int TAPS, int MODE>
static __device__ __forceinline__ void gather(const struct back_job &job, int view, const struct back_step<TAPS> &step, int lane,
					      int warp, float num[BACK_ROWS], float den[BACK_ROWS])
{
	const float4 wx = step.x[lane];
	float wy[BACK_ROWS * TAPS];
#pragma unroll
	for (int t = 0; t < TAPS; t++)
		*reinterpret_cast<float4 *>(wy + 4 * t) = step.y[warp][t];
	int u = __float_as_int(wx.w), v = step.v[warp];
	size_t at = (size_t)view * scan_view_size(&job.scan) + (size_t)v * job.scan.n_u + u;

#pragma unroll
	for (int m = 0; m < back_taps<TAPS>::rows; m++) {
		float2 b0 = load_bin<MODE>(job, job.views + view, at, u, v + m);
		float2 b1 = load_bin<MODE>(job, job.views + view, at + 1, u + 1, v + m);
		float2 b2 = load_bin<MODE>(job, job.views + view, at + 2, u + 2, v + m);
		float2 s = make_float2(fmaf(wx.z, b2.x, fmaf(wx.y, b1.x, wx.x * b0.x)),
				       fmaf(wx.z, b2.y, fmaf(wx.y, b1.y, wx.x * b0.y)));

		at += job.scan.n_u;
#pragma unroll
		for (int r = 0; r < BACK_ROWS; r++)
			if (m >= r && m < r + TAPS) {
				num[r] = fmaf(wy[r * TAPS + m - r], s.x, num[r]);
				den[r] = fmaf(wy[r * TAPS + m - r], s.y, den[r]);
			}
	}
}

/* Gather for voxel r if some of its rows of bins are outside the detector. */
template <int TAPS, int MODE>
static __device__ __forceinline__ void gather_edge(const struct back_job &job, int view, const struct back_step<TAPS> &step,
						   int lane, int d, float *num, float *den)
{
	const struct slice_axis a = step.axis[1];
	const float4 wx = step.x[lane];
	int m = first_tap(a, d), u = __float_as_int(wx.w);

#pragma unroll 1
	for (int t = 0; t < 3; t++) {
		int v = a.base + m + t;
		float w = hat(a, m + t, d);
		size_t at = (size_t)view * scan_view_size(&job.scan) + (size_t)v * job.scan.n_u + u;
		float2 b0, b1, b2;

		if (v < 0 || v >= job.scan.n_v)
			continue;
		b0 = load_bin<MODE>(job, job.views + view, at, u, v);
		b1 = load_bin<MODE>(job, job.views + view, at + 1, u + 1, v);
		b2 = load_bin<MODE>(job, job.views + view, at + 2, u + 2, v);
		*num = fmaf(w, fmaf(wx.z, b2.x, fmaf(wx.y, b1.x, wx.x * b0.x)), *num);
		*den = fmaf(w, fmaf(wx.z, b2.y, fmaf(wx.y, b1.y, wx.x * b0.y)), *den);
	}
}

template <int TAPS, int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS, TAPS == 3 && MODE >= BACK_UPDATE ? BACK_BLOCKS : 3)
	back_kernel(const __grid_constant__ struct back_job job)
{
	__shared__ struct back_step<TAPS> table[BACK_STEPS];
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_views = job.n_views;
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES;
	const int k0 = (int)(blockIdx.x % job.parts) * job.slices, steps = min(job.slices, nz - k0) * n_views;
	const struct slice_place place =
		slice_place_of(&job.tiling, blockIdx.x / job.parts, SLICES_LANES, SLICES_WARPS * BACK_ROWS, nx, ny);
	const int i = place.first[0] + lane, j = place.first[1] + warp * BACK_ROWS;
	float num[BACK_ROWS] = {}, den[BACK_ROWS] = {}, old[BACK_ROWS] = {};
	size_t at = ((size_t)k0 * ny + j) * nx + i;
	int view = 0;

	for (int e0 = 0; e0 < steps; e0 += BACK_STEPS) {
		int n = min(steps - e0, BACK_STEPS);

		__syncthreads();
		for (int t = threadIdx.x; t < 2 * n; t += CUDA_THREADS) {
			int k = k0 + (e0 + t / 2) / n_views, s = (e0 + t / 2) % n_views, axis = t % 2;

			table[t / 2].axis[axis] =
				slice_axis_back(job.maps + (size_t)s * nz + k, axis, axis ? place.first[1] : place.first[0]);
		}
		__syncthreads();
		for (int e = warp; e < n; e += SLICES_WARPS)
			weigh_lane(job, table[e], lane);
		for (int t = threadIdx.x; t < n * SLICES_WARPS; t += CUDA_THREADS)
			weigh_warp(job, table[t / SLICES_WARPS], t % SLICES_WARPS);
		__syncthreads();
#pragma unroll 1
		for (int e = 0; e < n; e++) {
			if (MODE >= BACK_UPDATE && view == 0) /* loaded while the bins are gathered */
#pragma unroll
				for (int r = 0; r < BACK_ROWS; r++)
					if (i < place.end[0] && j + r < place.end[1])
						old[r] = __ldcs(job.num + at + (size_t)r * nx);
			if (table[e].v[warp] >= 0)
				gather<TAPS, MODE>(job, view, table[e], lane, warp, num, den);
			else
#pragma unroll
				for (int r = 0; r < BACK_ROWS; r++)
					gather_edge<TAPS, MODE>(job, view, table[e], lane, warp * BACK_ROWS + r, &num[r],
								&den[r]);
			if (++view < n_views)
				continue;
			view = 0;
#pragma unroll
			for (int r = 0; r < BACK_ROWS; r++) {
				if (i < place.end[0] && j + r < place.end[1])
					store<MODE>(job, at + (size_t)r * nx, old[r], num[r], den[r]);
				num[r] = den[r] = 0;
			}
			at += (size_t)ny * nx;
		}
	}
}

/* The back pass for any scale: a thread per voxel loops over all bins that touch it. */
template <int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS) back_any_kernel(const __grid_constant__ struct back_job job)
{
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_u = job.scan.n_u, n_v = job.scan.n_v;
	const int i = blockIdx.x * SLICES_LANES + threadIdx.x % SLICES_LANES;
	const size_t rows = (size_t)ny * nz, row = (size_t)blockIdx.y * SLICES_WARPS + threadIdx.x / SLICES_LANES;

	if (i >= nx)
		return;
	for (size_t at_row = row; at_row < rows; at_row += (size_t)gridDim.y * SLICES_WARPS) {
		int j = (int)(at_row % ny), k = (int)(at_row / ny);
		float num = 0, den = 0;

		for (int s = 0; s < job.n_views; s++) {
			const struct slice_map map = job.maps[(size_t)s * nz + k];
			size_t view = (size_t)s * scan_view_size(&job.scan);
			int u0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 0, i)), (double)n_u);
			int v0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 1, j)), (double)n_v);

			for (int v = v0; v < n_v; v++) {
				double dy = fma(map.scale[1], (double)v, map.shift[1]) - j;
				float wy = (float)slice_weight(dy), row_num = 0, row_den = 0;

				if (dy >= 1)
					break;
				for (int u = u0; u < n_u; u++) {
					double dx = fma(map.scale[0], (double)u, map.shift[0]) - i;
					float wx = (float)slice_weight(dx);
					float2 b;

					if (dx >= 1)
						break;
					b = load_bin<MODE>(job, job.views + s, view + (size_t)v * n_u + u, u, v);
					row_num = fmaf(wx, b.x, row_num);
					row_den = fmaf(wx, b.y, row_den);
				}
				num = fmaf(wy, row_num, num);
				den = fmaf(wy, row_den, den);
			}
		}
		store<MODE>(job, at_row * nx + i, MODE >= BACK_UPDATE ? job.num[at_row * nx + i] : 0, num, den);
	}
}

/* The back pass for a detector that turns: as above, with the map of each row's strip. */
template <int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS) back_strips_kernel(const __grid_constant__ struct back_job job)
{
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_u = job.scan.n_u, n_v = job.scan.n_v;
	const int i = blockIdx.x * SLICES_LANES + threadIdx.x % SLICES_LANES;
	const size_t rows = (size_t)ny * nz, row = (size_t)blockIdx.y * SLICES_WARPS + threadIdx.x / SLICES_LANES;

	if (i >= nx)
		return;
	for (size_t at_row = row; at_row < rows; at_row += (size_t)gridDim.y * SLICES_WARPS) {
		int j = (int)(at_row % ny), k = (int)(at_row / ny), first, end;
		float num = 0, den = 0;

		for (int s = 0; s < job.n_views; s++) {
			size_t view = (size_t)s * scan_view_size(&job.scan);

			if (!job.views[s].posed)
				first = 0, end = n_v;
			else
				cuda_strip_rows(job.views + s, &job.grid, k, j, n_v, &first, &end);
			for (int v = first; v < end; v++) {
				const struct slice_map *map = job.maps + ((size_t)s * job.strips + v / job.strip_rows) * nz + k;
				double dy = fma(map->scale[1], (double)v, map->shift[1]) - j;
				float wy = (float)slice_weight(dy), row_num = 0, row_den = 0;
				int u0;

				if (wy == 0)
					continue;
				u0 = (int)fmin(fmax(0.0, slice_first_bin(map, 0, i)), (double)n_u);
				for (int u = u0; u < n_u; u++) {
					double dx = fma(map->scale[0], (double)u, map->shift[0]) - i;
					float wx = (float)slice_weight(dx);
					float2 b;

					if (dx >= 1)
						break;
					b = load_bin<MODE>(job, job.views + s, view + (size_t)v * n_u + u, u, v);
					row_num = fmaf(wx, b.x, row_num);
					row_den = fmaf(wx, b.y, row_den);
				}
				num = fmaf(wy, row_num, num);
				den = fmaf(wy, row_den, den);
			}
		}
		store<MODE>(job, at_row * nx + i, MODE >= BACK_UPDATE ? job.num[at_row * nx + i] : 0, num, den);
	}
}

template <int MODE> static int launch(struct projection *a, struct back_job *job, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	const struct grid *g = &a->grid;
	size_t rows = ((size_t)g->n[1] * g->n[2] + SLICES_WARPS - 1) / SLICES_WARPS;
	unsigned blocks;

	job->scan = a->scan;
	job->grid = a->grid;
	job->views = a->views;
	job->maps = a->maps;
	job->n_views = a->n_views;
	job->mask = a->mask;
	job->strip_rows = a->strip_rows;
	job->strips = a->strips;
	if (a->strips > 1) {
		back_strips_kernel<MODE>
			<<<dim3((unsigned)(g->n[0] + SLICES_LANES - 1) / SLICES_LANES, (unsigned)(rows < 65535 ? rows : 65535)),
			   CUDA_THREADS, 0, stream>>>(*job);
		return cuda_check(cudaGetLastError(), a->dev, "slices back (turning detector)", err);
	}
	if (!(a->scale_min > SLICES_SCALE_MIN && a->scale_max < SLICES_SCALE_MAX) || a->scan.n_u < 3) {
		back_any_kernel<MODE>
			<<<dim3((unsigned)(g->n[0] + SLICES_LANES - 1) / SLICES_LANES, (unsigned)(rows < 65535 ? rows : 65535)),
			   CUDA_THREADS, 0, stream>>>(*job);
		return cuda_check(cudaGetLastError(), a->dev, "slices back (any scale)", err);
	}
	job->tiling = cuda_tiling_make(a->tile, g->n[0], g->n[1], SLICES_LANES, SLICES_WARPS * BACK_ROWS);
	job->slices = a->n_views > 1 ? 1 : min(g->n[2], BACK_SLICES);
	job->parts = (g->n[2] + job->slices - 1) / job->slices;
	blocks = (unsigned)(cuda_tiling_blocks(&job->tiling) * job->parts);
	if (a->scale_min_y > 5.0 / 6 + 1e-6)
		back_kernel<3, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else if (a->scale_min_y > 5.0 / 7 + 1e-6)
		back_kernel<4, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else
		back_kernel<5, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}

int cuda_slices_adjoint(struct projection *a, const float *y, bool add, float *x, struct err *err)
{
	struct back_job job = {};

	job.plain = y;
	job.num = x;
	job.add = add;
	return launch<BACK_ADJOINT>(a, &job, err);
}

int cuda_slices_sums(struct projection *a, const float2 *pair, bool add, float *num, float *den, struct err *err)
{
	struct back_job job = {};

	job.pair = pair;
	job.num = num;
	job.den = den;
	job.add = add;
	return launch<BACK_SUMS>(a, &job, err);
}

int cuda_slices_update(struct projection *a, const struct rule *rule, const float2 *pair, float *x, struct err *err)
{
	struct back_job job = {};

	job.pair = pair;
	job.num = x;
	job.rule = *rule;
	return rule->kind == RULE_EM ? launch<BACK_UPDATE_EM>(a, &job, err) : launch<BACK_UPDATE>(a, &job, err);
}
