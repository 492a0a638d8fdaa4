/* SPDX-License-Identifier: Apache-2.0 */
/* json_file.c - write JSON files for other programs: indented, members in the order in which they were added. */
#include "node/base/json_file.h"

#include <errno.h>
#include <stdio.h>

int json_file_write(json_t *root, const char *folder, const char *name, struct err *err)
{
	char path[4096];
	int rc = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!root || json_dump_file(root, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER) < 0)
		rc = err_set(err, EIO, "cannot write %s", path);
	json_decref(root);
	return rc;
}
