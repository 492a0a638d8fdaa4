/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_mark.cu - mark() of kernels/device.h on the CUDA device.
 *
 * A block processes a patch of voxels, slice by slice, and in a slice view by view. The index u of the bin nearest to a voxel
 * depends only on the voxel's column, the index v only on its row: both are computed once per block and view. That bin nearly
 * always determines the result (it shows air, or it has data); all bins around a voxel are examined only if no view has
 * determined it. Unchanged values are not written. */
#include "kernels/cuda/cuda_slices.cuh"

#include <errno.h>

#define MARK_ROWS 4    /* voxels of a thread, along y */
#define MARK_SLICES 16 /* slices per block if there is one view */
#define MARK_STEPS 8   /* slices times views whose nearest bins are computed together */
#define MARK_PATCH (SLICES_WARPS * MARK_ROWS)

struct mark_job {
	struct scan scan;
	struct grid grid;
	const struct slice_map *maps;
	const struct scan_view *views;
	int strip_rows, strips;
	int n_views;
	int slices, parts; /* slices of a block; number of blocks among which the slices of a patch are divided */
	const float *mask;
	float *x;
};

/* Index along one axis of the bin nearest to a voxel's centre; -1: outside the detector. near: its distance is less than one
 * voxel. */
struct nearest {
	int bin;
	bool near;
};

static __device__ struct nearest nearest_bin(const struct slice_map &map, int axis, int i, int n_bins)
{
	long long b = slice_nearest_bin(&map, axis, i);
	struct nearest n = {-1, false};

	if (b >= 0 && b < n_bins) {
		n.bin = (int)b;
		n.near = slice_weight(map.scale[axis] * (double)b + map.shift[axis] - i) > 0;
	}
	return n;
}

/* Return whether a bin with mask > 0 is less than one voxel from voxel (i, j). */
static __device__ bool touches_valid_bin(const struct slice_map &map, int i, int j, int n_u, int n_v, const float *mask)
{
	int u0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 0, i)), (double)n_u);
	int v0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 1, j)), (double)n_v);

	/* A bin at a distance of exactly one voxel has weight 0: start with the next one. */
	if (u0 < n_u && !(slice_weight(map.scale[0] * u0 + map.shift[0] - i) > 0))
		u0++;
	if (v0 < n_v && !(slice_weight(map.scale[1] * v0 + map.shift[1] - j) > 0))
		v0++;
	for (int v = v0; v < n_v && slice_weight(map.scale[1] * v + map.shift[1] - j) > 0; v++)
		for (int u = u0; u < n_u && slice_weight(map.scale[0] * u + map.shift[0] - i) > 0; u++)
			if (!mask || mask[(size_t)v * n_u + u] > 0)
				return true;
	return false;
}

static __device__ bool touched_in_any_view(const struct mark_job &job, int i, int j, int k)
{
	for (int s = 0; s < job.n_views; s++)
		if (touches_valid_bin(job.maps[(size_t)s * job.grid.n[2] + k], i, j, job.scan.n_u, job.scan.n_v,
				      job.mask ? job.mask + (size_t)s * scan_view_size(&job.scan) : NULL))
			return true;
	return false;
}

static __device__ void store_mark(const struct mark_job &job, int i, int j, int k, bool air, bool seen)
{
	size_t at = ((size_t)k * job.grid.n[1] + j) * job.grid.n[0] + i;
	float old = job.x[at];

	if (old < 0 || (old == 1 && !air))
		return;
	if (air)
		job.x[at] = -1;
	else if (seen || touched_in_any_view(job, i, j, k))
		job.x[at] = 1;
}

static __global__ void __launch_bounds__(CUDA_THREADS) mark_kernel(const __grid_constant__ struct mark_job job)
{
	__shared__ struct nearest near_u[MARK_STEPS][SLICES_LANES], near_v[MARK_STEPS][MARK_PATCH];
	const int nx = job.grid.n[0], ny = job.grid.n[1], nz = job.grid.n[2], n_views = job.n_views;
	const int patches_x = (nx + SLICES_LANES - 1) / SLICES_LANES, patch = blockIdx.x / job.parts;
	const int i0 = patch % patches_x * SLICES_LANES, j0 = patch / patches_x * MARK_PATCH;
	const int lane = threadIdx.x % SLICES_LANES, row = threadIdx.x / SLICES_LANES * MARK_ROWS, i = i0 + lane;
	const int k0 = (int)(blockIdx.x % job.parts) * job.slices, steps = min(job.slices, nz - k0) * n_views;
	bool air[MARK_ROWS] = {}, seen[MARK_ROWS] = {};
	int k = k0, view = 0;

	for (int e0 = 0; e0 < steps; e0 += MARK_STEPS) {
		int n = min(steps - e0, MARK_STEPS);

		__syncthreads();
		for (int t = threadIdx.x; t < n * (SLICES_LANES + MARK_PATCH); t += CUDA_THREADS) {
			int e = t / (SLICES_LANES + MARK_PATCH), at = t % (SLICES_LANES + MARK_PATCH);
			int slice = k0 + (e0 + e) / n_views, s = (e0 + e) % n_views;
			const struct slice_map &map = job.maps[(size_t)s * nz + slice];

			if (at < SLICES_LANES)
				near_u[e][at] = nearest_bin(map, 0, i0 + at, job.scan.n_u);
			else
				near_v[e][at - SLICES_LANES] = nearest_bin(map, 1, j0 + at - SLICES_LANES, job.scan.n_v);
		}
		__syncthreads();
#pragma unroll 1
		for (int e = 0; e < n; e++) {
			const float *mask = job.mask ? job.mask + (size_t)view * scan_view_size(&job.scan) : NULL;
			const struct nearest u = near_u[e][lane];

#pragma unroll
			for (int r = 0; r < MARK_ROWS; r++) {
				const struct nearest v = near_v[e][row + r];
				float value;

				if (u.bin < 0 || v.bin < 0)
					continue;
				value = mask ? mask[(size_t)v.bin * job.scan.n_u + u.bin] : 1;
				air[r] = air[r] || value < 0;
				seen[r] = seen[r] || (value > 0 && u.near && v.near);
			}
			if (++view < n_views)
				continue;
			view = 0;
#pragma unroll
			for (int r = 0; r < MARK_ROWS; r++) {
				if (i < nx && j0 + row + r < ny)
					store_mark(job, i, j0 + row + r, k, air[r], seen[r]);
				air[r] = seen[r] = false;
			}
			k++;
		}
	}
}

/* Look at the bins of one view around voxel (i, j, k) of a detector that turns. *air, *seen: set if the bin nearest to it shows
 * air, and if a bin with mask > 0 is less than one voxel from it. */
static __device__ void look_at_strips(const struct mark_job &job, int s, int i, int j, int k, bool *air, bool *seen)
{
	const int n_u = job.scan.n_u, n_v = job.scan.n_v;
	const float *mask = job.mask ? job.mask + (size_t)s * scan_view_size(&job.scan) : NULL;
	int first = 0, end = n_v;

	if (job.views[s].posed)
		cuda_strip_rows(job.views + s, &job.grid, k, j, n_v, &first, &end);
	for (int v = max(first - 1, 0); v < min(end + 1, n_v); v++) {
		const struct slice_map &map = job.maps[((size_t)s * job.strips + v / job.strip_rows) * job.grid.n[2] + k];
		long long u = slice_nearest_bin(&map, 0, i);

		if (slice_nearest_bin(&map, 1, j) == v && u >= 0 && u < n_u && mask && mask[(size_t)v * n_u + u] < 0)
			*air = true;
		if (!(slice_weight(map.scale[1] * v + map.shift[1] - j) > 0) || *seen)
			continue;
		for (int b = (int)fmin(fmax(0.0, slice_first_bin(&map, 0, i)), (double)n_u); b < n_u; b++) {
			double away = map.scale[0] * b + map.shift[0] - i;

			if (away >= 1)
				break;
			if (slice_weight(away) > 0 && (!mask || mask[(size_t)v * n_u + b] > 0))
				*seen = true;
		}
	}
}

static __global__ void __launch_bounds__(CUDA_THREADS) mark_strips_kernel(const __grid_constant__ struct mark_job job, size_t n)
{
	const size_t nx = job.grid.n[0], ny = job.grid.n[1];

	for (size_t at = cuda_index(); at < n; at += (size_t)gridDim.x * blockDim.x) {
		bool air = false, seen = false;

		if (job.x[at] < 0)
			continue;
		for (int s = 0; s < job.n_views; s++)
			look_at_strips(job, s, (int)(at % nx), (int)(at / nx % ny), (int)(at / nx / ny), &air, &seen);
		if (air || seen)
			job.x[at] = air ? -1 : 1;
	}
}

int cuda_mark(struct projection *a, struct buf *x, struct err *err)
{
	const struct grid *g = &a->grid;
	int slices = a->n_views > 1 ? 1 : min(g->n[2], MARK_SLICES), parts = (g->n[2] + slices - 1) / slices;
	struct mark_job job = {a->scan,	   a->grid, a->maps, a->views, a->strip_rows, a->strips,
			       a->n_views, slices,  parts,   a->mask,  x->mem};
	unsigned blocks = (unsigned)((g->n[0] + SLICES_LANES - 1) / SLICES_LANES) *
			  (unsigned)((g->n[1] + MARK_PATCH - 1) / MARK_PATCH) * (unsigned)parts;

	int r = cuda_check(cudaSetDevice(a->dev->index), a->dev, "cudaSetDevice", err);

	if (r < 0)
		return r;
	if (a->scan.kind != SCAN_DBT || x->n != grid_size(&a->grid))
		return err_set(err, EINVAL,
			       "%s: mark: the volume has %zu floats, the grid has %zu voxels, the scan is of kind %d; only "
			       "SCAN_DBT is supported",
			       a->dev->name, x->n, grid_size(&a->grid), (int)a->scan.kind);
	if (!a->marks)
		return err_set(err, EINVAL, "%s: mark: the volume is not between detector and source in every view",
			       a->dev->name);
	if (a->strips > 1)
		mark_strips_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(job, x->n);
	else
		mark_kernel<<<blocks, CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "mark", err);
}
