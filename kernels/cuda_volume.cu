/* cuda_volume.cu - passes over a volume that look at neighbours, and the voxel-driven half of filtered backprojection: a thread
 * for each float of the volume, which makes it in the CPU's order. */
#include "kernels/cuda.cuh"

#include <errno.h>

#include "kernels/blur.h"

#define WEIGHTS_MAX 1024

struct blur_job {
	const float *x;
	float *ret;
	struct grid grid;
	int axis, reach;
	float weight[WEIGHTS_MAX];
};

struct voxel {
	int at[3];
	bool padding;
};

static __device__ __forceinline__ struct voxel voxel_of(const struct grid &g, size_t i)
{
	struct voxel v;
	size_t column = g.z_fastest ? grid_column(&g) : 1, plane = (size_t)g.n[0] * g.n[1];

	if (g.z_fastest) {
		v.at[2] = (int)(i % column);
		v.at[0] = (int)(i / column % g.n[0]);
		v.at[1] = (int)(i / column / g.n[0]);
	} else {
		v.at[2] = (int)(i / plane);
		v.at[0] = (int)(i % plane % g.n[0]);
		v.at[1] = (int)(i % plane / g.n[0]);
	}
	v.padding = v.at[2] >= g.n[2];
	return v;
}

static __global__ void __launch_bounds__(CUDA_THREADS) blur_kernel(const __grid_constant__ struct blur_job job, size_t n)
{
	const size_t step = grid_step(&job.grid, job.axis);
	const size_t i = cuda_index();
	struct voxel v;
	float sum;
	int here;

	if (i >= n)
		return;
	v = voxel_of(job.grid, i);
	if (v.padding) {
		job.ret[i] = 0;
		return;
	}
	here = v.at[job.axis];
	sum = job.weight[0] * job.x[i];
	for (int d = 1; d <= job.reach; d++) {
		if (here - d >= 0)
			sum = fmaf(job.weight[d], job.x[i - d * step], sum);
		if (here + d < job.grid.n[job.axis])
			sum = fmaf(job.weight[d], job.x[i + d * step], sum);
	}
	job.ret[i] = sum;
}

static int check_volume(const char *what, const struct buf *x, const struct grid *g, struct err *err)
{
	if (x->n != grid_size(g))
		return err_set(err, EINVAL, "%s: %s: volume of %zu floats for a grid of %zu voxels", x->dev->name, what, x->n,
			       grid_size(g));
	return 0;
}

int cuda_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
	      struct err *err)
{
	float *to[3] = {ret->mem, work->mem, ret->mem};
	const float *from = x->mem;
	int r = check_volume("blur", x, grid, err);

	r = r < 0 ? r : check_volume("blur", work, grid, err);
	r = r < 0 ? r : check_volume("blur", ret, grid, err);
	if (r == 0 && (x->mem == ret->mem || x->mem == work->mem || work->mem == ret->mem))
		r = err_set(err, EINVAL, "%s: blur: its three volumes are not different ones", x->dev->name);
	for (int c = 0; r == 0 && c < 3; c++)
		if (!(sigma[c] >= 0) || !isfinite(sigma[c]) || grid->n[c] > WEIGHTS_MAX)
			r = err_set(err, EINVAL, "%s: blur: sigma of %g mm along axis %d of %d voxels", x->dev->name, sigma[c], c,
				    grid->n[c]);
	r = r < 0 ? r : cuda_check(cudaSetDevice(x->dev->index), x->dev, "blur", err);
	for (int i = 0; r == 0 && i < 3; i++) {
		struct blur_job job = {};

		job.axis = grid->z_fastest ? (i + 2) % 3 : i;
		job.x = from;
		job.ret = to[i];
		job.grid = *grid;
		job.reach = blur_weights(sigma[job.axis], grid->h[job.axis], grid->n[job.axis], job.weight);
		blur_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(x->dev)->stream>>>(job, x->n);
		r = cuda_check(cudaGetLastError(), x->dev, "blur", err);
		from = to[i];
	}
	return r;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	gradient_kernel(struct prior prior, const float *x, struct grid grid, size_t n, float *ret)
{
	const size_t i = cuda_index();
	float here, sum = 0;
	struct voxel v;

	if (i >= n)
		return;
	v = voxel_of(grid, i);
	here = v.padding ? 0 : x[i];
	for (int dz = -1; here != 0 && dz <= 1; dz++)
		for (int dy = -1; dy <= 1; dy++)
			for (int dx = -1; dx <= 1; dx++) {
				double ax = dx * grid.h[0], ay = dy * grid.h[1], az = dz * grid.h[2];
				float other;

				if ((dx == 0 && dy == 0 && dz == 0) || (unsigned)(v.at[0] + dx) >= (unsigned)grid.n[0] ||
				    (unsigned)(v.at[1] + dy) >= (unsigned)grid.n[1] ||
				    (unsigned)(v.at[2] + dz) >= (unsigned)grid.n[2])
					continue;
				other = x[(ptrdiff_t)i + dx * (ptrdiff_t)grid_step(&grid, 0) +
					  dy * (ptrdiff_t)grid_step(&grid, 1) + dz * (ptrdiff_t)grid_step(&grid, 2)];
				if (other != 0)
					sum += (float)(prior.beta * grid.h[0] / sqrt(ax * ax + ay * ay + az * az)) *
					       prior_slope(&prior, here, other);
			}
	ret[i] = sum;
}

int cuda_prior_gradient(const struct prior *prior, const struct buf *x, const struct grid *grid, struct buf *ret, struct err *err)
{
	int r = check_volume("prior", x, grid, err);

	r = r < 0 ? r : check_volume("prior", ret, grid, err);
	if (r == 0 && x->mem == ret->mem)
		r = err_set(err, EINVAL, "%s: prior: the gradient cannot replace its volume", x->dev->name);
	if (r == 0 && (!(prior->epsilon > 0) || !(prior->gamma >= 0) || !isfinite(prior->beta)))
		r = err_set(err, EINVAL, "%s: prior: beta=%g, gamma=%g, epsilon=%g", x->dev->name, (double)prior->beta,
			    (double)prior->gamma, (double)prior->epsilon);
	r = r < 0 ? r : cuda_check(cudaSetDevice(x->dev->index), x->dev, "prior", err);
	if (r < 0)
		return r;
	gradient_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(x->dev)->stream>>>(*prior, x->mem, *grid, x->n,
											    ret->mem);
	return cuda_check(cudaGetLastError(), x->dev, "prior", err);
}

/* The first of the planes, which ascend, whose z lies in slice k or above. */
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

		if (at >= 0 && at <= scan.n_v - 1) {
			int bin = max(0, min((int)at, scan.n_v - 2));
			const float *low = y + ((size_t)view * scan.n_v + bin) * scan.n_u, *high = low + scan.n_u;

			at -= bin;
			for (int u = first; u < end; u++)
				sum += (1 - at) * low[u] + (at > 0 ? at * high[u] : 0);
		}
	}
	sum = end > first ? sum / (end - first) : 0;
	x[i] = (float)(add ? x[i] + sum : sum);
}

int cuda_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	int r = check_volume("back_interpolated", x, &a->grid, err);

	if (r == 0 && y->n != (size_t)a->n_views * scan_view_size(&a->scan))
		r = err_set(err, EINVAL, "%s: back_interpolated: projections of %zu floats for %zu bins", a->dev->name, y->n,
			    (size_t)a->n_views * scan_view_size(&a->scan));
	if (r == 0 && (a->scan.kind != SCAN_PARALLEL || !a->level))
		r = err_set(err, EINVAL, "%s: back_interpolated: wants parallel rays in planes that do not rise", a->dev->name);
	r = r < 0 ? r : cuda_check(cudaSetDevice(a->dev->index), a->dev, "back_interpolated", err);
	if (r < 0)
		return r;
	back_interpolated_kernel<<<cuda_blocks(x->n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		a->scan, a->views, a->n_views, a->grid, y->mem, x->n, add, x->mem);
	return cuda_check(cudaGetLastError(), a->dev, "back_interpolated", err);
}
