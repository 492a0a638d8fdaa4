/* SPDX-License-Identifier: Apache-2.0 */
/* device_cuda_stub.c - compiled in place of the CUDA device in a build without CUDA: device_cuda_open() returns ENODEV. */
#include "kernels/device.h"

#include <errno.h>

int device_cuda_open(int index, struct device **ret_dev, struct err *err)
{
	(void)ret_dev;
	return err_set(err, ENODEV, "cuda:%d: this build has no CUDA device (it was compiled without nvcc); use device \"cpu\"",
		       index);
}

size_t device_cuda_memory(int index)
{
	(void)index;
	return 0;
}

int device_cuda_current(void)
{
	return -1;
}

void device_cuda_make_current(int index)
{
	(void)index;
}

void *device_cuda_stream(const struct device *dev)
{
	(void)dev;
	return NULL;
}

int device_cuda_count(void)
{
	return 0;
}
