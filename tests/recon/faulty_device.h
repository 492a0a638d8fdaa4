/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose n-th call fails: *dev->ops is replaced by `faulty_ops(dev->ops)`, fault.ops keeps the original one, and
 * fault.left counts down. */
#ifndef TOMONODE_TESTS_RECON_FAULTY_DEVICE_H
#define TOMONODE_TESTS_RECON_FAULTY_DEVICE_H

#include <errno.h>

#include "kernels/device.h"

static struct {
	const struct device_ops *ops;
	int left; /* calls until one fails */
} fault;

#define FAULTY(name, parameters, ...)                                                                                            \
	static int faulty_##name parameters                                                                                      \
	{                                                                                                                        \
		return fault.left-- == 0 ? err_set(err, EIO, #name) : fault.ops->name(__VA_ARGS__);                              \
	}

FAULTY(alloc, (struct device * dev, size_t n, struct buf *ret, struct err *err), dev, n, ret, err)
FAULTY(upload, (struct buf * to, const float *from, struct err *err), to, from, err)
FAULTY(download, (const struct buf *from, float *to, struct err *err), from, to, err)
FAULTY(host_alloc, (struct device * dev, size_t n, void **ret, struct err *err), dev, n, ret, err)
FAULTY(upload_begin, (struct buf * to, const float *from, struct err *err), to, from, err)
FAULTY(download_begin, (const struct buf *from, float *to, struct err *err), from, to, err)
FAULTY(order, (struct device * dev, enum device_queue a, enum device_queue b, struct err *err), dev, a, b, err)
FAULTY(wait, (struct device * dev, enum device_queue queue, struct err *err), dev, queue, err)
FAULTY(fill, (struct buf * x, float value, struct err *err), x, value, err)
FAULTY(copy, (const struct buf *x, struct buf *ret, struct err *err), x, ret, err)
FAULTY(permute, (struct device * dev, const struct strides *s, const float *from, float *to, struct err *err), dev, s, from, to,
       err)
FAULTY(multiply, (const struct buf *x, const struct buf *y, struct buf *ret, struct err *err), x, y, ret, err)
FAULTY(axpy, (float a, const struct buf *x, struct buf *y, struct err *err), a, x, y, err)
FAULTY(threshold, (struct buf * x, float at, float value, struct err *err), x, at, value, err)
FAULTY(rule_voxels, (const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err), rule,
       num, den, x, err)
FAULTY(blur, (const struct buf *x, const struct grid *g, const double s[3], struct buf *work, struct buf *ret, struct err *err),
       x, g, s, work, ret, err)
FAULTY(prior_sums,
       (const struct prior *prior, const struct buf *x, const struct grid *g, const int halo[2], bool ratio, struct buf *num,
	struct buf *den, struct err *err),
       prior, x, g, halo, ratio, num, den, err)
FAULTY(sum, (const struct buf *x, double *ret, struct err *err), x, ret, err)
FAULTY(dot, (const struct buf *x, const struct buf *y, double *ret, struct err *err), x, y, ret, err)
FAULTY(projection_create, (struct device * dev, const struct projection_spec *spec, struct projection **ret, struct err *err),
       dev, spec, ret, err)
FAULTY(forward, (struct projection * a, const struct buf *x, bool add, struct buf *y, struct err *err), a, x, add, y, err)
FAULTY(adjoint, (struct projection * a, const struct buf *y, bool add, struct buf *x, struct err *err), a, y, add, x, err)
FAULTY(back_interpolated, (struct projection * a, const struct buf *y, bool add, struct buf *x, struct err *err), a, y, add, x,
       err)
FAULTY(rule_bins,
       (const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row, const struct buf *mult,
	const struct buf *add, struct buf *ret, struct err *err),
       rule, y, p, row, mult, add, ret, err)
FAULTY(make_pair,
       (struct projection * a, const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
	struct buf *pair, struct err *err),
       a, rule, y, p, row, pair, err)
FAULTY(back_sums, (struct projection * a, const struct buf *pair, bool add, struct buf *num, struct buf *den, struct err *err), a,
       pair, add, num, den, err)
FAULTY(forward_pair,
       (struct projection * a, const struct rule *rule, const struct buf *x, const struct buf *y, const struct buf *row,
	struct buf *pair, struct err *err),
       a, rule, x, y, row, pair, err)
FAULTY(back_update, (struct projection * a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err), a,
       rule, pair, x, err)
FAULTY(sub_iterate,
       (struct projection * a, const struct rule *rule, const struct buf *y, const struct buf *row, struct buf *work,
	struct buf *x, struct err *err),
       a, rule, y, row, work, x, err)
FAULTY(mark, (struct projection * a, struct buf *x, struct err *err), a, x, err)
FAULTY(events_create, (struct device * dev, const struct events_spec *spec, struct events **ret, struct err *err), dev, spec, ret,
       err)
FAULTY(events_sort, (struct events * a, struct buf *events, struct err *err), a, events, err)
FAULTY(events_forward, (struct events * a, const struct buf *events, const struct buf *x, struct buf *y, struct err *err), a,
       events, x, y, err)
FAULTY(events_back, (struct events * a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err), a, events,
       q, x, err)
FAULTY(events_ratio,
       (struct events * a, const struct buf *events, float floor, const struct buf *x, struct buf *sum, struct err *err), a,
       events, floor, x, sum, err)

#define FAULTY_SET(name) f.name = faulty_##name

static inline struct device_ops faulty_ops(const struct device_ops *ops)
{
	struct device_ops f = *ops;

	FAULTY_SET(alloc);
	FAULTY_SET(upload);
	FAULTY_SET(download);
	FAULTY_SET(host_alloc);
	FAULTY_SET(upload_begin);
	FAULTY_SET(download_begin);
	FAULTY_SET(order);
	FAULTY_SET(wait);
	FAULTY_SET(fill);
	FAULTY_SET(copy);
	FAULTY_SET(permute);
	FAULTY_SET(multiply);
	FAULTY_SET(axpy);
	FAULTY_SET(threshold);
	FAULTY_SET(rule_voxels);
	FAULTY_SET(blur);
	FAULTY_SET(prior_sums);
	FAULTY_SET(sum);
	FAULTY_SET(dot);
	FAULTY_SET(projection_create);
	FAULTY_SET(forward);
	FAULTY_SET(adjoint);
	FAULTY_SET(back_interpolated);
	FAULTY_SET(rule_bins);
	FAULTY_SET(make_pair);
	FAULTY_SET(back_sums);
	FAULTY_SET(forward_pair);
	FAULTY_SET(back_update);
	FAULTY_SET(sub_iterate);
	FAULTY_SET(mark);
	FAULTY_SET(events_create);
	FAULTY_SET(events_sort);
	FAULTY_SET(events_forward);
	FAULTY_SET(events_back);
	FAULTY_SET(events_ratio);
	return f;
}

#endif
