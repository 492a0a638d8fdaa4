/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_forward.cu - the slice-by-slice operator on the CUDA device, forward (kernels/slice_map.h). A thread computes ROWS
 * bins that are adjacent along y, slice by slice. Adjacent lanes process bins that are adjacent along x, so memory accesses are
 * coalesced. Each of the ROWS + 1 rows of voxels around the bins is interpolated along x once and used for two bins. If there are
 * few bins, the slices are divided among the warps of a block, and the sums of the warps are added in a fixed order, so every run
 * gives bitwise the same result. Finally the sum is multiplied by the ray's length, and the update rule is applied, once per bin;
 * so line integrals need not be stored. */
#include "kernels/cuda/cuda_slices.cuh"

#define FORWARD_BLOCKS 4 /* blocks resident on a multiprocessor: up to 64 registers per thread */
#define CHUNK 64	 /* slices whose positions are computed together */

struct forward_job {
	struct scan scan;
	struct grid grid;
	struct cuda_tiling tiling;
	const struct scan_view *views;
	const struct slice_map *maps;
	int strip_rows, strips;
	const float *mask, *x, *y, *row;
	float *out;
	bool add, pairs;
	struct rule rule;
};

struct slice_entry {
	struct slice_axis x, y;
};

/* Interpolate linearly between the voxels p[0] and p[1] with fraction a; left, right: whether each is inside the grid (outside:
 * 0). */
static __device__ __forceinline__ float interpolate_row(const float *p, float a, bool left, bool right)
{
	float p0 = left ? __ldg(p) : 0, p1 = right ? __ldg(p + 1) : 0;

	return fmaf(a, p1 - p0, p0);
}

template <int ROWS>
static __device__ __forceinline__ void forward_slice(const struct forward_job &job, const struct slice_entry &s, int k, int du,
						     int dv, float sum[ROWS])
{
	const int nx = job.grid.n[0], ny = job.grid.n[1];
	float px = fmaf(s.x.bend, (float)du, s.x.first), ix = floorf(px), a = px - ix;
	float py = fmaf(s.y.bend, (float)dv, s.y.first), iy = floorf(py), e0 = py - iy, row[ROWS + 1];
	int i = s.x.base + du + (int)ix, j = s.y.base + dv + (int)iy;
	const float *p = job.x + ((ptrdiff_t)k * ny + j) * nx + i;

	if (__all_sync(0xffffffff, i >= 0 && i + 1 < nx && j >= 0 && j + ROWS < ny)) {
#pragma unroll
		for (int n = 0; n <= ROWS; n++)
			row[n] = interpolate_row(p + (ptrdiff_t)n * nx, a, true, true);
	} else {
#pragma unroll
		for (int n = 0; n <= ROWS; n++) {
			bool in = j + n >= 0 && j + n < ny;

			row[n] =
				interpolate_row(p + (ptrdiff_t)n * nx, a, in && i >= 0 && i < nx, in && i + 1 >= 0 && i + 1 < nx);
		}
	}
	/* Bin r is at position r + e among the rows of voxels, -1 < e < 1; e does not increase with r, because the scale is at
	 * most 1. */
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float e = fmaf(s.y.bend, (float)r, e0);

		sum[r] = fmaf(1 - fabsf(e), row[r], sum[r]);
		sum[r] = fmaf(fmaxf(e, 0), row[r + 1], sum[r]);
		if (r > 0)
			sum[r] = fmaf(fmaxf(-e, 0), row[r - 1], sum[r]);
	}
}

static __device__ __forceinline__ void finish(const struct forward_job &job, int view, int u, int v, bool counts, float sum)
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
	reinterpret_cast<float2 *>(job.out)[at] = make_float2(pair.q * length, pair.d * length);
}

/* PARTS: number of warps among which the slices are divided for the same bins. */
template <int ROWS, int PARTS>
static __global__ void __launch_bounds__(CUDA_THREADS, FORWARD_BLOCKS)
	forward_kernel(const __grid_constant__ struct forward_job job)
{
	constexpr int GROUPS = SLICES_WARPS / PARTS;
	__shared__ struct slice_entry table[CHUNK];
	__shared__ float parts[PARTS > 1 ? PARTS - 1 : 1][GROUPS * ROWS][SLICES_LANES];
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES, group = warp % GROUPS,
		  part = warp / GROUPS;
	const int view = blockIdx.y, nz = job.grid.n[2];
	const struct slice_place place =
		slice_place_of(&job.tiling, blockIdx.x, SLICES_LANES, GROUPS * ROWS, job.scan.n_u, job.scan.n_v);
	const int u = place.first[0] + lane, v = place.first[1] + group * ROWS;
	const struct slice_map *maps =
		job.maps + ((size_t)view * job.strips + place.first[1] / job.strip_rows) * nz; /* a block is in one strip */
	const int du = min(u, place.end[0] - 1) - place.first[0], dv = group * ROWS;
	float sum[ROWS] = {};
	bool counts[ROWS], any = false;

#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		counts[r] = u < place.end[0] && v + r < place.end[1] &&
			    bin_counts(job.mask, (size_t)view * scan_view_size(&job.scan) + (size_t)(v + r) * job.scan.n_u + u);
		any = any || counts[r];
	}
	any = __any_sync(0xffffffff, any) && (!job.pairs || rule_needs_line(job.rule.kind));
	for (int k0 = 0; k0 < nz; k0 += CHUNK) {
		int n = min(nz - k0, CHUNK);

		__syncthreads();
		if (threadIdx.x < 2 * n) {
			int k = threadIdx.x / 2, axis = threadIdx.x % 2;
			struct slice_axis s = slice_axis_forward(maps + k0 + k, axis, axis ? place.first[1] : place.first[0]);

			*(axis ? &table[k].y : &table[k].x) = s;
		}
		__syncthreads();
		if (any) {
#pragma unroll 2
			for (int k = part; k < n; k += PARTS)
				forward_slice<ROWS>(job, table[k], k0 + k, du, dv, sum);
		}
	}
	if (PARTS > 1) {
		if (part > 0)
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				parts[part - 1][group * ROWS + r][lane] = sum[r];
		__syncthreads();
		if (part > 0)
			return;
		for (int q = 0; q < PARTS - 1; q++)
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				sum[r] += parts[q][group * ROWS + r][lane];
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (u < place.end[0] && v + r < place.end[1])
			finish(job, view, u, v + r, counts[r], sum[r]);
}

template <int ROWS, int PARTS> static int launch(struct projection *a, struct forward_job *job, struct err *err)
{
	int tile[2] = {a->tile[0], a->strips > 1 ? 0 : a->tile[1]};
	dim3 blocks;

	job->tiling = cuda_tiling_make(tile, a->scan.n_u, a->scan.n_v, SLICES_LANES, SLICES_WARPS / PARTS * ROWS);
	blocks = dim3((unsigned)cuda_tiling_blocks(&job->tiling), (unsigned)a->n_views);
	forward_kernel<ROWS, PARTS><<<blocks, CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(*job);
	return cuda_check(cudaGetLastError(), a->dev, "slices forward", err);
}

int cuda_slices_forward(struct projection *a, const struct rule *rule, const float *x, bool add, const float *y, const float *row,
			float *out, struct err *err)
{
	struct forward_job job = {};
	size_t bins = (size_t)a->n_views * scan_view_size(&a->scan);

	job.scan = a->scan;
	job.grid = a->grid;
	job.views = a->views;
	job.maps = a->maps;
	job.strip_rows = a->strip_rows;
	job.strips = a->strips;
	job.mask = a->mask;
	job.x = x;
	job.y = y;
	job.row = row;
	job.out = out;
	job.add = add;
	job.pairs = rule != NULL;
	if (rule)
		job.rule = *rule;
	/* A block must be in one strip: 8 rows of bins, 2 or 1. */
	if (a->strips > 1 && a->strip_rows < 2)
		return launch<1, 8>(a, &job, err);
	if (a->strips > 1 && a->strip_rows >= 8 && a->scale_min > SLICES_SCALE_MIN && a->scale_max < SLICES_SCALE_MAX)
		return launch<4, 4>(a, &job, err);
	if (a->strips > 1 || !(a->scale_min > SLICES_SCALE_MIN && a->scale_max < SLICES_SCALE_MAX))
		return launch<1, 4>(a, &job, err);
	/* Divide the slices among four warps, unless there are enough bins to occupy the GPU twice. */
	if (bins < (size_t)4 * 2 * 2048 * 132)
		return launch<4, 4>(a, &job, err);
	return a->scale_min_y > 6.0 / 7 + 1e-6 ? launch<8, 1>(a, &job, err) : launch<4, 1>(a, &job, err);
}
