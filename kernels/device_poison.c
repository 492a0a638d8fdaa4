/* device_poison.c - the CPU device with traps in its memory, for tests.
 *
 * - Fresh memory is NaN, so that reading what nobody wrote shows up in every result.
 * - A vector is followed by guard words; each operation looks at those of its vectors when it is done.
 * - Freed memory is filled with NaN and kept aside until the device is closed: using it is answered with EFAULT, and writing
 *   to it is seen by device_poison_check().
 */
#include "kernels/cpu.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_WORDS 64
#define GUARD 0x7fc0beefu /* NaNs that can be told apart */
#define FRESH 0x7fc0f00du
#define FREED 0x7fc0deadu

struct block {
	struct block *next;
	float *mem;
	size_t n;
	bool live;
};

struct poison {
	struct cpu_state cpu; /* first: the CPU's functions take it for their state */
	struct block *blocks;
};

static void paint(float *mem, size_t n, uint32_t word)
{
	for (size_t i = 0; i < n; i++)
		memcpy(&mem[i], &word, sizeof(word));
}

static bool painted(const float *mem, size_t n, uint32_t word)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&mem[i], &word, sizeof(word)) != 0)
			return false;
	return true;
}

static struct poison *poison_state(const struct device *dev)
{
	return dev->state;
}

/* Is it memory of this device, not freed, and its end intact? */
static int trap(const char *what, const struct buf *b, struct err *err)
{
	uintptr_t at = (uintptr_t)b->mem;
	struct block *block;

	for (block = poison_state(b->dev)->blocks; block; block = block->next) {
		uintptr_t begin = (uintptr_t)block->mem, end = begin + block->n * sizeof(float);

		if (at < begin || at > end || (at == end && b->n > 0))
			continue;
		if (!block->live)
			return err_set(err, EFAULT, "%s: a vector of %zu floats was used after its release", what, b->n);
		if (b->n > block->n - (at - begin) / sizeof(float))
			return err_set(err, EFAULT, "%s: a vector of %zu floats reaches beyond its memory of %zu", what, b->n,
				       block->n);
		if (!painted(block->mem + block->n, GUARD_WORDS, GUARD))
			return err_set(err, EFAULT, "%s: something was written past the end of a vector of %zu floats", what,
				       block->n);
		return 0;
	}
	return err_set(err, EFAULT, "%s: a vector of %zu floats is no memory of this device", what, b->n);
}

static int poison_alloc(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	struct block *block = calloc(1, sizeof(*block));

	if (block && n < SIZE_MAX / 8)
		block->mem = cpu_memory((n + GUARD_WORDS) * sizeof(float));
	if (!block || !block->mem) {
		free(block);
		return err_set(err, ENOMEM, "%s: cannot allocate %zu floats", dev->name, n);
	}
	paint(block->mem, n, FRESH);
	paint(block->mem + n, GUARD_WORDS, GUARD);
	block->n = n;
	block->live = true;
	block->next = poison_state(dev)->blocks;
	poison_state(dev)->blocks = block;
	*ret_buf = (struct buf){dev, block->mem, n};
	return 0;
}

static void poison_release(struct buf *b)
{
	for (struct block *block = poison_state(b->dev)->blocks; block; block = block->next) {
		if (block->mem != b->mem)
			continue;
		if (!block->live || !painted(block->mem + block->n, GUARD_WORDS, GUARD))
			abort(); /* released twice, or overrun: a test must not go on */
		block->live = false;
		paint(block->mem, block->n, FREED);
		return;
	}
	abort(); /* not ours */
}

int device_poison_check(struct device *dev, struct err *err)
{
	for (struct block *block = poison_state(dev)->blocks; block; block = block->next) {
		if (!painted(block->mem + block->n, GUARD_WORDS, GUARD))
			return err_set(err, EFAULT, "something was written past the end of a vector of %zu floats", block->n);
		if (!block->live && !painted(block->mem, block->n, FREED))
			return err_set(err, EFAULT, "something was written to a vector of %zu floats after its release",
				       block->n);
	}
	return 0;
}

static void poison_destroy(struct device *dev)
{
	struct poison *state = poison_state(dev);
	struct block *block, *next;

	if (device_poison_check(dev, NULL) < 0)
		abort();
	for (block = state->blocks; block; block = next) {
		next = block->next;
		free(block->mem);
		free(block);
	}
	free(state->cpu.scratch);
	free(state);
	free(dev);
}

/* Look at up to three vectors, do it, look again. */
#define GUARDED(what, x, y, z, call)                                                                                             \
	const struct buf *vectors[3] = {x, y, z};                                                                                \
	int r = 0;                                                                                                               \
	for (int i = 0; r == 0 && i < 3; i++)                                                                                    \
		r = vectors[i] ? trap(what, vectors[i], err) : 0;                                                                \
	if (r == 0)                                                                                                              \
		r = call;                                                                                                        \
	for (int i = 0; r == 0 && i < 3; i++)                                                                                    \
		r = vectors[i] ? trap(what, vectors[i], err) : 0;                                                                \
	return r

static int poison_upload(struct buf *dst, const float *src, struct err *err)
{
	GUARDED("upload", dst, NULL, NULL, device_cpu_ops.upload(dst, src, err));
}

static int poison_download(const struct buf *src, float *dst, struct err *err)
{
	GUARDED("download", src, NULL, NULL, device_cpu_ops.download(src, dst, err));
}

static int poison_fill(struct buf *x, float value, struct err *err)
{
	GUARDED("fill", x, NULL, NULL, cpu_fill(x, value, err));
}

static int poison_copy(const struct buf *x, struct buf *ret, struct err *err)
{
	GUARDED("copy", x, ret, NULL, cpu_copy(x, ret, err));
}

static int poison_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err)
{
	GUARDED("multiply", x, y, ret, cpu_multiply(x, y, ret, err));
}

static int poison_axpy(float a, const struct buf *x, struct buf *y, struct err *err)
{
	GUARDED("axpy", x, y, NULL, cpu_axpy(a, x, y, err));
}

static int poison_ratio(const struct buf *y, const struct buf *p, float floor, struct buf *ret, struct err *err)
{
	GUARDED("ratio", y, p, ret, cpu_ratio(y, p, floor, ret, err));
}

static int poison_update(struct buf *x, const struct buf *c, const struct buf *sens, float floor, struct err *err)
{
	GUARDED("update", x, c, sens, cpu_update(x, c, sens, floor, err));
}

static int poison_sum(const struct buf *x, double *ret, struct err *err)
{
	GUARDED("sum", x, NULL, NULL, cpu_sum(x, ret, err));
}

static int poison_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err)
{
	GUARDED("dot", x, y, NULL, cpu_dot(x, y, ret, err));
}

static int poison_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err)
{
	GUARDED("log_likelihood", y, p, NULL, cpu_log_likelihood(y, p, floor, ret, err));
}

static const struct buf *mask_of(const struct projection *a)
{
	return a->mask.mem ? &a->mask : NULL;
}

static int poison_forward(struct projection *a, const struct buf *x, struct buf *ret_y, struct err *err)
{
	GUARDED("forward", x, ret_y, mask_of(a), cpu_forward(a, x, ret_y, err));
}

static int poison_adjoint(struct projection *a, const struct buf *y, struct buf *ret_x, struct err *err)
{
	GUARDED("adjoint", y, ret_x, mask_of(a), cpu_adjoint(a, y, ret_x, err));
}

static int poison_forward_ratio(struct projection *a, const struct buf *x, const struct buf *y, float floor, struct buf *ret_p,
				struct err *err)
{
	if (mask_of(a) && trap("forward_ratio", mask_of(a), err) < 0)
		return -EFAULT;
	GUARDED("forward_ratio", x, y, ret_p, cpu_forward_ratio(a, x, y, floor, ret_p, err));
}

static int poison_back_update(struct projection *a, const struct buf *p, float floor, struct buf *x, struct err *err)
{
	GUARDED("back_update", p, x, mask_of(a), cpu_back_update(a, p, floor, x, err));
}

static const struct device_ops poison_ops = {
	.kind = "poison",
	.destroy = poison_destroy,
	.alloc = poison_alloc,
	.release = poison_release,
	.upload = poison_upload,
	.download = poison_download,
	.fill = poison_fill,
	.copy = poison_copy,
	.multiply = poison_multiply,
	.axpy = poison_axpy,
	.ratio = poison_ratio,
	.update = poison_update,
	.sum = poison_sum,
	.dot = poison_dot,
	.log_likelihood = poison_log_likelihood,
	.projection_bytes = cpu_projection_bytes,
	.scratch_bytes = cpu_scratch_bytes,
	.projection_create = cpu_projection_create,
	.projection_free = cpu_projection_free,
	.forward = poison_forward,
	.adjoint = poison_adjoint,
	.fused = cpu_fused,
	.forward_ratio = poison_forward_ratio,
	.back_update = poison_back_update,
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
