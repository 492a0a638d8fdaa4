/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_turning.cu - the slice-by-slice operator on the CUDA device, back (kernels/slice_map.h), for a detector that turns.
 * The detector is divided into strips of rows, each with a map of its own. The maps along y join without steps, so the rows of
 * bins that touch the voxels of a thread are found as for a detector that stands still; they are in one strip or in two. Where
 * the rows of a strip are further apart than voxels, they may begin one row earlier. A block computes the weights along y of all
 * its steps (slice by slice, and in a slice view by view) together, and those along x, for each strip, of some steps together,
 * into shared memory. Only one thread adds to each value, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_slices_back.cuh"

#define STRIP_ROWS SLICE_STRIP_MOST
#define STRIP_BLOCKS 4 /* blocks resident on a multiprocessor: up to 64 registers per thread */
#define STRIP_STEPS 25 /* steps whose weights along y are computed together */
#define STRIP_CHUNK 5  /* steps whose weights along x are computed together; divides STRIP_STEPS */
#define STRIP_FAR 1e6  /* rows further outside the detector are not distinguished */

/* Data that the lanes and the warps of a block share in one step, for strips of STRIP_ROWS rows. The rows of bins that touch the
 * voxels of a warp are in one strip or in two. */
template <int TAPS> struct strip_step {
	static constexpr int rows = TAPS == 3 ? 41 : TAPS == 4 ? 48 : 52; /* of bins near a block, for the scales of TAPS */
	static constexpr int strips = (rows + STRIP_ROWS - 2) / STRIP_ROWS + 1;
	float4 y[SLICES_WARPS][TAPS];
	int v[SLICES_WARPS]; /* first row of bins */
	int first;	     /* the block's first strip */
	struct slice_axis axis[strips];
};

/* Return the strip of row v of bins; both may be outside the detector. */
static __device__ __forceinline__ int strip_of(int v)
{
	return (v - (v < 0 ? STRIP_ROWS - 1 : 0)) / STRIP_ROWS;
}

static __device__ __forceinline__ const struct slice_map *strip_map(const struct back_job &job, int s, int k, int strip)
{
	return job.maps + ((size_t)s * job.strips + min(max(strip, 0), job.strips - 1)) * job.grid.n[2] + k;
}

/* Return the position of row v of bins relative to voxel j. */
static __device__ __forceinline__ double strip_position(const struct back_job &job, int s, int k, int v, int j)
{
	const struct slice_map *map = strip_map(job, s, k, strip_of(v));

	return fma(map->scale[1], (double)v, map->shift[1]) - j;
}

/* Return the first row of bins that touches voxel j; it may be outside the detector. A strip's map differs from the inverse of
 * slice_row_position() by less than a row. */
static __device__ __forceinline__ int strip_first_row(const struct back_job &job, int s, int k, int j)
{
	const struct scan_view *view = job.views + s;
	double at = view->posed ? slice_row_at(view, &job.grid, k, j - 1) : slice_first_bin(strip_map(job, s, k, 0), 1, j);
	int v = (int)fmin(fmax(ceil(at), -STRIP_FAR), STRIP_FAR) - 1;

	v += strip_position(job, s, k, v, j) <= -1;
	v += strip_position(job, s, k, v, j) <= -1;
	return v;
}

template <int TAPS>
static __device__ __forceinline__ void strip_axis(const struct back_job &job, struct strip_step<TAPS> &step, int s, int k, int q,
						  const int first[2])
{
	int strip = strip_of(strip_first_row(job, s, k, first[1]) - 1);

	if (q == 0)
		step.first = strip;
	step.axis[q] = slice_axis_back(strip_map(job, s, k, strip + q), 0, first[0]);
}

template <int TAPS>
static __device__ __forceinline__ void strip_weigh_warp(const struct back_job &job, struct strip_step<TAPS> &step, int s, int k,
							int j, int warp)
{
	constexpr int rows = back_taps<TAPS>::rows;
	int v = strip_first_row(job, s, k, j) - 1, split = (strip_of(v) + 1) * STRIP_ROWS - v;
	const struct slice_map *map = strip_map(job, s, k, strip_of(v)), *next = strip_map(job, s, k, strip_of(v) + 1);
	bool early = false;
	float at[rows + 1]; /* position of row v + m relative to voxel j */

#pragma unroll
	for (int m = 0; m <= rows; m++) {
		const struct slice_map *of = m < split ? map : next;
		bool on = v + m >= 0 && v + m < job.scan.n_v;

		at[m] = on ? (float)(fma(of->scale[1], (double)(v + m), of->shift[1]) - j) : NAN; /* fmaxf(NaN, 0) = 0 */
	}
	/* Row n after the first one touches voxel n + 1. Then the rows are so far on that none is missing at the other end,
	 * because the scale is above 1 - 1 / 6, 1 - 2 / 7 or 1 - 1 / 3 (TAPS). */
#pragma unroll
	for (int n = 0; n < BACK_ROWS - 1; n++)
		early = early || at[n + 1] > n;
	step.v[warp] = early ? v : v + 1;
#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++)
#pragma unroll
		for (int t = 0; t < TAPS; t++)
			reinterpret_cast<float *>(step.y[warp])[r * TAPS + t] =
				fmaxf(1 - fabsf((early ? at[r + t] : at[r + t + 1]) - r), 0);
}

/* Gather for a warp in one step. x: weights of all lanes in the strips of the block. */
template <int TAPS, int MODE>
static __device__ __forceinline__ void gather_strips(const struct back_job &job, int view, const struct strip_step<TAPS> &step,
						     const float4 x[][SLICES_LANES], int lane, int warp, float num[BACK_ROWS],
						     float den[BACK_ROWS])
{
	constexpr int rows = back_taps<TAPS>::rows, strips = strip_step<TAPS>::strips;
	int v = step.v[warp], strip = strip_of(v), split = (strip + 1) * STRIP_ROWS - v, q = strip - step.first;

	if (v >= 0 && v + rows <= job.scan.n_v) {
		if (split >= rows)
			gather_values<TAPS, MODE, GATHER_ONE>(job, view, x[q][lane], x[q][lane], 0, step.y[warp], v, num, den);
		else
			gather_values<TAPS, MODE, GATHER_TWO>(job, view, x[q][lane], x[q + 1][lane], split, step.y[warp], v, num,
							      den);
	} else if (v > -rows && v < job.scan.n_v) {
		gather_values<TAPS, MODE, GATHER_EDGE>(job, view, x[q][lane], x[min(q + 1, strips - 1)][lane], split,
						       step.y[warp], v, num, den);
	}
}

/* The back pass for a detector that turns with strips of STRIP_ROWS rows. */
template <int TAPS, int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS, TAPS == 3 && MODE >= BACK_UPDATE ? STRIP_BLOCKS : 3)
	back_strips_kernel(const __grid_constant__ struct back_job job)
{
	constexpr int strips = strip_step<TAPS>::strips;
	__shared__ struct strip_step<TAPS> table[STRIP_STEPS];
	__shared__ float4 x[STRIP_CHUNK][strips][SLICES_LANES];
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_views = job.n_views;
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES;
	const int k0 = (int)(blockIdx.x % job.parts) * job.slices, steps = min(job.slices, nz - k0) * n_views;
	const struct slice_place place =
		slice_place_of(&job.tiling, blockIdx.x / job.parts, SLICES_LANES, SLICES_WARPS * BACK_ROWS, nx, ny);
	const int i = place.first[0] + lane, j = place.first[1] + warp * BACK_ROWS;
	float num[BACK_ROWS] = {}, den[BACK_ROWS] = {}, old[BACK_ROWS] = {};
	size_t at = ((size_t)k0 * ny + j) * nx + i;
	int view = 0;

	for (int e0 = 0; e0 < steps; e0 += STRIP_CHUNK) {
		int n = min(steps - e0, STRIP_CHUNK), p = e0 % STRIP_STEPS, all = min(steps - e0, STRIP_STEPS);

		__syncthreads();
		for (int t = threadIdx.x; p == 0 && t < all * (strips + SLICES_WARPS); t += CUDA_THREADS) {
			int e = t % all, q = t / all, k = k0 + (e0 + e) / n_views, s = (e0 + e) % n_views;

			if (q < SLICES_WARPS)
				strip_weigh_warp(job, table[e], s, k, place.first[1] + q * BACK_ROWS, q);
			else
				strip_axis(job, table[e], s, k, q - SLICES_WARPS, place.first);
		}
		__syncthreads();
		for (int t = warp; t < n * strips; t += SLICES_WARPS)
			x[t / strips][t % strips][lane] = weigh_lane(job, table[p + t / strips].axis[t % strips], lane);
		__syncthreads();
#pragma unroll 1
		for (int e = 0; e < n; e++) {
			if (MODE >= BACK_UPDATE && view == 0) /* loaded while the bins are gathered */
#pragma unroll
				for (int r = 0; r < BACK_ROWS; r++)
					if (i < place.end[0] && j + r < place.end[1])
						old[r] = __ldcs(job.num + at + (size_t)r * nx);
			gather_strips<TAPS, MODE>(job, view, table[p + e], x[e], lane, warp, num, den);
			if (++view < n_views)
				continue;
			view = 0;
#pragma unroll
			for (int r = 0; r < BACK_ROWS; r++) {
				if (i < place.end[0] && j + r < place.end[1])
					store_voxel<MODE>(job, at + (size_t)r * nx, old[r], num[r], den[r]);
				num[r] = den[r] = 0;
			}
			at += (size_t)ny * nx;
		}
	}
}

bool back_turning_fast(const struct projection *a)
{
	return a->strip_rows == STRIP_ROWS && slices_fast(a, SLICES_TURNING_MAX);
}

template <int MODE> void back_turning_start(const struct projection *a, const struct back_job *job, unsigned blocks)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;

	if (a->scale_min[1] > 5.0 / 6 + 1e-6)
		back_strips_kernel<3, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else if (a->scale_min[1] > 5.0 / 7 + 1e-6)
		back_strips_kernel<4, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else
		back_strips_kernel<5, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
}

template void back_turning_start<BACK_ADJOINT>(const struct projection *, const struct back_job *, unsigned);
template void back_turning_start<BACK_SUMS>(const struct projection *, const struct back_job *, unsigned);
template void back_turning_start<BACK_UPDATE>(const struct projection *, const struct back_job *, unsigned);
template void back_turning_start<BACK_UPDATE_EM>(const struct projection *, const struct back_job *, unsigned);
