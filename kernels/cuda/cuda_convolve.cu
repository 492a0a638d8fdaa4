/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_convolve.cu - convolve rows in space on the CUDA device, or by transforms (cuda_fft.cu). In space: a thread computes
 * RESULTS values. If n_inner is large enough, the lanes of a warp compute neighbours in k and use the same kernel value; else
 * they compute values of one row. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>

#define RESULTS 8
#define INNER_MIN 16 /* smallest n_inner for which lanes are distributed along k */

struct convolve_job {
	const float *y, *kernel; /* kernel: device memory, n floats */
	float *ret;
	size_t n_inner, n_threads;
	int n;
};

/* WIDE: the lanes of a warp are neighbours in k, and a thread computes results i, i + 1, ...; else the lanes are neighbours in i,
 * and the results of a thread are CUDA_THREADS apart. */
template <bool WIDE> static __global__ void __launch_bounds__(CUDA_THREADS) convolve_kernel(const struct convolve_job job)
{
	extern __shared__ float mirror[]; /* kernel[|d|] at n - 1 + d */
	const size_t at = WIDE ? cuda_index() : blockIdx.x, groups = (job.n + RESULTS - 1) / RESULTS;
	const size_t wide_rows = ((size_t)job.n + CUDA_THREADS * RESULTS - 1) / (CUDA_THREADS * RESULTS);
	const size_t k = WIDE ? at % job.n_inner : at / wide_rows % job.n_inner;
	const size_t o = WIDE ? at / job.n_inner / groups : at / wide_rows / job.n_inner;
	const int first =
		WIDE ? (int)(at / job.n_inner % groups) * RESULTS : (int)(at % wide_rows) * CUDA_THREADS * RESULTS + threadIdx.x;
	const int distance = WIDE ? 1 : CUDA_THREADS;
	const float *y = job.y + o * job.n * job.n_inner + k;
	const float *from[RESULTS];
	float sum[RESULTS] = {};

	for (int i = threadIdx.x; i < 2 * job.n - 1; i += CUDA_THREADS)
		mirror[i] = job.kernel[abs(i - (job.n - 1))];
	__syncthreads();
	if (WIDE && at >= job.n_threads)
		return;
#pragma unroll
	for (int m = 0; m < RESULTS; m++) /* results beyond the last are computed from arbitrary data and discarded */
		from[m] = mirror + min(first + m * distance, job.n - 1) + job.n - 1;
#pragma unroll 4
	for (int j = 0; j < job.n; j++) {
		float value = __ldg(y + (size_t)j * job.n_inner);

#pragma unroll
		for (int m = 0; m < RESULTS; m++)
			sum[m] = fmaf(value, from[m][-j], sum[m]);
	}
#pragma unroll
	for (int m = 0; m < RESULTS; m++)
		if (first + m * distance < job.n)
			job.ret[(o * job.n + first + m * distance) * job.n_inner + k] = sum[m];
}

int cuda_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
		  struct buf *ret, struct err *err)
{
	cudaStream_t stream = cuda_state(y->dev)->stream;
	size_t size = n_outer * (size_t)n * n_inner, bytes = (size_t)n * sizeof(float), shared = 2 * bytes;
	struct convolve_job job = {y->mem, NULL, ret->mem, n_inner, 0, n};
	void *mem = NULL;
	int r;

	if (n < 1 || y->n != size || ret->n != size || y->mem == ret->mem || (!transforms && shared > 200 * 1024))
		return err_set(err, EINVAL,
			       "%s: convolve: %zu x %d x %zu values do not fit the input of %zu and the output of %zu floats",
			       y->dev->name, n_outer, n, n_inner, y->n, ret->n);
	if (transforms && !cuda_transforms(y->dev, n))
		return err_set(err, ENOTSUP, "%s: convolve: no transforms for rows of %d values", y->dev->name, n);
	if (size == 0)
		return 0;
	if ((r = cuda_check(cudaSetDevice(y->dev->index), y->dev, "convolve", err)) < 0)
		return r;
	if (transforms)
		return cuda_convolve_fft(y, n_outer, n, n_inner, kernel, ret, err);
	if ((r = cuda_check(cudaMallocAsync(&mem, bytes, stream), y->dev, "convolve", err)) < 0)
		return r;
	job.kernel = (const float *)mem;
	r = cuda_check(cudaMemcpyAsync(mem, kernel, bytes, cudaMemcpyHostToDevice, stream), y->dev, "convolve", err);
	if (r == 0 && n_inner >= INNER_MIN) {
		job.n_threads = n_outer * n_inner * (((size_t)n + RESULTS - 1) / RESULTS);
		r = cuda_check(
			cudaFuncSetAttribute(convolve_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
			y->dev, "convolve", err);
		if (r == 0)
			convolve_kernel<true><<<cuda_blocks(job.n_threads), CUDA_THREADS, shared, stream>>>(job);
	} else if (r == 0) {
		size_t blocks = n_outer * n_inner * (((size_t)n + CUDA_THREADS * RESULTS - 1) / (CUDA_THREADS * RESULTS));

		r = cuda_check(
			cudaFuncSetAttribute(convolve_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
			y->dev, "convolve", err);
		if (r == 0)
			convolve_kernel<false><<<(unsigned)blocks, CUDA_THREADS, shared, stream>>>(job);
	}
	if (r == 0)
		r = cuda_check(cudaGetLastError(), y->dev, "convolve", err);
	cudaFreeAsync(mem, stream);
	return r;
}
