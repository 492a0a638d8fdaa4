/* device.c - opening, closing and checking devices, and the little that is the same for all of them.
 *
 * The text that names a device is parsed here and nowhere else.
 */
#include "kernels/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

/* "cpu:12" with prefix "cpu": 12; "cpu": `none`; anything else: -1. */
static int parse_number(const char *spec, const char *prefix, int none, int limit)
{
	size_t n = strlen(prefix);
	char *end;
	long value;

	if (strncmp(spec, prefix, n) != 0)
		return -1;
	if (!spec[n])
		return none;
	if (spec[n] != ':' || spec[n + 1] < '0' || spec[n + 1] > '9')
		return -1;
	errno = 0;
	value = strtol(spec + n + 1, &end, 10);
	return errno || *end || value > limit ? -1 : (int)value;
}

int device_open(const char *spec, struct device **ret_dev, struct err *err)
{
	int number;

	if (!spec || !*spec)
		return err_set(err, EINVAL, "device: no name given; allowed: auto, cpu, cpu:THREADS, cuda, cuda:N");
	if (strcmp(spec, "auto") == 0) {
		if (device_cuda_count() > 0 && device_cuda_open(0, ret_dev, NULL) == 0)
			return 0;
		return device_cpu_open(0, ret_dev, err);
	}
	number = parse_number(spec, "cpu", 0, THREADS_MAX);
	if (number > 0 || strcmp(spec, "cpu") == 0)
		return device_cpu_open(number, ret_dev, err);
	number = parse_number(spec, "cuda", 0, 255);
	if (number >= 0)
		return device_cuda_open(number, ret_dev, err);
	return err_set(err, EINVAL, "device '%.60s' is not known; allowed: auto, cpu, cpu:THREADS (1..%d), cuda, cuda:N", spec,
		       THREADS_MAX);
}

struct device *device_close(struct device *dev)
{
	if (dev)
		dev->ops->destroy(dev);
	return NULL;
}

int device_list(void (*each)(void *ctx, const char *spec, const char *name, size_t memory), void *ctx)
{
	int n_cuda = device_cuda_count(), found = 0, i;
	struct device *dev;
	char spec[16];

	if (device_cpu_open(0, &dev, NULL) == 0) {
		each(ctx, "cpu", dev->name, dev->memory);
		dev = device_close(dev);
		found++;
	}
	for (i = 0; i < n_cuda; i++) {
		snprintf(spec, sizeof(spec), "cuda:%d", i);
		if (device_cuda_open(i, &dev, NULL) < 0)
			continue;
		each(ctx, spec, dev->name, dev->memory);
		dev = device_close(dev);
		found++;
	}
	return found;
}

int device_check(const struct device_ops *ops, struct err *err)
{
#define SLOT(f)                                                                                                                  \
	if (!ops->f)                                                                                                             \
	return err_set(err, EINVAL, "device table '%s': slot %s is empty", ops->kind ? ops->kind : "?", #f)
	SLOT(kind);
	SLOT(destroy);
	SLOT(alloc);
	SLOT(release);
	SLOT(upload);
	SLOT(download);
	SLOT(host_alloc);
	SLOT(host_free);
	SLOT(upload_begin);
	SLOT(download_begin);
	SLOT(order);
	SLOT(wait);
	SLOT(fill);
	SLOT(copy);
	SLOT(multiply);
	SLOT(axpy);
	SLOT(threshold);
	SLOT(blur);
	SLOT(convolve);
	SLOT(prior_gradient);
	SLOT(rule_bins);
	SLOT(rule_voxels);
	SLOT(sum);
	SLOT(dot);
	SLOT(tally);
	SLOT(log_likelihood);
	SLOT(step_rate);
	SLOT(projection_bytes);
	SLOT(scratch_bytes);
	SLOT(projection_create);
	SLOT(projection_free);
	SLOT(forward);
	SLOT(adjoint);
	SLOT(back_interpolated);
	SLOT(row_sweep);
	SLOT(make_pair);
	SLOT(back_sums);
	SLOT(fused);
	SLOT(forward_pair);
	SLOT(back_update);
	SLOT(mark);
#undef SLOT
	return 0;
}

struct buf buf_part(const struct buf *b, size_t at, size_t n)
{
	struct buf part = {b->dev, b->mem + at, n};

	return part;
}

void buf_release(struct buf *b)
{
	if (!b)
		return;
	if (b->dev && b->mem)
		b->dev->ops->release(b);
	b->dev = NULL;
	b->mem = NULL;
	b->n = 0;
}
