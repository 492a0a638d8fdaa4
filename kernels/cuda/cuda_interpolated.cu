/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_interpolated.cu - voxel-driven backprojection (back_interpolated()). For a stack, a thread computes WIDE adjacent slices
 * of a pixel, which have the same bin and weight; for other planes of rise 0, it computes one voxel. Positions are double: at bin
 * 2000 a float resolves only 1e-4 of a bin. */
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

#define TURNS 256 /* views whose angles are in shared memory at a time */

struct stack_job {
	const struct scan_view *views;
	const float *y;
	float *x;
	double first[2], h[2]; /* centre of pixel (0, 0), mm; distance of pixels */
	double radius, inv_pitch, fov2;
	int n_views, n_v, n_u, nx, ny, column;
	bool add;
};

/* Backproject a stack, in which plane u is slice u: one thread per WIDE adjacent slices of a pixel. */
template <int WIDE> static __global__ void __launch_bounds__(CUDA_THREADS) stack_kernel(const struct stack_job job)
{
	__shared__ double2 turn[TURNS];
	const int parts = job.n_u / WIDE;
	const size_t i = cuda_index(), pixel = i / parts;
	const int u = (int)(i % parts) * WIDE;
	const bool on = pixel < (size_t)job.nx * job.ny;
	const double px = job.first[0] + (double)(pixel % job.nx) * job.h[0],
		     py = job.first[1] + (double)(pixel / job.nx) * job.h[1];
	const bool seen = on && px * px + py * py < job.fov2;
	float sum[WIDE] = {};

	for (int view0 = 0; view0 < job.n_views; view0 += TURNS) {
		const int n = min(TURNS, job.n_views - view0);

		__syncthreads();
		for (int k = threadIdx.x; k < n; k += CUDA_THREADS) /* bins per mm */
			turn[k] = make_double2(job.views[view0 + k].turn[0] * job.inv_pitch,
					       job.views[view0 + k].turn[1] * job.inv_pitch);
		__syncthreads();
#pragma unroll 4
		for (int k = 0; seen && k < n; k++) {
			double at = fma(px, turn[k].x, fma(py, turn[k].y, job.radius));

			if (at >= -LINE_EDGE && at <= job.n_v - 1 + LINE_EDGE) {
				const int bin = max(0, min((int)at, job.n_v - 2));
				const float *low = job.y + ((size_t)(view0 + k) * job.n_v + bin) * job.n_u + u;
				const float part = fminf(fmaxf((float)(at - bin), 0), 1);

				if constexpr (WIDE == 4) {
					float4 a = __ldg((const float4 *)low), b = __ldg((const float4 *)(low + job.n_u));

					sum[0] += fmaf(part, b.x - a.x, a.x);
					sum[1] += fmaf(part, b.y - a.y, a.y);
					sum[2] += fmaf(part, b.z - a.z, a.z);
					sum[3] += fmaf(part, b.w - a.w, a.w);
				} else {
					float a = __ldg(low), b = __ldg(low + job.n_u);

					sum[0] += fmaf(part, b - a, a);
				}
			}
		}
	}
	for (int w = 0; on && w < WIDE; w++) {
		float *x = job.x + pixel * job.column + u + w;

		*x = job.add ? *x + sum[w] : sum[w];
	}
	for (int z = job.n_u; on && !job.add && u == 0 && z < job.column; z++)
		job.x[pixel * job.column + z] = 0; /* the padding */
}

static int back_stack(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	const struct grid *g = &a->grid;
	const int wide = a->scan.n_u % 4 ? 1 : 4;
	size_t n = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)(a->scan.n_u / wide);
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
	if (wide == 4)
		stack_kernel<4><<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(job);
	else
		stack_kernel<1><<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(job);
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
