/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_data.c - the data file of an Interfile header. It must be in the folder of its header, or below it, and have
 * exactly the number of bytes that the header requires, because values at wrong offsets would give a wrong image without an
 * error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/folder.h"
#include "node/format/interfile_internal.h"

bool interfile_stays_in_folder(const char *name)
{
	if (!name[0] || strchr(name, '\\'))
		return false;
	for (;; name++) {
		size_t n = strcspn(name, "/");

		if (n == 0 || (name[0] == '.' && n > 1) || (n == 1 && name[0] == '.' && !name[1]))
			return false;
		name += n;
		if (!*name)
			return true;
	}
}

/* Make the path of the data file. e7tools run on Windows: their headers may have a path of that system, or the name that the file
 * had before it was renamed together with its header, FILE.hdr. */
static int name_data(const struct interfile *f, const char *header, char **ret, struct err *err)
{
	const char *name = f->data_file, *last = strrchr(name, '\\');
	size_t length = strlen(header);
	struct stat st;

	if (f->siemens && last)
		name = last + 1;
	if (!interfile_stays_in_folder(name))
		return err_set(
			err, ENOTSUP,
			"name of data file := %.100s; allowed: a file in the header's folder or below it, such as sub/data.s, "
			"without \"..\", hidden parts, \\ and absolute paths, because a header must not name files elsewhere: "
			"put the data beside the header",
			f->data_file);
	if (asprintf(ret, "%.*s%s", (int)(file_name(header) - header), header, name) < 0) {
		*ret = NULL;
		return err_set(err, ENOMEM, "no memory for a path");
	}
	if (f->siemens && length > 4 && !strcmp(header + length - 4, ".hdr") && stat(*ret, &st) < 0) {
		free(*ret);
		*ret = strndup(header, length - 4);
	}
	return *ret ? 0 : err_set(err, ENOMEM, "no memory for a path");
}

int interfile_find_data(const struct interfile *f, const char *header, char **ret_path, uint64_t *ret_bytes, struct err *err)
{
	char extent[100];
	struct stat st;
	int rc = name_data(f, header, ret_path, err);

	if (rc < 0)
		return rc;
	if (stat(*ret_path, &st) < 0)
		return err_set(err, errno == ENOENT ? EBADMSG : folder_input_code(errno), "cannot open %s: %s", *ret_path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "%s is not a regular file", *ret_path);
	*ret_bytes = f->offset + interfile_bytes(f);
	if ((uint64_t)st.st_size == *ret_bytes || (f->more_data && (uint64_t)st.st_size > *ret_bytes))
		return 0;
	interfile_extent(f, extent, sizeof(extent));
	return err_set(err, EBADMSG, "%s has %llu bytes; its header requires %llu (%s) after an offset of %llu",
		       file_name(*ret_path), (unsigned long long)st.st_size, (unsigned long long)interfile_bytes(f), extent,
		       (unsigned long long)f->offset);
}
