/* cuda_slices_back.cu - the slice-by-slice operator on the CUDA device, back (kernels/slice_map.h): the exact adjoint, gathered.
 *
 * A thread owns BACK_ROWS voxels of a column along y in one slice. The 3 bins that touch it along x are weighted and added once
 * for each row of bins, and a row of bins serves all voxels it touches; over all views of the projection; then the voxels are
 * updated in place. Slices follow one another fastest in the order of blocks: the bins that they share stay in the cache, where
 * they would have to be read again for each slice. Nothing is added by two threads: every run gives the same bits.
 */
#include "kernels/cuda_slices.cuh"

#define BACK_ROWS 4
#ifndef BACK_BLOCKS
#define BACK_BLOCKS 4 /* of a multiprocessor at a time: up to 64 registers a thread */
#endif
#define BACK_VIEWS 32 /* views whose positions are computed at a time */

enum back_mode { BACK_ADJOINT, BACK_SUMS, BACK_UPDATE };

struct back_job {
	struct scan scan;
	struct grid grid;
	struct cuda_tiling tiling;
	const struct scan_view *views;
	const struct slice_map *maps;
	int n_views;
	const float *mask, *plain; /* BACK_ADJOINT: the bins as they are */
	const float2 *pair;	   /* else */
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

template <int MODE> static __device__ __forceinline__ void store(const struct back_job &job, size_t at, float num, float den)
{
	if (MODE == BACK_ADJOINT) {
		job.num[at] = num;
	} else if (MODE == BACK_SUMS) {
		job.num[at] = job.add ? job.num[at] + num : num;
		job.den[at] = job.add ? job.den[at] + den : den;
	} else {
		job.num[at] = rule_voxel(&job.rule, job.num[at], num, den);
	}
}

/* Voxel r of a thread is touched by bin rows r .. last_row(r) behind the first one, at most, of N. */
template <int N> static constexpr __device__ int last_row(int r)
{
	/* (r + 2) / scale rows, and the least scale is 5 / N */
	return ((r + 2) * N + 4) / 5 - 1;
}

/* num and den of the thread's voxels += what one view gives. dx, dy: the thread's first voxel seen from the block's. */
template <int N, int MODE>
static __device__ __forceinline__ void gather(const struct back_job &job, int view, const struct slice_axis &ax,
					      const struct slice_axis &ay, int dx, int dy, float num[BACK_ROWS],
					      float den[BACK_ROWS])
{
	const int n_u = job.scan.n_u, n_v = job.scan.n_v;
	int n0 = (int)ceilf((dx - 1 - ax.first) / (1 + ax.bend)), m0 = (int)ceilf((dy - 1 - ay.first) / (1 + ay.bend));
	float wx[3], e0 = fmaf(ay.bend, (float)m0, ay.first) + (m0 - dy);
	int u[3], v0 = ay.base + m0;
	size_t at = (size_t)view * scan_view_size(&job.scan);

#pragma unroll
	for (int t = 0; t < 3; t++) {
		int n = n0 + t;
		float w = 1 - fabsf(fmaf(ax.bend, (float)n, ax.first) + (n - dx));

		u[t] = ax.base + n;
		wx[t] = u[t] >= 0 && u[t] < n_u ? fmaxf(w, 0) : 0;
		u[t] = min(max(u[t], 0), n_u - 1);
	}
#pragma unroll
	for (int m = 0; m < N; m++) {
		int v = v0 + m;
		float2 s = make_float2(0, 0);

		if (v >= 0 && v < n_v) {
			size_t line = at + (size_t)v * n_u;
#pragma unroll
			for (int t = 0; t < 3; t++) {
				float2 b = load_bin<MODE>(job, job.views + view, line + u[t], u[t], v);

				s.x = fmaf(wx[t], b.x, s.x);
				s.y = fmaf(wx[t], b.y, s.y);
			}
		}
#pragma unroll
		for (int r = 0; r < BACK_ROWS; r++) {
			if (m >= r && m <= last_row<N>(r)) {
				float w = fmaxf(1 - fabsf(fmaf(ay.bend, (float)m, e0) + (m - r)), 0);

				num[r] = fmaf(w, s.x, num[r]);
				den[r] = fmaf(w, s.y, den[r]);
			}
		}
	}
}

/* N: rows of bins that may touch BACK_ROWS voxels: floor(5 / scale) + 1 at the least scale, so 6 above 5/6, 7 above 5/7, 8 above
 * 2/3. */
template <int N, int MODE>
static __global__ void __launch_bounds__(CUDA_THREADS, BACK_BLOCKS) back_kernel(const __grid_constant__ struct back_job job)
{
	__shared__ struct slice_axis axes[BACK_VIEWS][2];
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2];
	const int lane = threadIdx.x % SLICES_LANES, dy = threadIdx.x / SLICES_LANES * BACK_ROWS, k = (int)(blockIdx.x % nz);
	const struct slice_place place =
		slice_place_of(&job.tiling, blockIdx.x / nz, SLICES_LANES, SLICES_WARPS * BACK_ROWS, nx, ny);
	float num[BACK_ROWS] = {}, den[BACK_ROWS] = {};
	int i = place.first[0] + lane, j = place.first[1] + dy;

	for (int s0 = 0; s0 < job.n_views; s0 += BACK_VIEWS) {
		int n = min(job.n_views - s0, BACK_VIEWS);

		if (s0 > 0)
			__syncthreads();
		if (threadIdx.x < 2 * n) {
			int s = threadIdx.x / 2, axis = threadIdx.x % 2;

			axes[s][axis] = slice_axis_back(job.maps + (size_t)(s0 + s) * nz + k, axis,
							axis ? place.first[1] : place.first[0]);
		}
		__syncthreads();
		for (int s = 0; s < n; s++)
			gather<N, MODE>(job, s0 + s, axes[s][0], axes[s][1], lane, dy, num, den);
	}
	if (i >= place.end[0])
		return;
#pragma unroll
	for (int r = 0; r < BACK_ROWS; r++)
		if (j + r < place.end[1])
			store<MODE>(job, ((size_t)k * ny + j + r) * nx + i, num[r], den[r]);
}

/* Any scale: a thread per voxel, over as many bins as there are. */
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
		store<MODE>(job, at_row * nx + i, num, den);
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
	if (!(a->scale_min > SLICES_SCALE_MIN && a->scale_max < SLICES_SCALE_MAX)) {
		back_any_kernel<MODE>
			<<<dim3((unsigned)(g->n[0] + SLICES_LANES - 1) / SLICES_LANES, (unsigned)(rows < 65535 ? rows : 65535)),
			   CUDA_THREADS, 0, stream>>>(*job);
		return cuda_check(cudaGetLastError(), a->dev, "slices back (any scale)", err);
	}
	job->tiling = cuda_tiling_make(a->tile, g->n[0], g->n[1], SLICES_LANES, SLICES_WARPS * BACK_ROWS);
	blocks = (unsigned)(cuda_tiling_blocks(&job->tiling) * g->n[2]);
	if (a->scale_min_y > 5.0 / 6 + 1e-6)
		back_kernel<6, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else if (a->scale_min_y > 5.0 / 7 + 1e-6)
		back_kernel<7, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	else
		back_kernel<8, MODE><<<blocks, CUDA_THREADS, 0, stream>>>(*job);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}

int cuda_slices_adjoint(struct projection *a, const float *y, float *x, struct err *err)
{
	struct back_job job = {};

	job.plain = y;
	job.num = x;
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
	return launch<BACK_UPDATE>(a, &job, err);
}
