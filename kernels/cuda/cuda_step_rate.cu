/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_step_rate.cu - measure how many steps per second (kernels/device.h, step_rate()) the CUDA device computes from shared
 * memory. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>

#define SUMS 8	    /* sums per thread */
#define FLOATS 2048 /* floats in shared memory, a power of 2; a few more follow */
#define ROUNDS 2048
#define BLOCKS 64 /* blocks per multiprocessor; not all are resident at the same time */
#define TRIES 5	  /* the result is that of the fastest try, because a limit is measured */

/* Adjacent lanes read adjacent floats, so there are no bank conflicts. */
static __global__ void __launch_bounds__(CUDA_THREADS) step_kernel(float *ret)
{
	__shared__ float y[FLOATS + 2 * CUDA_THREADS * SUMS];
	const float w0 = 0.75f, w1 = 0.25f;
	float sum[SUMS] = {};

	for (int i = threadIdx.x; i < FLOATS + 2 * CUDA_THREADS * SUMS; i += CUDA_THREADS)
		y[i] = 1e-6f * (1 + i % 7);
	__syncthreads();
	for (int round = 0; round < ROUNDS; round++) {
		const float *at = y + threadIdx.x + (round * 37 & (FLOATS - 1));

#pragma unroll
		for (int i = 0; i < SUMS; i++)
			sum[i] = fmaf(w1, at[i * 2 * CUDA_THREADS + 1], fmaf(w0, at[i * 2 * CUDA_THREADS], sum[i]));
	}
	for (int i = 1; i < SUMS; i++)
		sum[0] += sum[i];
	ret[cuda_index()] = sum[0];
}

int cuda_step_rate(struct device *dev, double *ret_per_s, struct err *err)
{
	cudaStream_t stream = cuda_state(dev)->stream;
	cudaEvent_t begin = NULL, end = NULL;
	float ms, best = 0;
	double sum;
	int units, r;
	struct buf out = {};

	if ((r = cuda_check(cudaSetDevice(dev->index), dev, "step rate", err)) < 0 ||
	    (r = cuda_check(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, dev->index), dev, "step rate", err)) <
		    0 ||
	    (r = dev->ops->alloc(dev, (size_t)units * BLOCKS * CUDA_THREADS, &out, err)) < 0 ||
	    (r = cuda_check(cudaEventCreate(&begin), dev, "step rate", err)) < 0 ||
	    (r = cuda_check(cudaEventCreate(&end), dev, "step rate", err)) < 0)
		goto out;
	for (int i = -1; r == 0 && i < TRIES; i++) { /* the first is the warm-up */
		cudaEventRecord(begin, stream);
		step_kernel<<<units * BLOCKS, CUDA_THREADS, 0, stream>>>(out.mem);
		cudaEventRecord(end, stream);
		if ((r = cuda_check(cudaEventSynchronize(end), dev, "step rate", err)) == 0 &&
		    (r = cuda_check(cudaEventElapsedTime(&ms, begin, end), dev, "step rate", err)) == 0)
			best = i <= 0 || ms < best ? ms : best;
	}
	if (r == 0)
		r = dev->ops->sum(&out, &sum, err);
	if (r == 0 && !(sum > 0 && best > 0))
		r = err_set(err, EHWPOISON, "%s: a sum of positive numbers is %g after %g ms", dev->name, sum, (double)best);
	if (r == 0)
		*ret_per_s = (double)units * BLOCKS * CUDA_THREADS * ROUNDS * SUMS / (1e-3 * best);
out:
	if (begin)
		cudaEventDestroy(begin);
	if (end)
		cudaEventDestroy(end);
	buf_release(&out);
	return r;
}
