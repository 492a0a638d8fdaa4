/* SPDX-License-Identifier: Apache-2.0 */
/* json_file.c - see node/base/json_file.h; members are written in the order in which they were added. */
#include "node/base/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"

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

int json_file_read(const char *path, json_t **ret_root, struct err *err)
{
	json_error_t why;

	*ret_root = NULL;
	if (access(path, R_OK) < 0)
		return err_set(err, errno == ENOENT ? ENOENT : EBADMSG, "%s", strerror(errno));
	if (folder_exists(path))
		return err_set(err, EBADMSG, "a folder, not a JSON file");
	*ret_root = json_load_file(path, 0, &why);
	if (*ret_root)
		return 0;
	return why.line > 0 ? err_set(err, EBADMSG, "line %d: %s", why.line, why.text) : err_set(err, EBADMSG, "%s", why.text);
}
