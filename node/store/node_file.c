/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/node_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int path_of(const char *spool, const char *ending, char *ret_path, size_t size)
{
	return snprintf(ret_path, size, "%s/node.json%s", spool, ending) < (int)size ? 0 : -1;
}

bool node_file_write(const char *spool, const char *text)
{
	char path[340], part[340];
	bool whole;
	FILE *f;
	int fd;

	if (path_of(spool, "", path, sizeof(path)) < 0 || path_of(spool, ".part", part, sizeof(part)) < 0)
		return false;
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	whole = fputs(text, f) >= 0;
	whole = fclose(f) == 0 && whole;
	if (whole && rename(part, path) == 0)
		return true;
	unlink(part);
	return false;
}

json_t *node_file_read(const char *spool)
{
	char path[340];
	json_t *report = path_of(spool, "", path, sizeof(path)) < 0 ? NULL : json_load_file(path, 0, NULL);

	if (json_is_object(report) && json_is_array(json_object_get(report, "devices")))
		return report;
	json_decref(report);
	return NULL;
}
