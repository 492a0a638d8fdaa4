/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_forward.cu - the slice-by-slice operator on the CUDA device, forward (kernels/slice_map.h). A thread computes ROWS
 * bins that are adjacent along y, slice by slice. Adjacent lanes process bins that are adjacent along x, so memory accesses are
 * coalesced. Each of the ROWS + 1 rows of voxels around the bins is interpolated along x once and used for two bins. If there are
 * few bins, the slices are divided among the warps of a block, and the sums of the warps are added in a fixed order, so every run
 * gives bitwise the same result. Finally the sum is multiplied by the ray's length, and the update rule is applied, once per bin;
 * so line integrals need not be stored. */
#include "kernels/cuda/cuda_slices_forward.cuh"

/* Blocks resident on a multiprocessor. With the slices divided among warps, the latency of memory is hidden by more warps. */
#define FORWARD_BLOCKS(parts) ((parts) > 1 ? 5 : 4)
#define CHUNK 64 /* slices whose positions are computed together */
/* With fewer bins, the slices are divided among four warps: these bins would not occupy the GPU twice. */
#define FORWARD_BINS ((size_t)4 * 2 * 2048 * 132)

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

/* WIDE: the scale along y may be above 1, up to 1 + 1 / ROWS. */
template <int ROWS, bool WIDE>
static __device__ __forceinline__ void forward_slice(const struct forward_job &job, const struct slice_entry &s, int k, int du,
						     int dv, float sum[ROWS])
{
	const int nx = job.grid.n[0], ny = job.grid.n[1];
	float px = fmaf(s.x.bend, (float)du, s.x.first), ix = floorf(px), a = px - ix;
	float py = fmaf(s.y.bend, (float)dv, s.y.first), iy = floorf(py), e0 = py - iy, row[ROWS + 1], before = 0;
	int i = s.x.base + du + (int)ix, j = s.y.base + dv + (int)iy;
	bool earlier = WIDE && fmaf(s.y.bend, (float)(ROWS - 1), e0) >= 1; /* the same for all lanes */
	const float *p;

	if (earlier) {
		j++;
		e0 -= 1;
	}
	p = job.x + ((ptrdiff_t)k * ny + j) * nx + i;
	if (__all_sync(0xffffffff, i >= 0 && i + 1 < nx && j >= earlier && j + ROWS < ny)) {
		if (earlier)
			before = interpolate_row(p - nx, a, true, true);
#pragma unroll
		for (int n = 0; n <= ROWS; n++)
			row[n] = interpolate_row(p + (ptrdiff_t)n * nx, a, true, true);
	} else {
		if (earlier && j > 0 && j <= ny)
			before = interpolate_row(p - nx, a, i >= 0 && i < nx, i + 1 >= 0 && i + 1 < nx);
#pragma unroll
		for (int n = 0; n <= ROWS; n++) {
			bool in = j + n >= 0 && j + n < ny;

			row[n] =
				interpolate_row(p + (ptrdiff_t)n * nx, a, in && i >= 0 && i < nx, in && i + 1 >= 0 && i + 1 < nx);
		}
	}
	/* Bin r is at position r + e among the rows of voxels, -1 < e < 1: if the scale is at most 1, e begins at 0 or above and
	 * does not increase with r; otherwise it does not decrease, and it begins below 0 if it would end at 1 or above. */
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float e = fmaf(s.y.bend, (float)r, e0);

		sum[r] = fmaf(1 - fabsf(e), row[r], sum[r]);
		sum[r] = fmaf(fmaxf(e, 0), row[r + 1], sum[r]);
		if (r > 0)
			sum[r] = fmaf(fmaxf(-e, 0), row[r - 1], sum[r]);
		else if (WIDE)
			sum[r] = fmaf(fmaxf(-e, 0), before, sum[r]);
	}
}

/* PARTS: number of warps among which the slices are divided for the same bins. TABLES: 1, then all bins of a block are in the
 * same strip (kernels/slice_map.h); or the number of groups of rows, each of which is in a strip. WIDE: see forward_slice(). */
template <int ROWS, int PARTS, int TABLES, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS, FORWARD_BLOCKS(PARTS))
	forward_kernel(const __grid_constant__ struct forward_job job)
{
	constexpr int GROUPS = SLICES_WARPS / PARTS;
	__shared__ struct slice_entry table[TABLES][CHUNK];
	__shared__ float parts[PARTS > 1 ? PARTS - 1 : 1][GROUPS * ROWS][SLICES_LANES];
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES, group = warp % GROUPS,
		  part = warp / GROUPS;
	const int view = (int)(blockIdx.x % (unsigned)job.n_views), nz = job.grid.n[2];
	const struct slice_place place = slice_place_of(&job.tiling, blockIdx.x / (unsigned)job.n_views, SLICES_LANES,
							GROUPS * ROWS, job.scan.n_u, job.scan.n_v);
	const int u = place.first[0] + lane, v = place.first[1] + group * ROWS;
	const struct slice_map *maps = job.maps + (size_t)view * job.strips * nz;
	const int du = min(u, place.end[0] - 1) - place.first[0], dv = TABLES > 1 ? 0 : group * ROWS;
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
#pragma unroll
		for (int q = 0; q < TABLES; q++)
			if (threadIdx.x < 2 * n) {
				int k = threadIdx.x / 2, axis = threadIdx.x % 2, row = place.first[1] + q * ROWS;
				int strip = min(row / job.strip_rows, job.strips - 1);
				struct slice_axis s =
					slice_axis_forward(maps + (size_t)strip * nz + k0 + k, axis, axis ? row : place.first[0]);

				*(axis ? &table[q][k].y : &table[q][k].x) = s;
			}
		__syncthreads();
		if (any) {
#pragma unroll 2
			for (int k = part; k < n; k += PARTS)
				forward_slice<ROWS, WIDE>(job, table[TABLES > 1 ? group : 0][k], k0 + k, du, dv, sum);
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
	any = false; /* bin that is not used */
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (u < place.end[0] && v + r < place.end[1]) {
			any = any || !counts[r];
			finish_bin(job, view, u, v + r, counts[r], sum[r]);
		}
	if (!job.planes.q)
		return;
	any = __any_sync(0xffffffff, any);
	if (lane == 0 && v < place.end[1])
		job.planes.full[((size_t)view * job.planes.cells[1] + v / ROWS) * job.planes.cells[0] + u / BIN_CELL] = !any;
}

template <int ROWS, int PARTS, int TABLES = 1, bool WIDE = false>
static int launch_forward(struct projection *a, struct forward_job *job, struct err *err, struct bin_planes *planes = NULL)
{
	static_assert(SLICES_LANES == BIN_CELL, "a cell is the bins of a warp");
	int tile[2] = {a->tile[0], a->strips > 1 ? 0 : a->tile[1]};
	unsigned blocks;

	job->tiling = cuda_tiling_make(tile, a->scan.n_u, a->scan.n_v, SLICES_LANES, SLICES_WARPS / PARTS * ROWS);
	job->n_views = a->n_views;
	blocks = (unsigned)(cuda_tiling_blocks(&job->tiling) * a->n_views);
	if (planes)
		job->planes = *planes = bin_planes_cells(*planes, a, ROWS);
	forward_kernel<ROWS, PARTS, TABLES, WIDE><<<blocks, CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(*job);
	return cuda_check(cudaGetLastError(), a->dev, "slices forward", err);
}

/* A detector that turns. A block must be in one strip: 8 rows of bins, 2 or 1; or each of its warps. */
static int launch_strips(struct projection *a, struct forward_job *job, size_t bins, struct err *err)
{
	if (a->strip_rows < 2)
		return launch_forward<1, 8>(a, job, err);
	if (a->strip_rows < 8 || !slices_fast(a, SLICES_TURNING_MAX))
		return launch_forward<1, 4>(a, job, err);
	if (bins < FORWARD_BINS)
		return launch_forward<4, 4, 1, true>(a, job, err);
	return a->scale_min[1] > 6.0 / 7 + 1e-6 ? launch_forward<8, 1, 8, true>(a, job, err)
						: launch_forward<4, 1, 8, true>(a, job, err);
}

int cuda_slices_forward(struct projection *a, const struct rule *rule, const float *x, bool add, const float *y, const float *row,
			float *out, struct bin_planes *ret_planes, struct err *err)
{
	struct forward_job job = {};
	size_t bins = (size_t)a->n_views * scan_view_size(&a->scan);
	CUtensorMap map;

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
	if (ret_planes)
		*ret_planes = bin_planes_in(a, out);
	if (forward_boxes_fit(a, x, &map))
		return forward_boxes_start(a, &job, &map, ret_planes, err);
	if (a->strips > 1)
		return launch_strips(a, &job, bins, err);
	if (!slices_fast(a, SLICES_SCALE_MAX))
		return launch_forward<1, 4>(a, &job, err, ret_planes);
	if (bins < FORWARD_BINS)
		return launch_forward<4, 4>(a, &job, err, ret_planes);
	return a->scale_min[1] > 6.0 / 7 + 1e-6 ? launch_forward<8, 1>(a, &job, err, ret_planes)
						: launch_forward<4, 1>(a, &job, err, ret_planes);
}
