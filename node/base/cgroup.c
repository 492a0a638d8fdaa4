/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - see node/base/cgroup.h. */
#include "node/base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read the first line of a file that begins with `start`, without `start` and the line end; "": there is none. */
static void read_line(const char *path, const char *start, char *ret, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[1024];

	ret[0] = '\0';
	while (f && !ret[0] && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, start, strlen(start)))
			snprintf(ret, size, "%s", line + strlen(start));
	}
	if (f)
		fclose(f);
}

/* Return the limit of memory of one group, bytes; 0: none ("max"). */
static size_t memory_of(const char *folder)
{
	char path[2200], text[64], *end;
	unsigned long long bytes;

	snprintf(path, sizeof(path), "%s/memory.max", folder);
	read_line(path, "", text, sizeof(text));
	bytes = strtoull(text, &end, 10);
	return end == text || *end ? 0 : (size_t)bytes;
}

/* Return the processors that one group may use at a time, rounded up; 0: no limit ("max 100000"). The file has the time that all
 * its processes together may run in each period, and the period, both in microseconds. */
static size_t cpus_of(const char *folder)
{
	char path[2200], text[64];
	unsigned long long quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	read_line(path, "", text, sizeof(text));
	if (sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0 || quota == 0)
		return 0;
	return (size_t)(quota / period + (quota % period > 0));
}

/* Return the smallest limit of the process's group and of the groups above it; 0: none. */
static size_t least_of(const char *membership, const char *root, size_t (*limit_of)(const char *folder))
{
	char group[1024], folder[2100];
	size_t least = 0, limit;

	read_line(membership, "0::", group, sizeof(group));
	if (group[0] != '/' || strstr(group, "/../"))
		return 0;
	for (;;) {
		char *last = strrchr(group, '/');

		snprintf(folder, sizeof(folder), "%s%s", root, group);
		limit = limit_of(folder);
		if (limit > 0 && (least == 0 || limit < least))
			least = limit;
		if (!last || !group[1])
			return least;
		last[last == group] = '\0'; /* the group above; "/" at last */
	}
}

size_t cgroup_memory(const char *membership, const char *root)
{
	return least_of(membership, root, memory_of);
}

int cgroup_cpus(const char *membership, const char *root)
{
	size_t n = least_of(membership, root, cpus_of);

	return n > INT_MAX ? 0 : (int)n;
}
