/* SPDX-License-Identifier: Apache-2.0 */
/* api_array.c - arrays of the caller: check them, use them in place, or bring them into the order of the device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/api/api_internal.h"

#define CUDA_ALIGNMENT 16 /* bytes: kernels read float4 */

void api_order_c(int ndim, const int64_t *shape, struct api_order *ret)
{
	*ret = (struct api_order){.ndim = ndim, .floats = 1};
	for (int i = ndim - 1; i >= 0; i--) {
		ret->shape[i] = shape[i];
		ret->strides[i] = (int64_t)ret->floats;
		ret->floats *= (size_t)shape[i];
	}
}

static const char *shape_text(int ndim, const int64_t *shape, char *ret, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < ndim && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%lld", i ? ", " : "", (long long)shape[i]);
	return ret;
}

static int check_memory(const struct tn_device *d, const struct tn_array *a, const char *name, bool *ret_device, struct err *err)
{
	bool cuda = device_cuda_stream(d->dev) != NULL;

	if (a->device.type == TN_HOST || a->device.type == TN_CUDA_HOST || (a->device.type == TN_CUDA_MANAGED && !cuda)) {
		*ret_device = !cuda;
		return 0;
	}
	if (a->device.type != TN_CUDA && a->device.type != TN_CUDA_MANAGED)
		return err_set(err, EINVAL, "%s: memory of type %d; allowed: host, CUDA", name, a->device.type);
	if (!cuda || (a->device.type == TN_CUDA && a->device.index != d->dev->index))
		return err_set(err, EINVAL, "%s: its memory is that of GPU %d, but the device is %s", name, a->device.index,
			       d->dev->name);
	*ret_device = true;
	return 0;
}

int api_array(const struct tn_device *d, const struct tn_array *a, const struct api_order *o, const char *name, bool written,
	      struct api_array *ret, struct err *err)
{
	static const char *const types[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"}; /* DLDataTypeCode */
	struct api_order c;
	char has[100], needs[100];
	int more, r;

	if (!a || !a->data || a->ndim < 0 || a->ndim > STRIDES_MAX || (a->ndim > 0 && !a->shape))
		return err_set(err, EINVAL, "%s: no array, or its data or shape are NULL", name);
	if (a->type.code != 2 || a->type.bits != 32 || a->type.lanes != 1)
		return err_set(err, EINVAL, "%s: values of type %s%d; allowed: float32", name,
			       a->type.code < sizeof(types) / sizeof(types[0]) ? types[a->type.code] : "", a->type.bits);
	more = o->ndim - a->ndim;
	for (int i = more < 0 ? more : 0; i < o->ndim; i++)
		if ((i < more ? 1 : a->shape[i - more]) != (i < 0 ? 1 : o->shape[i]))
			return err_set(err, EINVAL, "%s: an array of shape (%s); needed: (%s)", name,
				       shape_text(a->ndim, a->shape, has, sizeof(has)),
				       shape_text(o->ndim, o->shape, needs, sizeof(needs)));
	r = check_memory(d, a, name, &ret->on_device, err);
	if (r < 0)
		return r;
	ret->data = (float *)(void *)((char *)a->data + a->byte_offset);
	if ((uintptr_t)ret->data % sizeof(float))
		return err_set(err, EINVAL, "%s: its address is no multiple of 4", name);
	api_order_c(o->ndim, o->shape, &c);
	for (int i = 0; i < o->ndim; i++) {
		ret->strides[i] = i < more ? 0 : a->strides ? a->strides[i - more] : c.strides[i];
		if (written && o->shape[i] > 1 && ret->strides[i] == 0)
			return err_set(err, EINVAL, "%s: it is written, but its elements share memory (axis %d has stride 0)",
				       name, i);
	}
	return 0;
}

static bool same_strides(const struct api_order *o, const int64_t *strides)
{
	for (int i = 0; i < o->ndim; i++)
		if (o->shape[i] > 1 && strides[i] != o->strides[i])
			return false;
	return true;
}

/* Return whether the strides tell that the array has the padding of the order: in a volume of one column along z they do not, and
 * an array without padding has the same. */
static bool shows_padding(const struct api_order *o)
{
	struct api_order c;
	bool shown = false;

	api_order_c(o->ndim, o->shape, &c);
	for (int i = 0; i < o->ndim; i++)
		shown = shown || (o->shape[i] > 1 && o->strides[i] > 1);
	return shown || c.floats == o->floats;
}

static bool is_native(const struct tn_device *d, const struct api_array *a, const struct api_order *o)
{
	size_t alignment = device_cuda_stream(d->dev) ? CUDA_ALIGNMENT : sizeof(float);

	return a->on_device && !o->index.mem && same_strides(o, a->strides) && shows_padding(o) &&
	       (uintptr_t)a->data % alignment == 0;
}

static struct strides order_strides(const struct api_order *o, const int64_t *from, const int64_t *to)
{
	struct strides s = {.n = o->ndim, .axis = o->axis, .index = (const int32_t *)(const void *)o->index.mem};

	memcpy(s.shape, o->shape, sizeof(s.shape));
	memcpy(s.from, from, sizeof(s.from));
	memcpy(s.to, to, sizeof(s.to));
	return s;
}

/* Copy an array in host memory to `stage` on the device, which has it in C order, or back (`store`). */
static int stage_host(struct tn_device *d, const struct api_array *a, const struct api_order *c, bool store, struct buf *stage,
		      struct err *err)
{
	const struct device_ops *v = d->dev->ops;
	struct strides s = store ? order_strides(c, c->strides, a->strides) : order_strides(c, a->strides, c->strides);
	bool direct = same_strides(c, a->strides);
	float *host = direct ? a->data : malloc(c->floats * sizeof(*host));
	int r;

	if (!host)
		return err_set(err, ENOMEM, "array: no memory for a copy of %zu floats", c->floats);
	if (!store && !direct)
		strides_copy(&s, 1, a->data, host);
	r = store ? v->download(stage, host, err) : v->upload(stage, host, err);
	if (store && !direct && r == 0)
		strides_copy(&s, 1, host, a->data);
	if (!direct)
		free(host);
	return r;
}

/* Copy an array into memory of the device with these strides, or back (`store`). An array on the device that is loaded is only
 * queued: what uses the copy is queued behind it. */
static int move_array(struct tn_device *d, const struct api_array *a, const struct api_order *o, const int64_t *strides,
		      float *mem, bool store, struct err *err)
{
	const struct device_ops *v = d->dev->ops;
	struct api_array on = *a;
	struct buf stage = {0};
	struct api_order c;
	struct strides s;
	int r = 0;

	api_order_c(o->ndim, o->shape, &c);
	if (!a->on_device) {
		r = v->alloc(d->dev, c.floats, &stage, err);
		if (r == 0 && !store)
			r = stage_host(d, a, &c, false, &stage, err);
		on.data = stage.mem;
		memcpy(on.strides, c.strides, sizeof(on.strides));
	}
	s = store ? order_strides(o, strides, on.strides) : order_strides(o, on.strides, strides);
	s.scatter = store;
	if (r == 0)
		r = v->permute(d->dev, &s, store ? mem : on.data, store ? on.data : mem, err);
	if (r == 0 && store && !a->on_device)
		r = stage_host(d, a, &c, true, &stage, err);
	if (r == 0 && (store || stage.mem))
		r = v->wait(d->dev, QUEUE_WORK, err);
	buf_release(&stage);
	return r;
}

int api_array_begin(struct tn_device *d, const struct api_array *a, const struct api_order *o, bool load, struct buf *work,
		    struct buf *ret, struct err *err)
{
	const struct device_ops *v = d->dev->ops;
	int r = 0;

	if (is_native(d, a, o)) {
		*ret = (struct buf){d->dev, a->data, o->floats};
		return 0;
	}
	if (!work->mem) {
		r = v->alloc(d->dev, o->floats, work, err);
		if (r == 0)
			r = v->fill(work, 0, err); /* the padding */
	}
	if (r == 0 && load)
		r = move_array(d, a, o, o->strides, work->mem, false, err);
	*ret = *work;
	return r;
}

int api_array_end(struct tn_device *d, const struct api_array *a, const struct api_order *o, const struct buf *work,
		  const struct buf *used, struct err *err)
{
	if (used->mem == work->mem)
		return move_array(d, a, o, o->strides, work->mem, true, err);
	return d->dev->ops->wait(d->dev, QUEUE_WORK, err);
}

int api_array_copy(struct tn_device *d, const struct api_array *a, const struct api_order *o, const int64_t *strides, float *host,
		   bool store, struct err *err)
{
	struct api_array at = {.data = host};
	struct buf stage = {0};
	struct api_order c;
	struct strides s;
	int r;

	api_order_c(o->ndim, o->shape, &c);
	memcpy(at.strides, strides ? strides : c.strides, sizeof(at.strides));
	s = store ? order_strides(&c, at.strides, a->strides) : order_strides(&c, a->strides, at.strides);
	if (!a->on_device || !device_cuda_stream(d->dev)) {
		strides_copy(&s, d->dev->threads, store ? host : a->data, store ? a->data : host);
		return 0;
	}
	r = d->dev->ops->alloc(d->dev, c.floats, &stage, err);
	if (r == 0 && store)
		r = stage_host(d, &at, &c, false, &stage, err);
	if (r == 0)
		r = move_array(d, a, &c, c.strides, stage.mem, store, err);
	if (r == 0 && !store)
		r = stage_host(d, &at, &c, true, &stage, err);
	buf_release(&stage);
	return r;
}
