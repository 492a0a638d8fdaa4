/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_back.cu - the slice-by-slice operator on the CUDA device, back (kernels/slice_map.h): the exact adjoint, gathered.
 * The fast kernel for a detector that turns is in cuda_slices_turning.cu.
 * A thread computes BACK_ROWS voxels that are adjacent along y. In each row of bins, the weighted sum of the 3 bins that touch
 * these voxels along x is computed once and used for all voxels that the row touches. This is repeated for all views of the
 * projection; then the voxels are updated in place. Weights along x depend only on the lane and those along y only on the warp,
 * so a block computes them once, into shared memory, for several steps (slice by slice, and in a slice view by view). If there is
 * only one view, a block processes several slices: their bins are nearly the same and stay in the level-1 cache. Only one thread
 * adds to each value, so every run gives bitwise the same result. */
#include <type_traits>

#include "kernels/cuda/cuda_slices_lengths.cuh"

#define BACK_BLOCKS 4  /* blocks resident on a multiprocessor: up to 64 registers per thread */
#define BACK_SLICES 10 /* slices per block if there is one view */
#define BACK_STEPS 10  /* steps whose weights are computed together */

/* Data that the lanes and the warps of a block share in one step. */
template <int TAPS> struct back_step {
	float4 x[SLICES_LANES];	      /* from weigh_lane() */
	float4 y[SLICES_WARPS][TAPS]; /* BACK_ROWS times TAPS weights */
	int v[SLICES_WARPS];	      /* first row of bins; -1: some are outside the detector */
	struct slice_axis axis[2];
};

/* The same for BACK_PLANES, with what the lengths of rays need (cuda_slices_lengths.cuh). */
struct back_length {
	float2 x[SLICES_LANES];		   /* length_x() */
	float2 y[SLICES_WARPS][BACK_ROWS]; /* length_y() */
	float origin[2];		   /* length_origin() of both axes */
	float height;			   /* of the source */
	bool known;			   /* all bins that touch the block's voxels are used */
};

template <int TAPS> struct back_plane_step : back_step<TAPS> {
	struct back_length length;
};

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
			reinterpret_cast<float *>(step.y[warp])[r * TAPS + t] = hat_weight(a, m + r + t, d + r);
}

/* Return length_y() of the voxels at place n along y. */
static __device__ __forceinline__ float2 length_at(const struct back_job &job, const struct slice_axis &a, int n, float origin)
{
	const int m = first_tap(a, n), v = a.base + m;
	float w[3];

#pragma unroll
	for (int t = 0; t < 3; t++)
		w[t] = (unsigned)(v + t) < (unsigned)job.scan.n_v ? hat_weight(a, m + t, n) : 0;
	return length_y(job, origin, m, w[0] + w[1] + w[2], fmaf(2, w[2], w[1]));
}

/* Return whether all bins that touch the block's voxels are used, as far as there are bins; all lanes of a warp call it. u: the
 * lane's first bin. */
static __device__ __forceinline__ bool bins_full(const struct back_job &job, int view, const struct slice_axis &y, int u,
						 int lane)
{
	const struct bin_planes &p = job.planes;
	const int last = min(first_row(y, SLICES_LANES - 1) + 2, job.scan.n_v - 1) >> p.log2_rows;
	const int left = __shfl_sync(0xffffffffu, u, 0) / BIN_CELL,
		  right = (__shfl_sync(0xffffffffu, u, SLICES_LANES - 1) + 2) / BIN_CELL, at_u = left + lane % 4;
	bool full = true;

	static_assert((int)(SLICES_LANES / SLICES_SCALE_MIN) + 4 < 3 * BIN_CELL, "a block's bins are in at most 4 cells along u");
	for (int at_v = (max(first_row(y, 0), 0) >> p.log2_rows) + lane / 4; at_v <= last; at_v += SLICES_LANES / 4)
		if (at_u <= right)
			full = full &&
			       p.full[((unsigned)view * (unsigned)p.cells[1] + (unsigned)at_v) * (size_t)p.cells[0] + at_u];
	return __all_sync(0xffffffffu, full);
}

/* gather() of q alone, for rows of bins that are on the detector. */
template <int TAPS>
static __device__ __forceinline__ void gather_known(const struct back_job &job, int view, const float4 &wx, const float4 y[TAPS],
						    int v, float num[BACK_ROWS])
{
	const float *first =
		job.planes.q + (size_t)view * scan_view_size(&job.scan) + (ptrdiff_t)v * job.scan.n_u + __float_as_int(wx.w);
	float wy[BACK_ROWS * TAPS];

#pragma unroll
	for (int t = 0; t < TAPS; t++)
		*reinterpret_cast<float4 *>(wy + 4 * t) = y[t];
#pragma unroll
	for (int m = 0; m < back_taps<TAPS>::rows; m++) {
		const float *row = first + (unsigned)(m * job.scan.n_u);
		const float s = fmaf(wx.z, __ldg(row + 2), fmaf(wx.y, __ldg(row + 1), wx.x * __ldg(row)));

#pragma unroll
		for (int r = 0; r < BACK_ROWS; r++)
			if (m >= r && m < r + TAPS)
				num[r] = fmaf(wy[r * TAPS + m - r], s, num[r]);
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
		float w = hat_weight(a, m + t, d);
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

/* The voxels of a thread in a slice: `rows` of them exist. */
static __device__ __forceinline__ void load_old(const float *x, unsigned nx, int rows, float old[BACK_ROWS])
{
#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++, x += nx)
		if (r < rows)
			old[r] = __ldcs(x);
}

template <int MODE>
static __device__ __forceinline__ void store_rows(const struct back_job &job, size_t at, int rows, const float old[BACK_ROWS],
						  const float num[BACK_ROWS], const float den[BACK_ROWS])
{
#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++, at += (unsigned)job.grid.n[0])
		if (r < rows)
			store_voxel<MODE>(job, at, old[r], num[r], den[r]);
}

template <int TAPS, int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS, TAPS == 3 && MODE >= BACK_UPDATE ? BACK_BLOCKS : 3)
	back_kernel(const __grid_constant__ struct back_job job)
{
	typedef std::conditional_t<MODE == BACK_PLANES, back_plane_step<TAPS>, back_step<TAPS>> step_type;
	__shared__ step_type table[BACK_STEPS];
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_views = job.n_views;
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES;
	/* From the end of the volume, where the projection before it ended: those voxels are still in the level-2 cache. */
	const unsigned block = gridDim.x - 1 - blockIdx.x;
	const int k0 = (int)(block % job.parts) * job.slices, steps = min(job.slices, nz - k0) * n_views;
	const struct slice_place place =
		slice_place_of(&job.tiling, block / job.parts, SLICES_LANES, SLICES_WARPS * BACK_ROWS, nx, ny);
	const int i = place.first[0] + lane, j = place.first[1] + warp * BACK_ROWS;
	const int rows = i < place.end[0] ? min(place.end[1] - j, BACK_ROWS) : 0; /* of this thread; at most 0: none */
	const bool whole = __all_sync(0xffffffffu, rows == BACK_ROWS);
	const size_t slice = (size_t)ny * nx;
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
			if constexpr (MODE == BACK_PLANES) {
				table[t / 2].length.origin[axis] =
					length_origin(job, job.views + s, table[t / 2].axis[axis], axis);
				table[t / 2].length.height = (float)job.views[s].src[2];
			}
		}
		__syncthreads();
		for (int e = warp; e < n; e += SLICES_WARPS) {
			const float4 x = weigh_lane(job, table[e].axis[0], lane);

			table[e].x[lane] = x;
			if constexpr (MODE == BACK_PLANES) {
				struct back_length *length = &table[e].length;

				length->x[lane] = length_x(job, table[e].axis[0], x, length->origin[0], length->height);
				length->y[lane / BACK_ROWS][lane % BACK_ROWS] =
					length_at(job, table[e].axis[1], lane, length->origin[1]);
				table[e].length.known =
					bins_full(job, (e0 + e) % n_views, table[e].axis[1], __float_as_int(x.w), lane);
			}
		}
		for (int t = threadIdx.x; t < n * SLICES_WARPS; t += CUDA_THREADS)
			weigh_warp(job, table[t / SLICES_WARPS], t % SLICES_WARPS);
		__syncthreads();
#pragma unroll 1
		for (int e = 0; e < n; e++) {
			bool known = false;

			if (MODE >= BACK_UPDATE && view == 0) { /* loaded while the bins are gathered */
				if (whole)
					load_old(job.num + at, nx, BACK_ROWS, old);
				else
					load_old(job.num + at, nx, rows, old);
			}
			if constexpr (MODE == BACK_PLANES)
				if ((known = table[e].length.known && table[e].v[warp] >= 0)) {
					gather_known<TAPS>(job, view, table[e].x[lane], table[e].y[warp], table[e].v[warp], num);
					add_lengths<BACK_ROWS>(table[e].length.x[lane], table[e].length.y[warp], den);
				}
			if (!known && table[e].v[warp] >= 0)
				gather_values<TAPS, MODE, GATHER_ONE>(job, view, table[e].x[lane], table[e].x[lane], 0,
								      table[e].y[warp], table[e].v[warp], num, den);
			else if (!known)
#pragma unroll
				for (int r = 0; r < BACK_ROWS; r++)
					gather_edge<TAPS, MODE>(job, view, table[e], lane, warp * BACK_ROWS + r, &num[r],
								&den[r]);
			if (++view < n_views)
				continue;
			view = 0;
			if (whole)
				store_rows<MODE>(job, at, BACK_ROWS, old, num, den);
			else
				store_rows<MODE>(job, at, rows, old, num, den);
#pragma unroll
			for (int r = 0; r < BACK_ROWS; r++)
				num[r] = den[r] = 0;
			at += slice;
		}
	}
}

/* Gather for one voxel, with the map of each row's strip (kernels/slice_map.h). */
template <int MODE> static __device__ __forceinline__ float2 gather_voxel(const struct back_job &job, int s, int i, int j, int k)
{
	const int nz = job.grid.n[2], n_u = job.scan.n_u, n_v = job.scan.n_v;
	const struct slice_map *maps = job.maps + (size_t)s * job.strips * nz + k;
	size_t view = (size_t)s * scan_view_size(&job.scan);
	int first, end = n_v;
	float2 sum = make_float2(0, 0);

	if (job.views[s].posed)
		cuda_strip_rows(job.views + s, &job.grid, k, j, n_v, &first, &end);
	else
		first = (int)fmin(fmax(0.0, slice_first_bin(maps, 1, j)), (double)n_v);
	for (int v = first; v < end; v++) {
		const struct slice_map *map = maps + (size_t)(job.strips > 1 ? v / job.strip_rows : 0) * nz;
		double dy = fma(map->scale[1], (double)v, map->shift[1]) - j;
		float wy = (float)slice_weight(dy);
		float2 row = make_float2(0, 0);

		if (dy >= 1)
			break;
		if (wy == 0)
			continue;
		for (int u = (int)fmin(fmax(0.0, slice_first_bin(map, 0, i)), (double)n_u); u < n_u; u++) {
			double dx = fma(map->scale[0], (double)u, map->shift[0]) - i;
			float wx = (float)slice_weight(dx);
			float2 b;

			if (dx >= 1)
				break;
			b = load_bin<MODE>(job, job.views + s, view + (size_t)v * n_u + u, u, v);
			row.x = fmaf(wx, b.x, row.x);
			row.y = fmaf(wx, b.y, row.y);
		}
		sum.x = fmaf(wy, row.x, sum.x);
		sum.y = fmaf(wy, row.y, sum.y);
	}
	return sum;
}

/* The back pass for any scale and any strips: a thread per voxel loops over all bins that touch it. */
template <int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS) back_any_kernel(const __grid_constant__ struct back_job job)
{
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2];
	const int i = blockIdx.x * SLICES_LANES + threadIdx.x % SLICES_LANES;
	const size_t rows = (size_t)ny * nz, row = (size_t)blockIdx.y * SLICES_WARPS + threadIdx.x / SLICES_LANES;

	if (i >= nx)
		return;
	for (size_t at_row = row; at_row < rows; at_row += (size_t)gridDim.y * SLICES_WARPS) {
		float num = 0, den = 0;

		for (int s = 0; s < job.n_views; s++) {
			float2 sum = gather_voxel<MODE>(job, s, i, (int)(at_row % ny), (int)(at_row / ny));

			num += sum.x;
			den += sum.y;
		}
		store_voxel<MODE>(job, at_row * nx + i, MODE >= BACK_UPDATE ? job.num[at_row * nx + i] : 0, num, den);
	}
}

/* Start the kernel of a detector that stands still. blocks: of CUDA_THREADS, by the tiling of the job. */
template <int MODE> static void back_still_start(const struct projection *a, const struct back_job *job, unsigned blocks)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;

	if (a->scale_min[1] > 5.0 / 6 + 1e-6)
		back_kernel<3, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else if (a->scale_min[1] > 5.0 / 7 + 1e-6)
		back_kernel<4, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else
		back_kernel<5, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
}

static void fill_job(const struct projection *a, struct back_job *job)
{
	job->scan = a->scan;
	job->grid = a->grid;
	job->views = a->views;
	job->maps = a->maps;
	job->n_views = a->n_views;
	job->mask = a->mask;
	job->strip_rows = a->strip_rows;
	job->strips = a->strips;
}

template <int MODE> static int launch_back(struct projection *a, struct back_job *job, struct err *err)
{
	const struct grid *g = &a->grid;
	size_t rows = ((size_t)g->n[1] * g->n[2] + SLICES_WARPS - 1) / SLICES_WARPS;
	bool fast = a->scan.n_u >= 3 && (a->strips > 1 ? back_turning_fast(a) : slices_fast(a, SLICES_SCALE_MAX));
	unsigned blocks;

	fill_job(a, job);
	job->tiling = cuda_tiling_make(a->tile, g->n[0], g->n[1], SLICES_LANES, SLICES_WARPS * BACK_ROWS);
	job->slices = a->n_views > 1 ? 1 : min(g->n[2], BACK_SLICES);
	job->parts = (g->n[2] + job->slices - 1) / job->slices;
	blocks = (unsigned)(cuda_tiling_blocks(&job->tiling) * job->parts);
	if constexpr (MODE == BACK_PLANES)
		back_still_start<MODE>(a, job, blocks); /* cuda_slices_planes() */
	else if (!fast)
		back_any_kernel<MODE>
			<<<dim3((unsigned)(g->n[0] + SLICES_LANES - 1) / SLICES_LANES, (unsigned)(rows < 65535 ? rows : 65535)),
			   CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(*job);
	else if (a->strips > 1)
		back_turning_start<MODE>(a, job, blocks);
	else
		back_still_start<MODE>(a, job, blocks);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}

/* Whether em_voxel() is rule_voxel(). */
static bool is_em(const struct rule *rule)
{
	return rule->kind == RULE_EM && !rule->negative && rule->voxel_floor >= FLT_MIN;
}

bool cuda_slices_planes(const struct projection *a, const struct rule *rule)
{
	return is_em(rule) && (a->n_views > 1 || back_view_possible(a)) && !(rule->weighted && a->mask) &&
	       projection_one_tile(a) && a->strips == 1 && a->bin_angle < BIN_ANGLE_MAX && a->scan.n_u >= 3 &&
	       slices_fast(a, SLICES_SCALE_MAX);
}

int cuda_slices_adjoint(struct projection *a, const float *y, bool add, float *x, struct err *err)
{
	struct back_job job = {};

	job.plain = y;
	job.num = x;
	job.add = add;
	return launch_back<BACK_ADJOINT>(a, &job, err);
}

int cuda_slices_sums(struct projection *a, const float2 *pair, bool add, float *num, float *den, struct err *err)
{
	struct back_job job = {};

	job.pair = pair;
	job.num = num;
	job.den = den;
	job.add = add;
	return launch_back<BACK_SUMS>(a, &job, err);
}

int cuda_slices_update(struct projection *a, const struct rule *rule, const float2 *pair, float *x, struct err *err)
{
	struct back_job job = {};

	job.pair = pair;
	job.num = x;
	job.rule = *rule;
	return is_em(rule) ? launch_back<BACK_UPDATE_EM>(a, &job, err) : launch_back<BACK_UPDATE>(a, &job, err);
}

int cuda_slices_update_planes(struct projection *a, const struct rule *rule, const struct bin_planes *planes, float *x,
			      struct err *err)
{
	struct back_job job = {};
	CUtensorMap map[2];

	job.planes = *planes;
	job.num = x;
	job.rule = *rule;
	fill_job(a, &job);
	if (back_view_fit(a, planes, x, map))
		return back_view_start(a, &job, map, err);
	if (a->n_views > 1 && back_boxes_fit(a, planes, map))
		return back_boxes_start(a, &job, map, err);
	return launch_back<BACK_PLANES>(a, &job, err);
}
