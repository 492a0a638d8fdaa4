/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_interpolated.cu - voxel-driven backprojection (back_interpolated()). For a stack, a thread computes WIDE adjacent slices
 * of a pixel, which have the same bin and weight; for other planes of rise 0, it computes one voxel. Positions are double,
 * because at bin 2000 a float resolves only 1e-4 of a bin; in a stack, those of a tile of pixels relative to its corner are
 * float.
 *
 * Of a single slice a thread computes SLICE_ROWS pixels of a column of the tile: what describes a view is read once for them, and
 * whether the tile projects into the detector is known before (struct tile_bins). */
#include "kernels/cuda/cuda_pixels.cuh"
#include "kernels/cuda/cuda_volume.cuh"
#include "kernels/lines.h"

/* Return the first of the ascending planes whose z is in slice k or above. */
static __device__ int first_plane(const struct scan &scan, const struct grid &g, int k)
{
	int low = 0, high = scan.n_u;

	while (low < high) {
		int middle = (low + high) / 2;

		if (floor((scan.planes[middle].z - g.lo[2]) / g.h[2]) >= k)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	back_interpolated_kernel(struct scan scan, const struct scan_view *views, int n_views, struct grid grid, const float *y,
				 size_t n, bool add, float *x)
{
	const size_t i = cuda_index();
	struct voxel v;
	double px, py, pitch, sum = 0;
	int first, end;

	if (i >= n)
		return;
	v = voxel_of(grid, i);
	if (v.padding) {
		x[i] = add ? x[i] : 0;
		return;
	}
	px = grid.lo[0] + (v.at[0] + 0.5) * grid.h[0];
	py = grid.lo[1] + (v.at[1] + 0.5) * grid.h[1];
	pitch = scan.n_v > 1 ? (scan.radius[scan.n_v - 1] - scan.radius[0]) / (scan.n_v - 1) : 1;
	first = first_plane(scan, grid, v.at[2]);
	end = first_plane(scan, grid, v.at[2] + 1);
	for (int view = 0; view < n_views && px * px + py * py < scan.fov_radius * scan.fov_radius; view++) {
		double at = (px * views[view].turn[0] + py * views[view].turn[1] - scan.radius[0]) / pitch;

		if (at >= -LINE_EDGE && at <= scan.n_v - 1 + LINE_EDGE) {
			int bin = max(0, min((int)at, scan.n_v - 2));
			const float *low = y + ((size_t)view * scan.n_v + bin) * scan.n_u, *high = low + scan.n_u;

			at = fmin(fmax(at - bin, 0.0), 1.0);
			for (int u = first; u < end; u++)
				sum += (1 - at) * low[u] + (at > 0 ? at * high[u] : 0);
		}
	}
	sum = end > first ? sum / (end - first) : 0;
	x[i] = (float)(add ? x[i] + sum : sum);
}

struct stack_job {
	const struct scan_view *views;
	const float *y;
	float *x;
	double first[2], h[2]; /* centre of pixel (0, 0), mm; distance of pixels */
	double radius, inv_pitch, fov2;
	int n_views, n_v, n_u, nx, ny, column;
	bool add;
};

/* Where the pixels of a tile project to in a view: pixel (dx, dy) to the bin `first` + at + dx along[0] + dy along[1]. */
struct tile_bins {
	float at, along[2];
	int first;
};

static __device__ struct tile_bins tile_bins_of(const struct stack_job &job, int view, int x, int y)
{
	const double turn[2] = {job.views[view].turn[0] * job.inv_pitch, job.views[view].turn[1] * job.inv_pitch};
	const double at = (job.first[0] + x * job.h[0]) * turn[0] + (job.first[1] + y * job.h[1]) * turn[1] + job.radius;
	const double first = fmax(fmin(floor(at), 1e9), -1e9);

	return {(float)(at - first), {(float)(turn[0] * job.h[0]), (float)(turn[1] * job.h[1])}, (int)first};
}

/* Before the first or after the last bin: up to LINE_EDGE outside counts as that bin. Otherwise the weights become 0. */
static __device__ void at_edge(int n_v, int *bin, float *part, float *rest)
{
	const bool low = *bin == -1 && *part >= 1 - (float)LINE_EDGE, high = *bin == n_v - 1 && *part <= (float)LINE_EDGE;

	*bin = *bin < 0 ? 0 : n_v - 2;
	*rest = low;
	*part = high;
}

/* Backproject a stack, in which plane u is slice u. */
template <int WIDE>
static __global__ void __launch_bounds__(PIXELS_THREADS, WIDE == 4 ? 6 : 8)
	stack_kernel(const __grid_constant__ struct stack_job job, const struct pixel_tiles tiles)
{
	__shared__ struct tile_bins tile[PIXELS_VIEWS];
	const struct tile_pixel p = tile_pixel_of(tiles);
	const int x = p.x0 + p.dx, y = p.y0 + p.dy;
	const double px = job.first[0] + x * job.h[0], py = job.first[1] + y * job.h[1];
	const bool on = x < job.nx && y < job.ny && p.z < job.n_u, seen = on && px * px + py * py < job.fov2;
	const float dx = (float)p.dx, dy = (float)p.dy;
	const unsigned bin_step = (unsigned)job.n_u * sizeof(float);
	const size_t view_step = (size_t)job.n_v * bin_step;
	const char *bins = (const char *)(job.y + (on ? p.z : 0));
	float sum[WIDE] = {};

	for (int begin = 0; begin < job.n_views; begin += PIXELS_VIEWS) {
		const int n = min(PIXELS_VIEWS, job.n_views - begin);

		__syncthreads();
		if (threadIdx.x < n)
			tile[threadIdx.x] = tile_bins_of(job, begin + (int)threadIdx.x, p.x0, p.y0);
		__syncthreads();
		if (!seen)
			continue;
#pragma unroll 4
		for (int k = 0; k < n; k++, bins += view_step) {
			const struct tile_bins t = tile[k];
			const float at = fmaf(dx, t.along[0], fmaf(dy, t.along[1], t.at)), floored = pixels_floor(at);
			int bin = t.first + pixels_whole(floored);
			float part = at - (floored - PIXELS_MAGIC), rest = 1 - part;
			const char *low;

			if ((unsigned)bin > (unsigned)(job.n_v - 2))
				at_edge(job.n_v, &bin, &part, &rest);
			low = bins + (size_t)(unsigned)bin * bin_step;
			if constexpr (WIDE == 4) {
				const float4 a = __ldg((const float4 *)low), b = __ldg((const float4 *)(low + bin_step));

				sum[0] = fmaf(part, b.x, fmaf(rest, a.x, sum[0]));
				sum[1] = fmaf(part, b.y, fmaf(rest, a.y, sum[1]));
				sum[2] = fmaf(part, b.z, fmaf(rest, a.z, sum[2]));
				sum[3] = fmaf(part, b.w, fmaf(rest, a.w, sum[3]));
			} else {
				sum[0] = fmaf(part, __ldg((const float *)(low + bin_step)),
					      fmaf(rest, __ldg((const float *)low), sum[0]));
			}
		}
	}
	if (on)
		put_slices<WIDE>(job.x + ((size_t)y * job.nx + x) * job.column, p.z, job.n_u, job.column, sum, job.add);
}

#define SLICE_WIDTH 32
#define SLICE_ROWS 4 /* pixels of a thread */
#define SLICE_HEIGHT (PIXELS_THREADS / SLICE_WIDTH * SLICE_ROWS)
#define FULL_BLOCKS 500 /* with fewer, SLICE_ROWS times smaller ones divide the work better */

struct slice_bins {
	struct tile_bins bins;
	bool inside; /* the whole tile projects between the first and the last bin */
};

static __device__ struct slice_bins slice_bins_of(const struct stack_job &job, int view, int x, int y)
{
	const struct tile_bins t = tile_bins_of(job, view, x, y);
	const float w = t.along[0] * (SLICE_WIDTH - 1), h = t.along[1] * (SLICE_HEIGHT - 1), margin = 1e-3f;
	const float low = t.at + fminf(w, 0) + fminf(h, 0) - margin, high = t.at + fmaxf(w, 0) + fmaxf(h, 0) + margin;

	return {t, (float)t.first + low >= 0 && (float)t.first + high < (float)(job.n_v - 1)};
}

/* Add the bins of a view to the pixels of a thread, whose first has the position `at`; `step` further for each. */
template <bool INSIDE>
static __device__ __forceinline__ void add_slice_view(int n_v, const float *bins, int first, float at, float step,
						      float sum[SLICE_ROWS])
{
#pragma unroll
	for (int c = 0; c < SLICE_ROWS; c++) {
		const float here = fmaf((float)c, step, at), floored = pixels_floor(here);
		float part = here - (floored - PIXELS_MAGIC), rest = 1 - part;
		int bin = first + pixels_whole(floored);

		if (!INSIDE && (unsigned)bin > (unsigned)(n_v - 2))
			at_edge(n_v, &bin, &part, &rest);
		sum[c] = fmaf(part, __ldg(bins + (unsigned)bin + 1), fmaf(rest, __ldg(bins + (unsigned)bin), sum[c]));
	}
}

/* Backproject a single slice. */
static __global__ void __launch_bounds__(PIXELS_THREADS, 5) slice_kernel(const __grid_constant__ struct stack_job job)
{
	__shared__ struct slice_bins tile[PIXELS_VIEWS];
	const int x0 = (int)blockIdx.x * SLICE_WIDTH, y0 = (int)blockIdx.y * SLICE_HEIGHT;
	const int dx = (int)threadIdx.x % SLICE_WIDTH, dy = (int)threadIdx.x / SLICE_WIDTH, rows = PIXELS_THREADS / SLICE_WIDTH;
	const double px = job.first[0] + (x0 + dx) * job.h[0];
	const float *bins = job.y;
	float sum[SLICE_ROWS] = {};
	bool seen[SLICE_ROWS], any = false;

#pragma unroll
	for (int c = 0; c < SLICE_ROWS; c++) {
		const double py = job.first[1] + (y0 + dy + c * rows) * job.h[1];

		seen[c] = px * px + py * py < job.fov2;
		any = any || seen[c];
	}
	for (int begin = 0; begin < job.n_views; begin += PIXELS_VIEWS) {
		const int n = min(PIXELS_VIEWS, job.n_views - begin);

		__syncthreads();
		if (threadIdx.x < n)
			tile[threadIdx.x] = slice_bins_of(job, begin + (int)threadIdx.x, x0, y0);
		__syncthreads();
		if (!any)
			continue;
#pragma unroll 2
		for (int k = 0; k < n; k++, bins += job.n_v) {
			const struct tile_bins t = tile[k].bins;
			const float at = fmaf((float)dx, t.along[0], fmaf((float)dy, t.along[1], t.at));

			if (tile[k].inside)
				add_slice_view<true>(job.n_v, bins, t.first, at, rows * t.along[1], sum);
			else
				add_slice_view<false>(job.n_v, bins, t.first, at, rows * t.along[1], sum);
		}
	}
#pragma unroll
	for (int c = 0; c < SLICE_ROWS; c++) {
		const int x = x0 + dx, y = y0 + dy + c * rows;
		const float value = seen[c] ? sum[c] : 0;

		if (x < job.nx && y < job.ny)
			put_slices<1>(job.x + ((size_t)y * job.nx + x) * job.column, 0, 1, job.column, &value, job.add);
	}
}

static int back_stack(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	const struct grid *g = &a->grid;
	const struct pixel_tiles tiles = pixel_tiles_of(a->scan.n_u);
	const dim3 blocks = pixel_tiles_blocks(tiles, g, a->scan.n_u);
	const dim3 slices((unsigned)((g->n[0] + SLICE_WIDTH - 1) / SLICE_WIDTH),
			  (unsigned)((g->n[1] + SLICE_HEIGHT - 1) / SLICE_HEIGHT));
	struct stack_job job = {};

	job.views = a->views;
	job.y = y->mem;
	job.x = x->mem;
	for (int c = 0; c < 2; c++) {
		job.first[c] = g->lo[c] + 0.5 * g->h[c];
		job.h[c] = g->h[c];
	}
	job.inv_pitch = 1 / a->radial_pitch;
	job.radius = -a->radial_first / a->radial_pitch;
	job.fov2 = a->scan.fov_radius * a->scan.fov_radius;
	job.n_views = a->n_views;
	job.n_v = a->scan.n_v;
	job.n_u = a->scan.n_u;
	job.nx = g->n[0];
	job.ny = g->n[1];
	job.column = (int)(g->z_fastest ? grid_column(g) : 1);
	job.add = add;
	if (job.n_u == 1 && slices.x * slices.y >= FULL_BLOCKS)
		slice_kernel<<<slices, PIXELS_THREADS, 0, cuda_state(a->dev)->stream>>>(job);
	else if (tiles.wide == 4)
		stack_kernel<4><<<blocks, PIXELS_THREADS, 0, cuda_state(a->dev)->stream>>>(job, tiles);
	else
		stack_kernel<1><<<blocks, PIXELS_THREADS, 0, cuda_state(a->dev)->stream>>>(job, tiles);
	return cuda_check(cudaGetLastError(), a->dev, "back_interpolated", err);
}

int cuda_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	int r = check_volume("back_interpolated", x, &a->grid, err);

	if (r == 0 && y->n != (size_t)a->n_views * scan_view_size(&a->scan))
		r = err_set(err, EINVAL, "%s: back_interpolated: the projections have %zu floats, but the scan has %zu bins",
			    a->dev->name, y->n, (size_t)a->n_views * scan_view_size(&a->scan));
	if (r == 0 && (a->scan.kind != SCAN_PARALLEL || !a->level))
		r = err_set(err, EINVAL, "%s: back_interpolated: supports only parallel rays in planes of rise 0", a->dev->name);
	if (r == 0 && a->scan.tof.n)
		r = err_set(err, ENOTSUP, "%s: back_interpolated: does not support time of flight", a->dev->name);
	r = r < 0 ? r : cuda_check(cudaSetDevice(a->dev->index), a->dev, "back_interpolated", err);
	if (r < 0)
		return r;
	if (a->stack && a->scan.n_v > 1)
		return back_stack(a, y, add, x, err);
	back_interpolated_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		a->scan, a->views, a->n_views, a->grid, y->mem, x->n, add, x->mem);
	return cuda_check(cudaGetLastError(), a->dev, "back_interpolated", err);
}
