/* SPDX-License-Identifier: Apache-2.0 */
/* device_open.c - open and list devices by name: the only place that knows every kind of device and parses their names. */
#include "kernels/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

/* Return the number in `spec` after `prefix` and a colon ("cpu:12": 12), `none` if there is no colon ("cpu"), or -1 if `spec` has
 * another form or the number exceeds `limit`. */
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
