/* cuda_slices.cu - the slice-by-slice operator on the CUDA device (kernels/slice_map.h): both directions gather.
 *
 * Forward: a thread per bin walks down the slices. Back: a small pass first weights each bin with its ray's length, (p l, l),
 * once per bin; then a thread per voxel gathers the bins that touch it, over all views of the projection, and updates its voxel
 * in place. Both take a weight from the same product scale * bin + shift, so the adjoint is exact to rounding; nothing is added
 * by two threads, so every run gives the same bits.
 */
#include "kernels/cuda.cuh"

static __device__ bool bin_counts(const float *mask, size_t i)
{
	return !mask || mask[i] > 0;
}

static __device__ float bin_length(const struct scan *scan, const struct scan_view *view, const struct grid *grid, int u, int v)
{
	return (float)sqrt(slice_length_u(scan, view, grid, u) + slice_length_v(scan, view, grid, v));
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	forward_kernel(struct scan scan, const struct scan_view *views, const struct slice_map *maps, const float *mask,
		       struct grid grid, const float *x, const float *y, float least, float *out)
{
	int u = blockIdx.x * 32 + (threadIdx.x & 31), v = blockIdx.y * 8 + (threadIdx.x >> 5), s = blockIdx.z;
	int nx = grid.n[0], ny = grid.n[1], nz = grid.n[2];
	size_t slice = (size_t)nx * ny, at = (size_t)s * scan_view_size(&scan) + (size_t)v * scan.n_u + u;
	float sum = 0;

	if (u >= scan.n_u || v >= scan.n_v)
		return;
	if (!bin_counts(mask, at)) {
		out[at] = 0;
		return;
	}
	for (int k = 0; k < nz; k++) {
		const struct slice_map *map = maps + (size_t)s * nz + k;
		double fx = fma(map->scale[0], (double)u, map->shift[0]), fy = fma(map->scale[1], (double)v, map->shift[1]);
		int i = (int)floor(fx), j = (int)floor(fy);
		float a = (float)(fx - i), b = (float)(fy - j);
		const float *p = x + (size_t)k * slice + (ptrdiff_t)j * nx + i;
		bool left = i >= 0 && i < nx, right = i + 1 >= 0 && i + 1 < nx, low = j >= 0 && j < ny,
		     high = j + 1 >= 0 && j + 1 < ny;
		float p00 = left && low ? p[0] : 0, p10 = right && low ? p[1] : 0;
		float p01 = left && high ? p[nx] : 0, p11 = right && high ? p[nx + 1] : 0;

		sum += (1 - b) * ((1 - a) * p00 + a * p10) + b * ((1 - a) * p01 + a * p11);
	}
	sum *= bin_length(&scan, views + s, &grid, u, v);
	out[at] = !y ? sum : sum > least ? y[at] / sum : 0;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	weight_kernel(struct scan scan, const struct scan_view *views, const float *mask, struct grid grid, const float *p,
		      float2 *weighted)
{
	int u = blockIdx.x * 32 + (threadIdx.x & 31), v = blockIdx.y * 8 + (threadIdx.x >> 5), s = blockIdx.z;
	size_t at = (size_t)s * scan_view_size(&scan) + (size_t)v * scan.n_u + u;
	float length;

	if (u >= scan.n_u || v >= scan.n_v)
		return;
	length = bin_counts(mask, at) ? bin_length(&scan, views + s, &grid, u, v) : 0;
	weighted[at] = length > 0 ? make_float2(p[at] * length, length) : make_float2(0, 0);
}

template <bool UPDATE>
static __global__ void __launch_bounds__(CUDA_THREADS)
	back_kernel(struct scan scan, const struct slice_map *maps, struct grid grid, int n_views, const float2 *weighted,
		    float least, float *x)
{
	int i = blockIdx.x * 32 + (threadIdx.x & 31), j = blockIdx.y * 8 + (threadIdx.x >> 5), k = blockIdx.z;
	size_t at = ((size_t)k * grid.n[1] + j) * grid.n[0] + i;
	float num = 0, den = 0;

	if (i >= grid.n[0] || j >= grid.n[1])
		return;
	for (int s = 0; s < n_views; s++) {
		const struct slice_map map = maps[(size_t)s * grid.n[2] + k];
		const float2 *view = weighted + (size_t)s * scan_view_size(&scan);
		int u0 = (int)fmax(0.0, slice_first_bin(&map, 0, i)), v0 = (int)fmax(0.0, slice_first_bin(&map, 1, j));

		for (int v = v0; v < scan.n_v; v++) {
			double dy = fma(map.scale[1], (double)v, map.shift[1]) - j;
			float wy = 1 - fabsf((float)dy), row_num = 0, row_den = 0;

			if (dy >= 1)
				break;
			if (!(wy > 0))
				continue;
			for (int u = u0; u < scan.n_u; u++) {
				double dx = fma(map.scale[0], (double)u, map.shift[0]) - i;
				float wx = 1 - fabsf((float)dx);
				float2 q;

				if (dx >= 1)
					break;
				if (!(wx > 0))
					continue;
				q = view[(size_t)v * scan.n_u + u];
				row_num += wx * q.x;
				row_den += wx * q.y;
			}
			num += wy * row_num;
			den += wy * row_den;
		}
	}
	if (!UPDATE)
		x[at] = num;
	else if (den > least)
		x[at] *= num / den;
}

int cuda_slices_forward(struct projection *a, const float *x, const float *y, float floor, float *out, struct err *err)
{
	dim3 blocks((unsigned)(a->scan.n_u + 31) / 32, (unsigned)(a->scan.n_v + 7) / 8, (unsigned)a->n_views);

	forward_kernel<<<blocks, CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(a->scan, a->views, a->maps, a->mask, a->grid, x,
										y, floor, out);
	return cuda_check(cudaGetLastError(), a->dev, "slices forward", err);
}

int cuda_slices_back(struct projection *a, const float *p, float floor, bool update, float *x, float2 *weighted, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	dim3 bins((unsigned)(a->scan.n_u + 31) / 32, (unsigned)(a->scan.n_v + 7) / 8, (unsigned)a->n_views);
	dim3 voxels((unsigned)(a->grid.n[0] + 31) / 32, (unsigned)(a->grid.n[1] + 7) / 8, (unsigned)a->grid.n[2]);

	weight_kernel<<<bins, CUDA_THREADS, 0, stream>>>(a->scan, a->views, a->mask, a->grid, p, weighted);
	if (update)
		back_kernel<true><<<voxels, CUDA_THREADS, 0, stream>>>(a->scan, a->maps, a->grid, a->n_views, weighted, floor, x);
	else
		back_kernel<false>
			<<<voxels, CUDA_THREADS, 0, stream>>>(a->scan, a->maps, a->grid, a->n_views, weighted, floor, x);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}
