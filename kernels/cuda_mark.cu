/* cuda_mark.cu - what the views tell about each voxel, on the CUDA device: a thread per voxel. See mark() in kernels/device.h. */
#include "kernels/cuda.cuh"

/* Does a bin that counts lie within a voxel of (i, j)? */
static __device__ bool met(const struct slice_map &map, int i, int j, int n_u, int n_v, const float *mask)
{
	int u0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 0, i)), (double)n_u);
	int v0 = (int)fmin(fmax(0.0, slice_first_bin(&map, 1, j)), (double)n_v);

	/* A bin at exactly one voxel's distance is none; the next one may be. */
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

static __global__ void __launch_bounds__(CUDA_THREADS)
	mark_kernel(struct scan scan, const struct slice_map *maps, struct grid grid, int n_views, const float *mask, float *x)
{
	const int nx = grid.n[0], ny = grid.n[1], nz = grid.n[2];
	size_t n = grid_size(&grid);

	for (size_t at = cuda_index(); at < n; at += (size_t)gridDim.x * blockDim.x) {
		int i = (int)(at % nx), j = (int)(at / nx % ny), k = (int)(at / nx / ny);
		bool seen = false, air = x[at] < 0;

		for (int s = 0; s < n_views && !air; s++) {
			const struct slice_map map = maps[(size_t)s * nz + k];
			const float *view = mask ? mask + (size_t)s * scan_view_size(&scan) : NULL;
			long long u = slice_nearest_bin(&map, 0, i), v = slice_nearest_bin(&map, 1, j);

			air = view && u >= 0 && u < scan.n_u && v >= 0 && v < scan.n_v && view[(size_t)v * scan.n_u + u] < 0;
			seen = seen || met(map, i, j, scan.n_u, scan.n_v, view);
		}
		if (air)
			x[at] = x[at] < 0 ? x[at] : -1;
		else if (seen)
			x[at] = 1;
	}
}

int cuda_mark(struct projection *a, struct buf *x, struct err *err)
{
	mark_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(a->scan, a->maps, a->grid, a->n_views,
											a->mask, x->mem);
	return cuda_check(cudaGetLastError(), a->dev, "mark", err);
}
