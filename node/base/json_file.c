/* SPDX-License-Identifier: Apache-2.0 */
/* json_file.c - write JSON files for other programs: indented, members in the order in which they were added. */
#include "node/base/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"

int json_file_write(json_t *root, const char *folder, const char *name, struct err *err)
{
	char path[4096], *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (text)
		rc = atomic_file_put(path, text, strlen(text), err);
	else
		rc = err_set(err, ENOMEM, "cannot write %s: no memory for its text", path);
	free(text);
	json_decref(root);
	return rc;
}
