/* SPDX-License-Identifier: Apache-2.0 */
/* device_cuda.cu - the CUDA device: open it, manage its memory, transfer data. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuda_check(cudaError_t code, const struct device *dev, const char *what, struct err *err)
{
	if (code == cudaSuccess)
		return 0;
	return err_set(err, code == cudaErrorMemoryAllocation ? ENOMEM : EHWPOISON, "%s: %s: %s", dev->name, what,
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
		cudaGetLastError(); /* clear the error; it is not a sticky one, so the device remains usable */
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

/* Return the smallest unused block that is large enough, and not more than twice as large as needed; NULL: none. */
static struct cuda_host_block *find_unused_block(struct cuda_state *state, size_t bytes)
{
	struct cuda_host_block *best = NULL;

	for (int i = 0; i < CUDA_KEPT_MAX; i++) {
		struct cuda_host_block *b = &state->host[i];

		if (b->memory && !b->used && b->bytes >= bytes && b->bytes / 2 <= bytes && (!best || b->bytes < best->bytes))
			best = b;
	}
	return best;
}

/* Return an empty entry of the list; if there is none, free an unused block and return its entry. */
static struct cuda_host_block *free_entry(struct cuda_state *state)
{
	struct cuda_host_block *unused = NULL;

	for (int i = 0; i < CUDA_KEPT_MAX; i++) {
		if (!state->host[i].memory)
			return &state->host[i];
		if (!state->host[i].used)
			unused = &state->host[i];
	}
	if (unused) {
		cudaFreeHost(unused->memory);
		*unused = {};
	}
	return unused;
}

static void free_unused_blocks(struct cuda_state *state)
{
	for (int i = 0; i < CUDA_KEPT_MAX; i++)
		if (state->host[i].memory && !state->host[i].used) {
			cudaFreeHost(state->host[i].memory);
			state->host[i] = {};
		}
}

/* Free unused blocks that are smaller than `bytes`, but by less than half: a block of `bytes` bytes replaces them. Otherwise the
 * blocks of all cases of growing size would be kept. */
static void free_outgrown_blocks(struct cuda_state *state, size_t bytes)
{
	for (int i = 0; i < CUDA_KEPT_MAX; i++) {
		struct cuda_host_block *b = &state->host[i];

		if (b->memory && !b->used && b->bytes < bytes && b->bytes >= bytes / 2) {
			cudaFreeHost(b->memory);
			*b = {};
		}
	}
}

/* Return pinned host memory. Pinning a gigabyte takes a large part of a second, so a freed block is kept for the next case. */
static int cuda_host_alloc(struct device *dev, size_t bytes, void **ret, struct err *err)
{
	struct cuda_state *state = cuda_state(dev);
	struct cuda_host_block *b = find_unused_block(state, bytes);
	void *memory = NULL;
	cudaError_t code;
	int r = cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err);

	if (r < 0)
		return r;
	if (!b) {
		free_outgrown_blocks(state, bytes);
		b = free_entry(state);
		if (!b)
			return err_set(err, ENOMEM, "%s: more than %d blocks of host memory", dev->name, CUDA_KEPT_MAX);
		code = cudaMallocHost(&memory, bytes ? bytes : 1);
		if (code == cudaErrorMemoryAllocation) {
			cudaGetLastError();
			free_unused_blocks(state);
			code = cudaMallocHost(&memory, bytes ? bytes : 1);
		}
		if (code == cudaErrorMemoryAllocation) {
			cudaGetLastError();
			return err_set(err, ENOMEM, "%s: cannot pin %zu bytes of host memory", dev->name, bytes);
		}
		if (code != cudaSuccess)
			return cuda_check(code, dev, "cudaMallocHost", err);
		b->memory = memory;
		b->bytes = bytes ? bytes : 1;
	}
	b->used = true;
	*ret = b->memory;
	return 0;
}

static void cuda_host_free(struct device *dev, void *memory)
{
	struct cuda_state *state = cuda_state(dev);

	for (int i = 0; memory && i < CUDA_KEPT_MAX; i++)
		if (state->host[i].memory == memory) {
			cudaSetDevice(dev->index);
			cudaStreamSynchronize(state->queue[QUEUE_UP]);
			cudaStreamSynchronize(state->queue[QUEUE_DOWN]);
			state->host[i].used = false;
		}
}

static int cuda_upload_begin(struct buf *dst, const float *src, struct err *err)
{
	int r = cuda_check(cudaSetDevice(dst->dev->index), dst->dev, "cudaSetDevice", err);

	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync(dst->mem, src, dst->n * sizeof(float), cudaMemcpyHostToDevice,
						  cuda_state(dst->dev)->queue[QUEUE_UP]),
				  dst->dev, "upload", err);
}

static int cuda_download_begin(const struct buf *src, float *dst, struct err *err)
{
	int r = cuda_check(cudaSetDevice(src->dev->index), src->dev, "cudaSetDevice", err);

	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync(dst, src->mem, src->n * sizeof(float), cudaMemcpyDeviceToHost,
						  cuda_state(src->dev)->queue[QUEUE_DOWN]),
				  src->dev, "download", err);
}

static int cuda_order(struct device *dev, enum device_queue before, enum device_queue after, struct err *err)
{
	struct cuda_state *state = cuda_state(dev);
	int r = device_check_queue(dev, before, err);

	if (r < 0 || (r = device_check_queue(dev, after, err)) < 0 ||
	    (r = cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err)) < 0 ||
	    (r = cuda_check(cudaEventRecord(state->event, state->queue[before]), dev, "order of queues", err)) < 0)
		return r;
	return cuda_check(cudaStreamWaitEvent(state->queue[after], state->event, 0), dev, "order of queues", err);
}

static int cuda_wait(struct device *dev, enum device_queue queue, struct err *err)
{
	int r = device_check_queue(dev, queue, err);

	if (r < 0 || (r = cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err)) < 0)
		return r;
	return cuda_check(cudaStreamSynchronize(cuda_state(dev)->queue[queue]), dev, "waiting for a queue", err);
}

static void cuda_destroy(struct device *dev)
{
	struct cuda_state *state = cuda_state(dev);

	cudaSetDevice(dev->index);
	for (int i = 0; i < CUDA_QUEUES; i++)
		if (state->queue[i]) {
			cudaStreamSynchronize(state->queue[i]);
			cudaStreamDestroy(state->queue[i]);
		}
	if (state->event)
		cudaEventDestroy(state->event);
	for (int i = 0; i < CUDA_KEPT_MAX; i++)
		cudaFreeHost(state->host[i].memory);
	cudaFree(state->scratch);
	cudaFree(state->partial);
	cudaFree(state->histogram);
	cudaFreeHost(state->host_partial);
	cudaFreeHost(state->host_histogram);
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
	ops.host_alloc = cuda_host_alloc;
	ops.host_free = cuda_host_free;
	ops.upload_begin = cuda_upload_begin;
	ops.download_begin = cuda_download_begin;
	ops.order = cuda_order;
	ops.wait = cuda_wait;
	ops.fill = cuda_fill;
	ops.copy = cuda_copy;
	ops.permute = cuda_permute;
	ops.multiply = cuda_multiply;
	ops.axpy = cuda_axpy;
	ops.threshold = cuda_threshold;
	ops.shape = cuda_shape;
	ops.blur = cuda_blur;
	ops.convolve = cuda_convolve;
	ops.transforms = cuda_transforms;
	ops.prior_sums = cuda_prior_sums;
	ops.rule_bins = cuda_rule_bins;
	ops.rule_voxels = cuda_rule_voxels;
	ops.tally = cuda_tally;
	ops.store = cuda_store;
	ops.sum = cuda_sum;
	ops.dot = cuda_dot;
	ops.log_likelihood = cuda_log_likelihood;
	ops.step_rate = cuda_step_rate;
	ops.projection_bytes = cuda_projection_bytes;
	ops.scratch_bytes = cuda_scratch_bytes;
	ops.projection_create = cuda_projection_create;
	ops.projection_free = cuda_projection_free;
	ops.forward = cuda_forward;
	ops.adjoint = cuda_adjoint;
	ops.back_interpolated = cuda_back_interpolated;
	ops.row_sweep = cuda_row_sweep;
	ops.make_pair = cuda_make_pair;
	ops.back_sums = cuda_back_sums;
	ops.fused = cuda_fused;
	ops.forward_pair = cuda_forward_pair;
	ops.back_update = cuda_back_update;
	ops.sub_iterate = cuda_sub_iterate;
	ops.events_bytes = cuda_list_bytes;
	ops.events_create = cuda_list_create;
	ops.events_free = cuda_list_free;
	ops.events_sort = cuda_list_sort;
	ops.events_forward = cuda_list_forward;
	ops.events_back = cuda_list_back;
	ops.events_ratio = cuda_list_ratio;
	ops.scatter_pairs = cuda_scatter_pairs;
	ops.mark = cuda_mark;
	return ops;
}

extern "C" int device_cuda_count(void)
{
	int n = 0;

	return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

extern "C" int device_cuda_current(void)
{
	int index = 0;

	return cudaGetDevice(&index) == cudaSuccess ? index : -1;
}

extern "C" void device_cuda_make_current(int index)
{
	if (index >= 0)
		cudaSetDevice(index);
}

extern "C" void *device_cuda_stream(const struct device *dev)
{
	return strcmp(dev->ops->kind, "cuda") == 0 ? (void *)cuda_state(dev)->stream : NULL;
}

extern "C" size_t device_cuda_memory(int index)
{
	cudaDeviceProp about;

	return cudaGetDeviceProperties(&about, index) == cudaSuccess ? about.totalGlobalMem : 0;
}

static int create_queues(struct device *dev, struct cuda_state *state, struct err *err)
{
	int r = 0;

	for (int i = 0; i < CUDA_QUEUES && r == 0; i++)
		r = cuda_check(cudaStreamCreateWithFlags(&state->queue[i], cudaStreamNonBlocking), dev, "cudaStreamCreate", err);
	if (r == 0)
		r = cuda_check(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), dev, "cudaEventCreate", err);
	state->stream = state->queue[QUEUE_WORK];
	return r;
}

extern "C" int device_cuda_open(int index, struct device **ret_dev, struct err *err)
{
	static const struct device_ops ops = cuda_table();
	struct cudaDeviceProp about;
	struct cuda_state *state = NULL;
	struct device *dev = NULL;
	size_t free_now = 0, total;
	cudaError_t code;
	int n = 0, driver = 0, r = device_check(&ops, err);

	if (r < 0)
		return r;
	code = cudaGetDeviceCount(&n);
	if (code != cudaSuccess && (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0))
		return err_set(err, ENODEV, "cuda:%d: no NVIDIA driver is loaded (%s)", index, cudaGetErrorString(code));
	if (code != cudaSuccess)
		return err_set(err, ENODEV, "cuda:%d: no usable CUDA device: %s", index, cudaGetErrorString(code));
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
	    (r = create_queues(dev, state, err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&state->partial, CUDA_PARTIALS * sizeof(double)), dev, "cudaMalloc", err)) < 0 ||
	    (r = cuda_check(cudaMallocHost((void **)&state->host_partial, CUDA_PARTIALS * sizeof(double)), dev, "cudaMallocHost",
			    err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&state->histogram, CUDA_STEPS * sizeof(*state->histogram)), dev, "cudaMalloc",
			    err)) < 0 ||
	    (r = cuda_check(cudaMallocHost((void **)&state->host_histogram, CUDA_STEPS * sizeof(*state->host_histogram)), dev,
			    "cudaMallocHost", err)) < 0)
		goto out;
	if ((r = cuda_check(cudaMemGetInfo(&free_now, &total), dev, "cudaMemGetInfo", err)) < 0)
		goto out;
	state->box_encoder = cuda_box_encoder(about.major);
	state->shared_bytes = about.sharedMemPerBlockOptin;
	snprintf(dev->name, sizeof(dev->name), "cuda:%d (%.80s)", index, about.name);
	dev->memory = free_now;
	dev->threads = 1;
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
