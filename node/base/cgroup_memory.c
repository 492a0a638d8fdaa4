/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_memory.c - see node/base/cgroup_memory.h. */
#include "node/base/cgroup_memory.h"

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

/* Return the limit of one group; 0: none ("max"). */
static size_t limit_of(const char *folder)
{
	char path[2200], text[64], *end;
	unsigned long long bytes;

	snprintf(path, sizeof(path), "%s/memory.max", folder);
	read_line(path, "", text, sizeof(text));
	bytes = strtoull(text, &end, 10);
	return end == text || *end ? 0 : (size_t)bytes;
}

size_t cgroup_memory(const char *membership, const char *root)
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
