/* SPDX-License-Identifier: Apache-2.0 */
/* device_cpu.c - the CPU device: its table of functions, its memory and its scratch memory.
 *
 * Large vectors are aligned to 2 MiB and marked for huge pages: processing the slices one after the other uses one page per slice
 * and row, and with small pages the address translation takes as long as the data. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define CACHE_LINE ((size_t)64)
#define UPLOAD_WORTH_THREADS                                                                                                     \
	((size_t)2 << 20) /* floats; fewer are copied before more threads are awake, which may have other work */

void *cpu_memory(size_t bytes)
{
	bool large = bytes >= 4 * HUGE_PAGE;
	size_t align = large ? HUGE_PAGE : CACHE_LINE;
	void *mem;

	if (bytes > SIZE_MAX - align)
		return NULL;
	bytes = (bytes + align - 1) / align * align;
	mem = aligned_alloc(align, bytes ? bytes : align);
	if (mem && large)
		madvise(mem, bytes, MADV_HUGEPAGE); /* optional: without huge pages it is only slower */
	return mem;
}

static int cpu_alloc(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	float *mem = n <= SIZE_MAX / sizeof(float) / 2 ? cpu_memory(n * sizeof(float)) : NULL;

	if (!mem)
		return err_set(err, ENOMEM, "%s: cannot allocate %zu floats", dev->name, n);
	ret_buf->dev = dev;
	ret_buf->mem = mem;
	ret_buf->n = n;
	return 0;
}

static void cpu_release(struct buf *b)
{
	free(b->mem);
}

static int cpu_upload(struct buf *dst, const float *src, struct err *err)
{
	struct buf from = {dst->dev, (float *)(uintptr_t)src, dst->n};

	if (dst->n >= UPLOAD_WORTH_THREADS)
		return cpu_copy(&from, dst, err);
	memcpy(dst->mem, src, dst->n * sizeof(*src));
	return 0;
}

static int cpu_download(const struct buf *src, float *dst, struct err *err)
{
	struct buf to = {src->dev, dst, src->n};

	return cpu_copy(src, &to, err);
}

/* Host memory and queues. The CPU's memory is host memory, and a transfer is complete when the call returns. */
struct cpu_host {
	struct cpu_host *next;
	void *memory;
	size_t bytes;
	bool used;
};

static int cpu_host_alloc(struct device *dev, size_t bytes, void **ret, struct err *err)
{
	struct cpu_state *state = cpu_state(dev);
	struct cpu_host *best = NULL;

	for (struct cpu_host *h = state->host; h; h = h->next)
		if (!h->used && h->bytes >= bytes && (!best || h->bytes < best->bytes))
			best = h;
	if (!best) {
		best = calloc(1, sizeof(*best));
		if (best)
			best->memory = cpu_memory(bytes);
		if (!best || !best->memory) {
			free(best);
			return err_set(err, ENOMEM, "%s: cannot allocate %zu bytes for transfers", dev->name, bytes);
		}
		best->bytes = bytes;
		best->next = state->host;
		state->host = best;
	}
	best->used = true;
	*ret = best->memory;
	return 0;
}

static void cpu_host_free(struct device *dev, void *memory)
{
	for (struct cpu_host *h = cpu_state(dev)->host; memory && h; h = h->next)
		if (h->memory == memory)
			h->used = false;
}

static int cpu_order(struct device *dev, enum device_queue before, enum device_queue after, struct err *err)
{
	int r = device_check_queue(dev, before, err);

	return r < 0 ? r : device_check_queue(dev, after, err);
}

static int cpu_wait(struct device *dev, enum device_queue queue, struct err *err)
{
	return device_check_queue(dev, queue, err);
}

/* Make the scratch memory at least `thread_floats` long for every thread. Called when a projection is created, never while one
 * computes. */
int cpu_scratch(struct device *dev, size_t thread_floats, struct err *err)
{
	struct cpu_state *state = cpu_state(dev);
	size_t n = thread_floats * (size_t)state->threads;
	float *mem;

	if (n <= state->scratch_floats)
		return 0;
	mem = cpu_memory(n * sizeof(float));
	if (!mem)
		return err_set(err, ENOMEM, "%s: cannot allocate %zu floats of working memory", dev->name, n);
	free(state->scratch);
	state->scratch = mem;
	state->scratch_floats = n;
	if (state->poison)
		for (size_t i = 0; i < n; i++)
			mem[i] = NAN;
	return 0;
}

void cpu_state_clear(struct cpu_state *state)
{
	struct cpu_host *next;

	for (struct cpu_host *h = state->host; h; h = next) {
		next = h->next;
		free(h->memory);
		free(h);
	}
	state->host = NULL;
	free(state->scratch);
	state->scratch = NULL;
}

static void cpu_destroy(struct device *dev)
{
	struct cpu_state *state = cpu_state(dev);

	cpu_state_clear(state);
	free(state);
	free(dev);
}

const struct device_ops device_cpu_ops = {
	.kind = "cpu",
	.destroy = cpu_destroy,
	.alloc = cpu_alloc,
	.release = cpu_release,
	.upload = cpu_upload,
	.download = cpu_download,
	.host_alloc = cpu_host_alloc,
	.host_free = cpu_host_free,
	.upload_begin = cpu_upload,
	.download_begin = cpu_download,
	.order = cpu_order,
	.wait = cpu_wait,
	.fill = cpu_fill,
	.copy = cpu_copy,
	.permute = cpu_permute,
	.multiply = cpu_multiply,
	.axpy = cpu_axpy,
	.threshold = cpu_threshold,
	.shape = cpu_shape,
	.blur = cpu_blur,
	.convolve = cpu_convolve,
	.transforms = cpu_transforms,
	.prior_sums = cpu_prior_sums,
	.rule_bins = cpu_rule_bins,
	.rule_voxels = cpu_rule_voxels,
	.sum = cpu_sum,
	.dot = cpu_dot,
	.tally = cpu_tally,
	.store = cpu_store,
	.log_likelihood = cpu_log_likelihood,
	.step_rate = cpu_step_rate,
	.projection_bytes = cpu_projection_bytes,
	.scratch_bytes = cpu_scratch_bytes,
	.projection_create = cpu_projection_create,
	.projection_free = cpu_projection_free,
	.forward = cpu_forward,
	.adjoint = cpu_adjoint,
	.back_interpolated = cpu_back_interpolated,
	.row_sweep = cpu_row_sweep,
	.make_pair = cpu_make_pair,
	.back_sums = cpu_back_sums,
	.fused = cpu_fused,
	.forward_pair = cpu_forward_pair,
	.back_update = cpu_back_update,
	.sub_iterate = cpu_sub_iterate,
	.events_bytes = cpu_events_bytes,
	.events_create = cpu_events_create,
	.events_free = cpu_events_free,
	.events_sort = cpu_events_sort,
	.events_forward = cpu_events_forward,
	.events_back = cpu_events_back,
	.events_ratio = cpu_events_ratio,
	.scatter_pairs = cpu_scatter_pairs,
	.mark = cpu_mark,
};

/* Open a device. On success it owns `state`. */
int cpu_open(const char *kind, const struct device_ops *ops, struct cpu_state *state, int threads, struct device **ret_dev,
	     struct err *err)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct device *dev;
	int r = device_check(ops, err);

	if (r < 0)
		return r;
	if (threads < 0)
		return err_set(err, EINVAL, "%s: %d threads", kind, threads);
#ifdef _OPENMP
	if (threads == 0)
		threads = omp_get_max_threads();
#else
	threads = 1;
#endif
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return err_set(err, ENOMEM, "%s: cannot open the device: out of memory", kind);
	state->threads = threads;
	state->rows = cpu_rows_best();
	dev->ops = ops;
	dev->state = state;
	dev->threads = threads;
	dev->memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
	snprintf(dev->name, sizeof(dev->name), "%s (%d thread%s, %s)", kind, threads, threads == 1 ? "" : "s", state->rows->name);
	*ret_dev = dev;
	return 0;
}

int device_cpu_open(int threads, struct device **ret_dev, struct err *err)
{
	struct cpu_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return err_set(err, ENOMEM, "cpu: cannot open the device: out of memory");
	r = cpu_open("cpu", &device_cpu_ops, state, threads, ret_dev, err);
	if (r < 0)
		free(state);
	return r;
}
