/* cuda_exact.cu - the ray walk on the CUDA device: a thread per bin.
 *
 * The adjoint scatters: float atomics, or, bitwise repeatable, 64-bit fixed-point sums. A contribution is at most max |y| times
 * the voxel's diagonal; that is given 2^40 steps, which leaves room for 2^22 contributions to a voxel and an error of 2^-40 of
 * the largest.
 */
#include "kernels/cuda.cuh"

static __global__ void __launch_bounds__(CUDA_THREADS)
	forward_kernel(struct scan scan, const struct scan_view *views, const float *mask, struct grid grid, int n_views,
		       const float *x, float *y)
{
	size_t i = cuda_index(), per_view = scan_view_size(&scan), voxel;
	struct ray_walk w;
	struct voxel_box box = voxel_box_whole(&grid);
	double a[3], b[3], length, sum = 0;

	if (i >= per_view * (size_t)n_views)
		return;
	if (!mask || mask[i] > 0) {
		scan_ray(&scan, views + i / per_view, (int)(i % per_view % scan.n_u), (int)(i % per_view / scan.n_u), a, b);
		if (ray_walk_start(&w, &grid, &box, a, b))
			while (ray_walk_next(&w, &voxel, &length))
				sum += length * x[voxel];
	}
	y[i] = (float)sum;
}

template <bool FIXED>
static __global__ void __launch_bounds__(CUDA_THREADS)
	adjoint_kernel(struct scan scan, const struct scan_view *views, const float *mask, struct grid grid, int n_views,
		       const float *y, float *x, unsigned long long *fixed, const float *largest, double diagonal)
{
	size_t i = cuda_index(), per_view = scan_view_size(&scan), voxel;
	struct ray_walk w;
	struct voxel_box box = voxel_box_whole(&grid);
	double a[3], b[3], length, scale = 0;

	if (i >= per_view * (size_t)n_views || (mask && !(mask[i] > 0)) || y[i] == 0)
		return;
	if (FIXED)
		scale = 0x1p40 / (*largest * diagonal);
	scan_ray(&scan, views + i / per_view, (int)(i % per_view % scan.n_u), (int)(i % per_view / scan.n_u), a, b);
	if (!ray_walk_start(&w, &grid, &box, a, b))
		return;
	while (ray_walk_next(&w, &voxel, &length)) {
		if (FIXED)
			atomicAdd(fixed + voxel, (unsigned long long)__double2ll_rn(length * y[i] * scale));
		else
			atomicAdd(x + voxel, (float)(length * y[i]));
	}
}

/* The largest |y| of the bins that count, as the bits of a float that is not negative: those order like integers. */
static __global__ void largest_kernel(const float *y, const float *mask, size_t n, int *largest)
{
	int bits = 0;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		if (!mask || mask[i] > 0)
			bits = max(bits, __float_as_int(fabsf(y[i])));
	atomicMax(largest, bits);
}

static __global__ void unfix_kernel(const long long *fixed, size_t n, const float *largest, double diagonal, float *x)
{
	size_t i = cuda_index();

	if (i < n)
		x[i] = (float)((double)fixed[i] * (*largest * diagonal * 0x1p-40));
}

int cuda_exact_forward(struct projection *a, const float *x, float *y, struct err *err)
{
	size_t n = (size_t)a->n_views * scan_view_size(&a->scan);

	forward_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(a->scan, a->views, a->mask, a->grid,
											a->n_views, x, y);
	return cuda_check(cudaGetLastError(), a->dev, "exact forward", err);
}

int cuda_exact_adjoint(struct projection *a, const float *y, float *x, void *fixed, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n = (size_t)a->n_views * scan_view_size(&a->scan), n_x = grid_size(&a->grid);
	double diagonal = sqrt(a->grid.h[0] * a->grid.h[0] + a->grid.h[1] * a->grid.h[1] + a->grid.h[2] * a->grid.h[2]);
	unsigned long long *sums = (unsigned long long *)fixed;
	float *largest = fixed ? (float *)(sums + n_x) : NULL;
	int r;

	if (!fixed) {
		if ((r = cuda_check(cudaMemsetAsync(x, 0, n_x * sizeof(float), stream), a->dev, "exact adjoint", err)) < 0)
			return r;
		adjoint_kernel<false><<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->mask, a->grid,
										   a->n_views, y, x, NULL, NULL, diagonal);
		return cuda_check(cudaGetLastError(), a->dev, "exact adjoint", err);
	}
	if ((r = cuda_check(cudaMemsetAsync(fixed, 0, n_x * sizeof(*sums) + sizeof(float), stream), a->dev, "exact adjoint",
			    err)) < 0)
		return r;
	largest_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, stream>>>(y, a->mask, n, (int *)largest);
	adjoint_kernel<true><<<cuda_blocks(n), CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->mask, a->grid, a->n_views, y, x,
									  sums, largest, diagonal);
	unfix_kernel<<<cuda_blocks(n_x), CUDA_THREADS, 0, stream>>>((const long long *)sums, n_x, largest, diagonal, x);
	return cuda_check(cudaGetLastError(), a->dev, "exact adjoint", err);
}
