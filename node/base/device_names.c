/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/device_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/cgroup.h"

static bool number_allowed(const char *text, long lo)
{
	size_t n = strlen(text);

	return n > 0 && n <= 3 && strspn(text, "0123456789") == n && strtol(text, NULL, 10) >= lo;
}

static bool name_allowed(const char *name)
{
	if (!strcmp(name, "cpu") || !strcmp(name, "cuda"))
		return true;
	if (!strncmp(name, "cpu:", 4))
		return number_allowed(name + 4, 1);
	return !strncmp(name, "cuda:", 5) && number_allowed(name + 5, 0);
}

bool device_name_is_wildcard(const char *name)
{
	return !strcmp(name, "auto") || !strcmp(name, "cuda");
}

int device_names_parse(const char *text, char ret_names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE])
{
	bool all = false, one = false;
	int n = 0;

	if (!strcmp(text, "auto")) {
		strcpy(ret_names[0], text);
		return 1;
	}
	for (;;) {
		size_t length;

		text += strspn(text, " ");
		length = strcspn(text, ", ");
		if (n == DEVICE_NAMES_MAX || length >= DEVICE_NAME_SIZE)
			return -1;
		memcpy(ret_names[n], text, length);
		ret_names[n][length] = '\0';
		if (!name_allowed(ret_names[n]))
			return -1;
		one = one || !strncmp(ret_names[n], "cuda:", 5);
		if (!strcmp(ret_names[n], "cuda")) {
			if (all)
				return -1;
			all = true;
		}
		n++;
		text += length;
		text += strspn(text, " ");
		if (!*text)
			return all && one ? -1 : n; /* "cuda" includes every "cuda:N" already */
		if (*text++ != ',')
			return -1;
	}
}

size_t device_names_allowed(void)
{
	return cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");
}

double device_names_memory(void)
{
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	size_t allowed = device_names_allowed();

	return allowed > 0 && (double)allowed < memory ? (double)allowed : memory;
}

void device_names_limit(struct device *dev, size_t allowed)
{
	dev->host_memory = allowed;
	if (!strcmp(dev->ops->kind, "cpu") && allowed > 0 && (dev->memory == 0 || allowed < dev->memory))
		dev->memory = allowed;
}

int device_names_open(const char *text, struct device **ret_dev, struct err *err)
{
	char names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE];
	int n = device_names_parse(text, names), rc = -ENODEV;

	if (n < 0)
		rc = device_open(text, ret_dev, err); /* its error lists the allowed names */
	for (int i = 0; i < n; i++) {
		rc = device_open(names[i], ret_dev, err);
		if (rc == 0)
			break;
	}
	if (rc == 0)
		device_names_limit(*ret_dev, device_names_allowed());
	return rc;
}
