/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_volume.cu - passes over a volume that use neighbours: one thread for each float of the volume, which adds in the same
 * order as the CPU. */
#include "kernels/cuda/cuda_volume.cuh"

#include "kernels/blur.h"

#define WEIGHTS_MAX 1024

struct blur_job {
	const float *x;
	float *ret;
	struct grid grid;
	int axis, reach;
	float weight[WEIGHTS_MAX];
};

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
	here = job.axis == 0   ? v.at[0]
	       : job.axis == 1 ? v.at[1]
			       : v.at[2]; /* not v.at[job.axis], because registers cannot be indexed dynamically */
	sum = job.weight[0] * job.x[i];
	for (int d = 1; d <= job.reach; d++) {
		if (here - d >= 0)
			sum = fmaf(job.weight[d], job.x[i - d * step], sum);
		if (here + d < job.grid.n[job.axis])
			sum = fmaf(job.weight[d], job.x[i + d * step], sum);
	}
	job.ret[i] = sum;
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
		r = err_set(err, EINVAL, "%s: blur: x, work and ret must be three different volumes", x->dev->name);
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

struct prior_job {
	struct prior prior;
	struct grid grid;
	const float *x; /* the first voxel of the grid */
	float *num, *den;
	int below, above; /* slices of x before and after those of the grid */
	bool ratio;
	float weight[PRIOR_NEIGHBOURS];
};

static __global__ void __launch_bounds__(CUDA_THREADS) prior_kernel(const __grid_constant__ struct prior_job job, size_t n)
{
	const size_t i = cuda_index();
	const struct grid &grid = job.grid;
	float here, sum = 0, weight = 0, c;
	struct voxel v;

	if (i >= n)
		return;
	v = voxel_of(grid, i);
	here = v.padding ? 0 : job.x[i];
	if (here == 0)
		return;
	for (int dz = -1; dz <= 1; dz++)
		for (int dy = -1; dy <= 1; dy++)
			for (int dx = -1; dx <= 1; dx++) {
				float w = job.weight[dx + 1 + 3 * (dy + 1) + 9 * (dz + 1)], other;

				if (w == 0 || (unsigned)(v.at[0] + dx) >= (unsigned)grid.n[0] ||
				    (unsigned)(v.at[1] + dy) >= (unsigned)grid.n[1] || v.at[2] + dz < -job.below ||
				    v.at[2] + dz >= grid.n[2] + job.above)
					continue;
				other = job.x[(ptrdiff_t)i + dx * (ptrdiff_t)grid_step(&grid, 0) +
					      dy * (ptrdiff_t)grid_step(&grid, 1) + dz * (ptrdiff_t)grid_step(&grid, 2)];
				if (other != 0) {
					sum += w * prior_slope(&job.prior, here, other);
					weight += w;
				}
			}
	c = job.den ? weight * prior_bound(&job.prior, here) : 0;
	job.num[i] = job.num[i] + (job.ratio ? c : 0) - sum;
	if (job.den)
		job.den[i] += c;
}

int cuda_prior_sums(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2], bool ratio,
		    struct buf *num, struct buf *den, struct err *err)
{
	int r = device_check_prior(prior, x, grid, halo, num, den, err);
	struct prior_job job = {};

	r = r < 0 ? r : cuda_check(cudaSetDevice(x->dev->index), x->dev, "prior", err);
	if (r < 0)
		return r;
	job.prior = *prior;
	job.grid = *grid;
	job.below = halo ? halo[0] : 0;
	job.above = halo ? halo[1] : 0;
	job.x = x->mem + (size_t)job.below * grid_step(grid, 2);
	job.num = num->mem;
	job.den = den ? den->mem : NULL;
	job.ratio = ratio;
	prior_weights(prior, grid, job.weight);
	prior_kernel<<<cuda_blocks(num->n), CUDA_THREADS, 0, cuda_state(x->dev)->stream>>>(job, num->n);
	return cuda_check(cudaGetLastError(), x->dev, "prior", err);
}
