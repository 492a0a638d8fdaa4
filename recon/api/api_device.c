/* SPDX-License-Identifier: Apache-2.0 */
/* api_device.c - devices of the public library, and what every call of one begins and ends with: the device's lock, the OpenMP
 * setting and the CUDA device of the calling thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recon/api/api_internal.h"
#include "recon/core/threads.h"

const char *tn_version(int *ret_abi)
{
	if (ret_abi)
		*ret_abi = TN_ABI;
	return TOMONODE_VERSION;
}

int api_take(const void *from, void *to, size_t own, const char *name, struct err *err)
{
	size_t size = from ? *(const size_t *)from : 0;

	if (size < sizeof(size_t) || size > 1 << 16)
		return err_set(err, EINVAL, "struct %s: %s", name,
			       from ? "its member `size` is not set: TN_SIZE()" : "none given");
	for (size_t i = own; i < size; i++)
		if (((const char *)from)[i])
			return err_set(err, EINVAL,
				       "struct %s: a member at byte %zu is of a newer version than this library (%s)", name, i,
				       TOMONODE_VERSION);
	memset(to, 0, own);
	memcpy(to, from, size < own ? size : own);
	return 0;
}

int api_give(const void *from, void *to, size_t own, const char *name, struct err *err)
{
	size_t size = to ? *(size_t *)to : 0;

	if (size < sizeof(size_t) || size > 1 << 16)
		return err_set(err, EINVAL, "struct %s: %s", name, to ? "its member `size` is not set: TN_SIZE()" : "none given");
	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size), (size < own ? size : own) - sizeof(size));
	return 0;
}

int tn_devices(void (*each)(void *ctx, const char *name, const char *description, size_t memory), void *ctx)
{
	int cuda = device_cuda_current(), n = each ? device_list(each, ctx) : 0;

	device_cuda_make_current(cuda);
	return n;
}

int tn_device_open(const char *name, struct tn_device **ret, struct tn_err *err)
{
	int cuda = device_cuda_current(), r;
	struct tn_device *d;
	pthread_mutexattr_t attr;

	if (!ret)
		return err_set(api_err(err), EINVAL, "device: no place for the result");
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(api_err(err), ENOMEM, "device: out of memory");
	r = device_open(name, &d->dev, api_err(err));
	device_cuda_make_current(cuda);
	if (r < 0) {
		free(d);
		return r;
	}
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&d->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	d->owner = getpid();
	atomic_init(&d->users, 1);
	*ret = d;
	return 0;
}

void api_device_keep(struct tn_device *d)
{
	atomic_fetch_add(&d->users, 1);
}

void tn_device_close(struct tn_device *d)
{
	int cuda;

	if (!d || d->owner != getpid() || atomic_fetch_sub(&d->users, 1) > 1)
		return;
	cuda = device_cuda_current();
	device_close(d->dev);
	device_cuda_make_current(cuda);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

int api_enter(struct tn_device *d, struct api_call *ret, struct err *err)
{
	int r;

	if (!d)
		return err_set(err, EINVAL, "device: none given");
	if (d->owner != getpid())
		return err_set(err, EPERM, "%s: opened before this process was forked; open it in the child", d->dev->name);
	r = pthread_mutex_lock(&d->lock);
	if (r)
		return err_set(err, r, "%s: a progress function must not use the device that calls it", d->dev->name);
	*ret = (struct api_call){d, threads_now(), device_cuda_current()};
	if (!device_cuda_stream(d->dev))
		threads_limit(d->dev->threads);
	return 0;
}

void api_leave(const struct api_call *call)
{
	threads_limit(call->threads);
	device_cuda_make_current(call->cuda);
	pthread_mutex_unlock(&call->device->lock);
}

int tn_device_info(struct tn_device *d, struct tn_device_info *ret, struct tn_err *err)
{
	struct tn_device_info info = {.memory = TN_HOST};

	if (!d)
		return err_set(api_err(err), EINVAL, "device: none given");
	snprintf(info.name, sizeof(info.name), "%s", d->dev->name);
	info.stream = device_cuda_stream(d->dev);
	info.memory = info.stream ? TN_CUDA : TN_HOST;
	info.index = d->dev->index;
	info.threads = d->dev->threads;
	info.bytes = d->dev->memory;
	return api_give(&info, ret, sizeof(info), "tn_device_info", api_err(err));
}
