/* device_cuda.cu - the CUDA device: opening, memory, transfers. */
#include "kernels/cuda.cuh"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuda_check(cudaError_t code, const struct device *dev, const char *what, struct err *err)
{
	if (code == cudaSuccess)
		return 0;
	return err_set(err, code == cudaErrorMemoryAllocation ? ENOMEM : EIO, "%s: %s: %s", dev->name, what,
		       cudaGetErrorString(code));
}

static int cuda_alloc(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	void *mem = NULL;
	size_t free_bytes = 0, all = 0;
	cudaError_t code = n <= SIZE_MAX / sizeof(float) ? cudaSetDevice(dev->index) : cudaErrorMemoryAllocation;

	if (code == cudaSuccess)
		code = cudaMalloc(&mem, n ? n * sizeof(float) : sizeof(float));
	if (code == cudaErrorMemoryAllocation) {
		cudaGetLastError(); /* not a sticky error: the device stays usable */
		cudaMemGetInfo(&free_bytes, &all);
		return err_set(err, ENOMEM, "%s: cannot allocate %zu bytes, %zu of %zu are free", dev->name, n * sizeof(float),
			       free_bytes, all);
	}
	if (code != cudaSuccess)
		return cuda_check(code, dev, "cudaMalloc", err);
	ret_buf->dev = dev;
	ret_buf->mem = (float *)mem;
	ret_buf->n = n;
	return 0;
}

static void cuda_release(struct buf *b)
{
	cudaSetDevice(b->dev->index);
	cudaFree(b->mem);
}

static int cuda_upload(struct buf *dst, const float *src, struct err *err)
{
	struct cuda_state *state = cuda_state(dst->dev);
	int r = cuda_check(cudaMemcpyAsync(dst->mem, src, dst->n * sizeof(float), cudaMemcpyHostToDevice, state->stream),
			   dst->dev, "upload", err);

	return r < 0 ? r : cuda_check(cudaStreamSynchronize(state->stream), dst->dev, "upload", err);
}

static int cuda_download(const struct buf *src, float *dst, struct err *err)
{
	struct cuda_state *state = cuda_state(src->dev);
	int r = cuda_check(cudaMemcpyAsync(dst, src->mem, src->n * sizeof(float), cudaMemcpyDeviceToHost, state->stream),
			   src->dev, "download", err);

	return r < 0 ? r : cuda_check(cudaStreamSynchronize(state->stream), src->dev, "download", err);
}

static void cuda_destroy(struct device *dev)
{
	struct cuda_state *state = cuda_state(dev);

	cudaSetDevice(dev->index);
	if (state->stream) {
		cudaStreamSynchronize(state->stream);
		cudaStreamDestroy(state->stream);
	}
	cudaFree(state->scratch);
	cudaFree(state->partial);
	cudaFreeHost(state->host_partial);
	free(state);
	free(dev);
}

static struct device_ops cuda_table(void)
{
	struct device_ops ops = {};

	ops.kind = "cuda";
	ops.destroy = cuda_destroy;
	ops.alloc = cuda_alloc;
	ops.release = cuda_release;
	ops.upload = cuda_upload;
	ops.download = cuda_download;
	ops.fill = cuda_fill;
	ops.copy = cuda_copy;
	ops.multiply = cuda_multiply;
	ops.axpy = cuda_axpy;
	ops.ratio = cuda_ratio;
	ops.update = cuda_update;
	ops.sum = cuda_sum;
	ops.dot = cuda_dot;
	ops.log_likelihood = cuda_log_likelihood;
	ops.projection_bytes = cuda_projection_bytes;
	ops.scratch_bytes = cuda_scratch_bytes;
	ops.projection_create = cuda_projection_create;
	ops.projection_free = cuda_projection_free;
	ops.forward = cuda_forward;
	ops.adjoint = cuda_adjoint;
	ops.fused = cuda_fused;
	ops.forward_ratio = cuda_forward_ratio;
	ops.back_update = cuda_back_update;
	return ops;
}

extern "C" int device_cuda_count(void)
{
	int n = 0;

	return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

extern "C" int device_cuda_open(int index, struct device **ret_dev, struct err *err)
{
	static const struct device_ops ops = cuda_table();
	struct cudaDeviceProp about;
	struct cuda_state *state = NULL;
	struct device *dev = NULL;
	cudaError_t code;
	int n = 0, r = device_check(&ops, err);

	if (r < 0)
		return r;
	code = cudaGetDeviceCount(&n);
	if (code != cudaSuccess)
		return err_set(err, ENODEV, "cuda:%d: no CUDA device can be used: %s", index, cudaGetErrorString(code));
	if (index < 0 || index >= n)
		return err_set(err, ENODEV, "cuda:%d: there are %d CUDA devices, numbered from 0", index, n);
	dev = (struct device *)calloc(1, sizeof(*dev));
	state = (struct cuda_state *)calloc(1, sizeof(*state));
	if (!dev || !state) {
		r = err_set(err, ENOMEM, "cuda:%d: out of memory", index);
		goto out;
	}
	snprintf(dev->name, sizeof(dev->name), "cuda:%d", index);
	dev->ops = &ops;
	dev->index = index;
	dev->state = state;
	if ((r = cuda_check(cudaSetDevice(index), dev, "cudaSetDevice", err)) < 0 ||
	    (r = cuda_check(cudaGetDeviceProperties(&about, index), dev, "cudaGetDeviceProperties", err)) < 0 ||
	    (r = cuda_check(cudaStreamCreate(&state->stream), dev, "cudaStreamCreate", err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&state->partial, CUDA_PARTIALS * sizeof(double)), dev, "cudaMalloc", err)) < 0 ||
	    (r = cuda_check(cudaMallocHost((void **)&state->host_partial, CUDA_PARTIALS * sizeof(double)), dev, "cudaMallocHost",
			    err)) < 0)
		goto out;
	snprintf(dev->name, sizeof(dev->name), "cuda:%d (%.80s)", index, about.name);
	dev->memory = about.totalGlobalMem;
	*ret_dev = dev;
	return 0;
out:
	if (dev && dev->state)
		cuda_destroy(dev);
	else {
		free(state);
		free(dev);
	}
	return r;
}
