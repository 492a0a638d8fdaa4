/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_exact.cu - the ray walk on the CUDA device: a thread per bin. The adjoint adds to the volume with float atomics or, for
 * bitwise repeatable results, with 64-bit fixed-point sums. The largest possible contribution, max |y| times the voxel's
 * diagonal, is 2^40 steps; so a voxel can receive 2^22 contributions without overflow, and the error is 2^-40 of the largest
 * one. Time of flight: a thread per ray, which has a bin for each TOF bin (kernels/tof_walk.h). */
#include "kernels/cuda/cuda.cuh"
#include "kernels/tof_walk.h"

static __global__ void __launch_bounds__(CUDA_THREADS)
	forward_kernel(struct scan scan, const struct scan_view *views, const float *mask, struct grid grid, int n_views,
		       const float *x, bool add, float *y)
{
	size_t i = cuda_index(), per_view = scan_view_size(&scan), voxel;
	struct ray_walk w;
	struct voxel_box box = voxel_box_whole(&grid);
	double a[3], b[3], length, sum = 0;

	if (i >= per_view * (size_t)n_views)
		return;
	if (!mask || mask[i] > 0) {
		if (scan_ray(&scan, views + i / per_view, (int)(i % per_view % scan.n_u), (int)(i % per_view / scan.n_u), a, b) &&
		    ray_walk_start(&w, &grid, &box, a, b))
			while (ray_walk_next(&w, &voxel, &length))
				sum += length * x[voxel];
	}
	y[i] = (float)(add ? y[i] + sum : sum);
}

/* The rays of a scan with time of flight: ray i begins with bin first_bin(); its TOF bins are n_u apart. */
struct tof_rays {
	struct scan scan;
	const struct scan_view *views;
	struct grid grid;
	double largest_rise; /* mm */
	size_t n;	     /* number of rays */
};

static __device__ size_t first_bin(const struct tof_rays &r, size_t i)
{
	return i / r.scan.n_u * r.scan.n_u * r.scan.tof.n + i % r.scan.n_u;
}

static __device__ bool enter_tof(const struct tof_rays &r, size_t i, struct tof_walk *w)
{
	const int u = (int)(i % r.scan.n_u), v = (int)(i / r.scan.n_u % r.scan.n_v);
	const struct scan_view *view = r.views + i / r.scan.n_u / r.scan.n_v;
	struct voxel_box box = voxel_box_whole(&r.grid);
	double a[3], b[3];

	return scan_ray(&r.scan, view, u, v, a, b) && tof_walk_start(w, &r.scan, v, r.largest_rise, &r.grid, &box, a, b);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	forward_tof_kernel(const __grid_constant__ struct tof_rays r, const float *x, float *y)
{
	size_t i = cuda_index();
	struct tof_piece piece;
	struct tof_walk w;
	int first, end;

	if (i >= r.n || !enter_tof(r, i, &w))
		return;
	y += first_bin(r, i);
	while (tof_walk_next(&w, &piece)) {
		tof_bins(&r.scan.tof, piece.middle, &first, &end);
		for (int k = first; k < end; k++)
			y[(size_t)k * r.scan.n_u] +=
				(float)(piece.length * tof_weight(&r.scan.tof, k, piece.middle) * x[piece.voxel]);
	}
}

/* fixed: used in place of x, or NULL. scale: see scatter_fixed_kernel(). */
static __global__ void __launch_bounds__(CUDA_THREADS)
	scatter_tof_kernel(const __grid_constant__ struct tof_rays r, const float *y, float *x, unsigned long long *fixed,
			   const float *largest, double diagonal)
{
	double scale = fixed ? 0x1p40 / (*largest * diagonal) : 0;
	size_t i = cuda_index();
	struct tof_piece piece;
	struct tof_walk w;
	int first, end;

	if (i >= r.n || !enter_tof(r, i, &w))
		return;
	y += first_bin(r, i);
	while (tof_walk_next(&w, &piece)) {
		double sum = 0;

		tof_bins(&r.scan.tof, piece.middle, &first, &end);
		for (int k = first; k < end; k++)
			sum += tof_weight(&r.scan.tof, k, piece.middle) * y[(size_t)k * r.scan.n_u];
		if (fixed)
			atomicAdd(fixed + piece.voxel, (unsigned long long)__double2ll_rn(piece.length * sum * scale));
		else
			atomicAdd(x + piece.voxel, (float)(piece.length * sum));
	}
}

/* The source of bin i: an array of bins, or q or d of the pairs (which are 0 for a bin that is not used). */
struct plain_bins {
	const float *y, *mask;
	__device__ float operator()(size_t i) const
	{
		return !mask || mask[i] > 0 ? y[i] : 0;
	}
};

struct pair_side {
	const float *pair;
	int side;
	__device__ float operator()(size_t i) const
	{
		return pair[2 * i + side];
	}
};

static __device__ bool enter_grid(const struct scan &scan, const struct scan_view *views, const struct grid &grid, size_t i,
				  struct ray_walk *w)
{
	size_t in_view = i % scan_view_size(&scan);
	struct voxel_box box = voxel_box_whole(&grid);
	double a[3], b[3];

	return scan_ray(&scan, views + i / scan_view_size(&scan), (int)(in_view % scan.n_u), (int)(in_view / scan.n_u), a, b) &&
	       ray_walk_start(w, &grid, &box, a, b);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	scatter_kernel(struct scan scan, const struct scan_view *views, struct grid grid, size_t n, struct plain_bins bins,
		       float *x)
{
	size_t i = cuda_index(), voxel;
	float y = i < n ? bins(i) : 0;
	struct ray_walk w;
	double length;

	if (y == 0 || !enter_grid(scan, views, grid, i, &w))
		return;
	while (ray_walk_next(&w, &voxel, &length))
		atomicAdd(x + voxel, (float)(length * y));
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	scatter_pair_kernel(struct scan scan, const struct scan_view *views, struct grid grid, size_t n, const float2 *pair,
			    float *num, float *den)
{
	size_t i = cuda_index(), voxel;
	float2 y = i < n ? pair[i] : make_float2(0, 0);
	struct ray_walk w;
	double length;

	if ((y.x == 0 && y.y == 0) || !enter_grid(scan, views, grid, i, &w))
		return;
	while (ray_walk_next(&w, &voxel, &length)) {
		atomicAdd(num + voxel, (float)(length * y.x));
		atomicAdd(den + voxel, (float)(length * y.y));
	}
}

template <class BINS>
static __global__ void __launch_bounds__(CUDA_THREADS)
	scatter_fixed_kernel(struct scan scan, const struct scan_view *views, struct grid grid, size_t n, BINS bins,
			     unsigned long long *fixed, const float *largest, double diagonal)
{
	size_t i = cuda_index(), voxel;
	float y = i < n ? bins(i) : 0;
	double scale = 0x1p40 / (*largest * diagonal), length;
	struct ray_walk w;

	if (y == 0 || !enter_grid(scan, views, grid, i, &w))
		return;
	while (ray_walk_next(&w, &voxel, &length))
		atomicAdd(fixed + voxel, (unsigned long long)__double2ll_rn(length * y * scale));
}

/* Find the largest |y|. The bits of non-negative floats have the same order as the integers with these bits, so atomicMax() of
 * integers is used. */
template <class BINS> static __global__ void __launch_bounds__(CUDA_THREADS) largest_kernel(BINS bins, size_t n, int *largest)
{
	int bits = 0;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		bits = max(bits, __float_as_int(fabsf(bins(i))));
	atomicMax(largest, bits);
}

static __global__ void unfix_kernel(const long long *fixed, size_t n, const float *largest, double diagonal, bool add, float *x)
{
	size_t i = cuda_index();

	if (i < n) {
		float sum = (float)((double)fixed[i] * (*largest * diagonal * 0x1p-40));

		x[i] = add ? x[i] + sum : sum;
	}
}

static size_t bins_of(const struct projection *a)
{
	return (size_t)a->n_views * scan_view_size(&a->scan);
}

static struct tof_rays tof_rays_of(const struct projection *a)
{
	struct tof_rays r = {a->scan, a->views, a->grid, a->largest_rise, 0};

	r.n = (size_t)a->n_views * (size_t)a->scan.n_v * (size_t)a->scan.n_u;
	return r;
}

/* Queue the kernel that adds all bins to `sums`, the 64-bit sums. */
static void queue_fixed(struct projection *a, struct plain_bins bins, unsigned long long *sums, const float *largest,
			double diagonal)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n = bins_of(a);

	if (a->scan.tof.n) {
		struct tof_rays rays = tof_rays_of(a);

		scatter_tof_kernel<<<cuda_blocks(rays.n), CUDA_THREADS, 0, stream>>>(rays, bins.y, NULL, sums, largest, diagonal);
		return;
	}
	scatter_fixed_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->grid, n, bins, sums, largest,
									  diagonal);
}

static void queue_fixed(struct projection *a, struct pair_side bins, unsigned long long *sums, const float *largest,
			double diagonal)
{
	size_t n = bins_of(a);

	scatter_fixed_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(a->scan, a->views, a->grid, n, bins,
											      sums, largest, diagonal);
}

/* Compute x = A'bins (with `add`: x += A'bins) in 64-bit integer sums, which do not depend on the order of the additions. */
template <class BINS> static int scatter_fixed(struct projection *a, BINS bins, bool add, float *x, void *fixed, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n = bins_of(a), n_x = grid_size(&a->grid);
	const double *h = a->grid.h, diagonal = sqrt(h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
	unsigned long long *sums = (unsigned long long *)fixed;
	float *largest = (float *)(sums + n_x);
	int r = cuda_check(cudaMemsetAsync(fixed, 0, n_x * sizeof(*sums) + sizeof(float), stream), a->dev, "exact back", err);

	if (r < 0)
		return r;
	largest_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, stream>>>(bins, n, (int *)largest);
	queue_fixed(a, bins, sums, largest, diagonal);
	unfix_kernel<<<cuda_blocks(n_x), CUDA_THREADS, 0, stream>>>((const long long *)sums, n_x, largest, diagonal, add, x);
	return cuda_check(cudaGetLastError(), a->dev, "exact back", err);
}

int cuda_exact_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n = bins_of(a);
	int r;

	if (a->scan.tof.n) {
		struct tof_rays rays = tof_rays_of(a);

		r = add ? 0 : cuda_check(cudaMemsetAsync(y, 0, n * sizeof(float), stream), a->dev, "exact forward", err);
		if (r < 0)
			return r;
		forward_tof_kernel<<<cuda_blocks(rays.n), CUDA_THREADS, 0, stream>>>(rays, x, y);
		return cuda_check(cudaGetLastError(), a->dev, "exact forward", err);
	}
	forward_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->mask, a->grid, a->n_views, x, add, y);
	return cuda_check(cudaGetLastError(), a->dev, "exact forward", err);
}

int cuda_exact_adjoint(struct projection *a, const float *y, bool add, float *x, void *fixed, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	struct plain_bins bins = {y, a->mask};
	size_t n = bins_of(a);
	int r;

	if (fixed)
		return scatter_fixed(a, bins, add, x, fixed, err);
	if (!add && (r = cuda_check(cudaMemsetAsync(x, 0, grid_size(&a->grid) * sizeof(float), stream), a->dev, "exact adjoint",
				    err)) < 0)
		return r;
	if (a->scan.tof.n) {
		struct tof_rays rays = tof_rays_of(a);

		scatter_tof_kernel<<<cuda_blocks(rays.n), CUDA_THREADS, 0, stream>>>(rays, y, x, NULL, NULL, 0);
	} else {
		scatter_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->grid, n, bins, x);
	}
	return cuda_check(cudaGetLastError(), a->dev, "exact adjoint", err);
}

int cuda_exact_sums(struct projection *a, const float2 *pair, bool add, float *num, float *den, void *fixed, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n = bins_of(a), bytes = grid_size(&a->grid) * sizeof(float);
	int r;

	if (fixed) {
		r = scatter_fixed(a, pair_side{(const float *)pair, 0}, add, num, fixed, err);
		return r < 0 ? r : scatter_fixed(a, pair_side{(const float *)pair, 1}, add, den, fixed, err);
	}
	if (!add && ((r = cuda_check(cudaMemsetAsync(num, 0, bytes, stream), a->dev, "exact back", err)) < 0 ||
		     (r = cuda_check(cudaMemsetAsync(den, 0, bytes, stream), a->dev, "exact back", err)) < 0))
		return r;
	scatter_pair_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->grid, n, pair, num, den);
	return cuda_check(cudaGetLastError(), a->dev, "exact back", err);
}
