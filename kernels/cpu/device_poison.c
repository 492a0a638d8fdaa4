/* SPDX-License-Identifier: Apache-2.0 */
/* device_poison.c - the CPU device with checks of its memory, for tests.
 * - New memory holds NaN, so that an operation which reads memory before it was written gives NaN.
 * - A vector is followed by guard words; each operation checks those of its vectors when it is done.
 * - Freed memory is filled with NaN and kept until the device is closed: an operation on it returns EFAULT, and
 *   device_poison_check() detects writes to it. Host memory is checked in the same way.
 * - A transfer that was begun is executed as late as kernels/device.h allows: in wait(), or in order() with its queue as
 *   `before`. So a caller that forgets to wait reads the old content. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_WORDS 64
#define GUARD 0x7fc0beefu /* NaNs with a recognisable payload */
#define FRESH 0x7fc0f00du
#define FREED 0x7fc0deadu

struct block {
	struct block *next;
	float *mem;
	size_t n;
	bool live, host;
};

/* A transfer that was begun but not yet executed. */
struct transfer {
	struct transfer *next;
	enum device_queue queue;
	const float *from;
	float *to;
	size_t n;
};

struct poison {
	struct cpu_state cpu; /* first member: the CPU's functions use it as their state */
	struct block *blocks;
	struct transfer *begun; /* in order */
};

static void paint_memory(float *mem, size_t n, uint32_t word)
{
	for (size_t i = 0; i < n; i++)
		memcpy(&mem[i], &word, sizeof(word));
}

static bool is_painted(const float *mem, size_t n, uint32_t word)
{
	uint32_t bits;

	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, &mem[i], sizeof(bits));
		if (bits != word)
			return false;
	}
	return true;
}

static struct poison *poison_state(const struct device *dev)
{
	return dev->state;
}

/* Check that `mem` is memory of this device (host: memory for transfers), is not freed, and has unchanged guard words. EFAULT: it
 * fails a check. */
static int check_memory(const char *what, const struct device *dev, const float *mem, size_t n, bool host, struct err *err)
{
	uintptr_t at = (uintptr_t)mem;
	struct block *block;

	for (block = poison_state(dev)->blocks; block; block = block->next) {
		uintptr_t begin = (uintptr_t)block->mem, end = begin + block->n * sizeof(float);

		if (block->host != host || at < begin || at > end || (at == end && n > 0))
			continue;
		if (!block->live)
			return err_set(err, EFAULT, "%s: a vector of %zu floats was used after its release", what, n);
		if (n > block->n - (at - begin) / sizeof(float))
			return err_set(err, EFAULT, "%s: a vector of %zu floats extends beyond its memory of %zu", what, n,
				       block->n);
		if (!is_painted(block->mem + block->n, GUARD_WORDS, GUARD))
			return err_set(err, EFAULT, "%s: something was written past the end of a vector of %zu floats", what,
				       block->n);
		return 0;
	}
	return err_set(err, EFAULT, "%s: a vector of %zu floats is not %smemory of this device", what, n, host ? "host " : "");
}

static int trap_memory(const char *what, const struct buf *b, struct err *err)
{
	return check_memory(what, b->dev, b->mem, b->n, false, err);
}

static int new_block(struct device *dev, size_t n, bool host, struct block **ret_block, struct err *err)
{
	struct block *block = calloc(1, sizeof(*block));

	if (block && n < SIZE_MAX / 8)
		block->mem = cpu_memory((n + GUARD_WORDS) * sizeof(float));
	if (!block || !block->mem) {
		free(block);
		return err_set(err, ENOMEM, "%s: cannot allocate %zu floats", dev->name, n);
	}
	paint_memory(block->mem, n, FRESH);
	paint_memory(block->mem + n, GUARD_WORDS, GUARD);
	block->n = n;
	block->live = true;
	block->host = host;
	block->next = poison_state(dev)->blocks;
	poison_state(dev)->blocks = block;
	*ret_block = block;
	return 0;
}

static void free_block(struct device *dev, const float *mem, bool host)
{
	for (struct block *block = poison_state(dev)->blocks; block; block = block->next) {
		if (block->mem != mem || block->host != host)
			continue;
		if (!block->live || !is_painted(block->mem + block->n, GUARD_WORDS, GUARD))
			abort(); /* released twice, or overrun: the test must not continue */
		block->live = false;
		paint_memory(block->mem, block->n, FREED);
		return;
	}
	abort(); /* not memory of this device */
}

static int poison_alloc(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	struct block *block;
	int r = new_block(dev, n, false, &block, err);

	if (r == 0)
		*ret_buf = (struct buf){dev, block->mem, n};
	return r;
}

/* Execute the transfers that were begun on a queue. */
static void run_transfers(struct device *dev, enum device_queue queue)
{
	struct transfer **at = &poison_state(dev)->begun, *t;

	while ((t = *at)) {
		if (t->queue != queue) {
			at = &t->next;
			continue;
		}
		memcpy(t->to, t->from, t->n * sizeof(float));
		*at = t->next;
		free(t);
	}
}

static void settle_all(struct device *dev)
{
	run_transfers(dev, QUEUE_UP);
	run_transfers(dev, QUEUE_DOWN);
}

static void poison_release(struct buf *b)
{
	settle_all(b->dev);
	free_block(b->dev, b->mem, false);
}

static int poison_host_alloc(struct device *dev, size_t bytes, void **ret, struct err *err)
{
	struct block *block;
	int r = new_block(dev, bytes / sizeof(float) + (bytes % sizeof(float) > 0), true, &block, err);

	if (r == 0)
		*ret = block->mem;
	return r;
}

static void poison_host_free(struct device *dev, void *memory)
{
	if (!memory)
		return;
	settle_all(dev);
	free_block(dev, memory, true);
}

static int begin_transfer(const char *what, enum device_queue queue, const struct buf *b, const float *host, const float *from,
			  float *to, struct err *err)
{
	struct transfer **last = &poison_state(b->dev)->begun, *t;
	int r = trap_memory(what, b, err);

	r = r < 0 ? r : check_memory(what, b->dev, host, b->n, true, err);
	if (r < 0)
		return r;
	t = malloc(sizeof(*t));
	if (!t)
		return err_set(err, ENOMEM, "%s: out of memory", what);
	*t = (struct transfer){NULL, queue, from, to, b->n};
	while (*last)
		last = &(*last)->next;
	*last = t;
	return 0;
}

static int poison_upload_begin(struct buf *dst, const float *src, struct err *err)
{
	return begin_transfer("upload_begin", QUEUE_UP, dst, src, src, dst->mem, err);
}

static int poison_download_begin(const struct buf *src, float *dst, struct err *err)
{
	return begin_transfer("download_begin", QUEUE_DOWN, src, dst, src->mem, dst, err);
}

static int poison_order(struct device *dev, enum device_queue before, enum device_queue after, struct err *err)
{
	int r = device_cpu_ops.order(dev, before, after, err);

	if (r == 0 && before != after)
		run_transfers(dev, before);
	return r;
}

static int poison_wait(struct device *dev, enum device_queue queue, struct err *err)
{
	int r = device_cpu_ops.wait(dev, queue, err);

	if (r == 0)
		run_transfers(dev, queue);
	return r;
}

int device_poison_check(struct device *dev, struct err *err)
{
	for (struct block *block = poison_state(dev)->blocks; block; block = block->next) {
		if (!is_painted(block->mem + block->n, GUARD_WORDS, GUARD))
			return err_set(err, EFAULT, "something was written past the end of a vector of %zu floats", block->n);
		if (!block->live && !is_painted(block->mem, block->n, FREED))
			return err_set(err, EFAULT, "something was written to a vector of %zu floats after its release",
				       block->n);
	}
	return 0;
}

static void poison_destroy(struct device *dev)
{
	struct poison *state = poison_state(dev);
	struct block *block, *next;

	settle_all(dev);
	if (device_poison_check(dev, NULL) < 0)
		abort();
	for (block = state->blocks; block; block = next) {
		next = block->next;
		free(block->mem);
		free(block);
	}
	cpu_state_clear(&state->cpu);
	free(state);
	free(dev);
}

/* Check the vectors (NULL: none), call the operation, check again. */
#define GUARDED(what, call, ...)                                                                                                 \
	const struct buf *vectors[] = {__VA_ARGS__};                                                                             \
	const size_t n_vectors = sizeof(vectors) / sizeof(vectors[0]);                                                           \
	int r = 0;                                                                                                               \
	for (size_t i = 0; r == 0 && i < n_vectors; i++)                                                                         \
		r = vectors[i] ? trap_memory(what, vectors[i], err) : 0;                                                         \
	if (r == 0)                                                                                                              \
		r = call;                                                                                                        \
	for (size_t i = 0; r == 0 && i < n_vectors; i++)                                                                         \
		r = vectors[i] ? trap_memory(what, vectors[i], err) : 0;                                                         \
	return r

static int poison_upload(struct buf *dst, const float *src, struct err *err)
{
	GUARDED("upload", device_cpu_ops.upload(dst, src, err), dst);
}

static int poison_download(const struct buf *src, float *dst, struct err *err)
{
	GUARDED("download", device_cpu_ops.download(src, dst, err), src);
}

static int poison_fill(struct buf *x, float value, struct err *err)
{
	GUARDED("fill", cpu_fill(x, value, err), x);
}

static int poison_copy(const struct buf *x, struct buf *ret, struct err *err)
{
	GUARDED("copy", cpu_copy(x, ret, err), x, ret);
}

static int poison_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err)
{
	GUARDED("multiply", cpu_multiply(x, y, ret, err), x, y, ret);
}

static int poison_axpy(float a, const struct buf *x, struct buf *y, struct err *err)
{
	GUARDED("axpy", cpu_axpy(a, x, y, err), x, y);
}

static int poison_threshold(struct buf *x, float at, float value, struct err *err)
{
	GUARDED("threshold", cpu_threshold(x, at, value, err), x);
}

static int poison_shape(const struct buf *columns, float away, float least, struct buf *x, struct err *err)
{
	GUARDED("shape", cpu_shape(columns, away, least, x, err), columns, x);
}

static int poison_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
		       struct err *err)
{
	GUARDED("blur", cpu_blur(x, grid, sigma, work, ret, err), x, work, ret);
}

static int poison_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
			   struct buf *ret, struct err *err)
{
	GUARDED("convolve", cpu_convolve(y, n_outer, n, n_inner, kernel, transforms, ret, err), y, ret);
}

static int poison_prior_sums(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2],
			     bool ratio, struct buf *num, struct buf *den, struct err *err)
{
	GUARDED("prior_sums", cpu_prior_sums(prior, x, grid, halo, ratio, num, den, err), x, num, den);
}

static int poison_rule_bins(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
			    const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err)
{
	GUARDED("rule_bins", cpu_rule_bins(rule, y, p, row, mult, add, ret_q, err), y, p, row, mult, add, ret_q);
}

static int poison_rule_voxels(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x,
			      struct err *err)
{
	GUARDED("rule_voxels", cpu_rule_voxels(rule, num, den, x, err), num, den, x);
}

static int poison_sum(const struct buf *x, double *ret, struct err *err)
{
	GUARDED("sum", cpu_sum(x, ret, err), x);
}

static int poison_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err)
{
	GUARDED("dot", cpu_dot(x, y, ret, err), x, y);
}

static int poison_tally(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536],
			struct tally *ret_tally, struct err *err)
{
	GUARDED("tally", cpu_tally(x, offset, step, stride, bins, ret_tally, err), x);
}

static int poison_store(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err)
{
	GUARDED("store", cpu_store(x, form, ret_values, err), x, ret_values);
}

static int poison_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err)
{
	GUARDED("log_likelihood", cpu_log_likelihood(y, p, floor, ret, err), y, p);
}

static const struct buf *mask_of(const struct projection *a)
{
	return a->mask.mem ? &a->mask : NULL;
}

static int poison_forward(struct projection *a, const struct buf *x, bool add, struct buf *y, struct err *err)
{
	GUARDED("forward", cpu_forward(a, x, add, y, err), x, y, mask_of(a));
}

static int poison_adjoint(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	GUARDED("adjoint", cpu_adjoint(a, y, add, x, err), y, x, mask_of(a));
}

static int poison_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err)
{
	GUARDED("row_sweep", cpu_row_sweep(a, relaxation, y, x, err), y, x);
}

static int poison_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	GUARDED("back_interpolated", cpu_back_interpolated(a, y, add, x, err), y, x);
}

static int poison_make_pair(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p,
			    const struct buf *row, struct buf *ret_pair, struct err *err)
{
	GUARDED("make_pair", cpu_make_pair(a, rule, y, p, row, ret_pair, err), y, p, row, ret_pair, mask_of(a));
}

static int poison_back_sums(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den,
			    struct err *err)
{
	GUARDED("back_sums", cpu_back_sums(a, pair, add, num, den, err), pair, num, den, mask_of(a));
}

static int poison_forward_pair(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
			       const struct buf *row, struct buf *ret_pair, struct err *err)
{
	GUARDED("forward_pair", cpu_forward_pair(a, rule, x, y, row, ret_pair, err), x, y, row, ret_pair, mask_of(a));
}

static int poison_back_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x,
			      struct err *err)
{
	GUARDED("back_update", cpu_back_update(a, rule, pair, x, err), pair, x, mask_of(a));
}

static int poison_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row,
			      struct buf *work, struct buf *x, struct err *err)
{
	GUARDED("sub_iterate", cpu_sub_iterate(a, rule, y, row, work, x, err), y, row, work, x, mask_of(a));
}

static int poison_mark(struct projection *a, struct buf *x, struct err *err)
{
	GUARDED("mark", cpu_mark(a, x, err), x, mask_of(a));
}

static int poison_scatter_pairs(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu,
				struct buf *ret, struct err *err)
{
	GUARDED("scatter_pairs", cpu_scatter_pairs(spec, activity, mu, ret, err), activity, mu, ret);
}

static int poison_events_sort(struct events *a, struct buf *events, struct err *err)
{
	GUARDED("events_sort", cpu_events_sort(a, events, err), events, cpu_events_detectors(a));
}

static int poison_events_forward(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y,
				 struct err *err)
{
	GUARDED("events_forward", cpu_events_forward(a, events, x, ret_y, err), events, x, ret_y, cpu_events_detectors(a));
}

static int poison_events_back(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err)
{
	GUARDED("events_back", cpu_events_back(a, events, q, x, err), events, q, x, cpu_events_detectors(a));
}

static int poison_events_ratio(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
			       struct err *err)
{
	GUARDED("events_ratio", cpu_events_ratio(a, events, floor, x, sum, err), events, x, sum, cpu_events_detectors(a));
}

static const struct device_ops poison_ops = {
	.kind = "poison",
	.destroy = poison_destroy,
	.alloc = poison_alloc,
	.release = poison_release,
	.upload = poison_upload,
	.download = poison_download,
	.host_alloc = poison_host_alloc,
	.host_free = poison_host_free,
	.upload_begin = poison_upload_begin,
	.download_begin = poison_download_begin,
	.order = poison_order,
	.wait = poison_wait,
	.fill = poison_fill,
	.copy = poison_copy,
	.permute = cpu_permute,
	.multiply = poison_multiply,
	.axpy = poison_axpy,
	.threshold = poison_threshold,
	.shape = poison_shape,
	.blur = poison_blur,
	.convolve = poison_convolve,
	.transforms = cpu_transforms,
	.prior_sums = poison_prior_sums,
	.rule_bins = poison_rule_bins,
	.rule_voxels = poison_rule_voxels,
	.sum = poison_sum,
	.dot = poison_dot,
	.tally = poison_tally,
	.store = poison_store,
	.log_likelihood = poison_log_likelihood,
	.step_rate = cpu_step_rate,
	.projection_bytes = cpu_projection_bytes,
	.scratch_bytes = cpu_scratch_bytes,
	.projection_create = cpu_projection_create,
	.projection_free = cpu_projection_free,
	.forward = poison_forward,
	.adjoint = poison_adjoint,
	.back_interpolated = poison_back_interpolated,
	.row_sweep = poison_row_sweep,
	.make_pair = poison_make_pair,
	.back_sums = poison_back_sums,
	.fused = cpu_fused,
	.forward_pair = poison_forward_pair,
	.back_update = poison_back_update,
	.sub_iterate = poison_sub_iterate,
	.events_bytes = cpu_events_bytes,
	.events_create = cpu_events_create,
	.events_free = cpu_events_free,
	.events_sort = poison_events_sort,
	.events_forward = poison_events_forward,
	.events_back = poison_events_back,
	.events_ratio = poison_events_ratio,
	.scatter_pairs = poison_scatter_pairs,
	.mark = poison_mark,
};

int device_poison_open(int threads, struct device **ret_dev, struct err *err)
{
	struct poison *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return err_set(err, ENOMEM, "poison: cannot open the device: out of memory");
	state->cpu.poison = true;
	r = cpu_open("poison", &poison_ops, &state->cpu, threads, ret_dev, err);
	if (r < 0)
		free(state);
	return r;
}
