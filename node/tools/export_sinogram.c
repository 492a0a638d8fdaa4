/* SPDX-License-Identifier: Apache-2.0 */
/* export_sinogram.c - see node/tools/export_sinogram.h. */
#include "node/tools/export_sinogram.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/tools/export_image.h"

/* ---- files ---- */

/* Make the file names: NAME.hs and its data NAME.s; for other roles NAME-role.hs. */
static int name_files(const struct sinogram *s, const char *path, enum sinogram_role role, char ret_header[4096],
		      char ret_data[4096], struct err *err)
{
	char suffix[32] = "";
	int base = (int)strlen(path) - 3; /* without .hs */

	if (role != s->format->first)
		snprintf(suffix, sizeof(suffix), "-%s", sinogram_role_name(role));
	for (char *c = suffix; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (snprintf(ret_header, 4096, "%.*s%s.hs", base, path, suffix) >= 4096 ||
	    snprintf(ret_data, 4096, "%.*s%s.s", base, path, suffix) >= 4096)
		return err_set(err, ENAMETOOLONG, "the name of the output file is too long");
	return 0;
}

static int export_role(const struct sinogram *s, enum sinogram_role role, const char *path, struct export_file *ret_file,
		       struct err *err)
{
	char header[4096], data[4096], *renamed = NULL;
	struct atomic_file *f[2] = {NULL}; /* data, header */
	uint8_t *bytes = NULL;
	int rc = name_files(s, path, role, header, data, err);

	if (rc == 0)
		rc = interfile_rename_data(s->part[role].text, file_name(data), &renamed, err);
	if (rc == 0)
		rc = sinogram_read(s, role, &bytes, err);
	if (rc == 0)
		rc = atomic_file_open(data, &f[0], err);
	if (rc == 0)
		rc = atomic_file_write(f[0], bytes, (size_t)s->part[role].bytes, err);
	if (rc == 0)
		rc = atomic_file_open(header, &f[1], err);
	if (rc == 0)
		rc = atomic_file_write(f[1], renamed, strlen(renamed), err);
	if (rc == 0) {
		rc = atomic_files_close(f, 2, err);
	} else {
		atomic_file_abort(f[0]);
		atomic_file_abort(f[1]);
	}
	if (rc == 0) {
		memcpy(ret_file->path, header, sizeof(ret_file->path));
		ret_file->role = role;
		ret_file->bytes = s->part[role].bytes;
	}
	free(bytes);
	free(renamed);
	return rc;
}

int export_sinogram_must_be_new(const struct sinogram *s, const char *path, struct err *err)
{
	char header[4096], data[4096];
	int rc = 0;

	for (int role = 1; role <= SINOGRAM_ROLES && rc == 0; role++) {
		if (!s->part[role].present)
			continue;
		rc = name_files(s, path, (enum sinogram_role)role, header, data, err);
		if (rc == 0)
			rc = export_must_be_new(header, err);
		if (rc == 0)
			rc = export_must_be_new(data, err);
	}
	return rc;
}

int export_sinogram(const struct sinogram *s, const char *path, struct export_file ret_file[SINOGRAM_ROLES], size_t *ret_n,
		    struct err *err)
{
	size_t n = 0;
	int rc = 0;

	if (s->images.n > 0)
		return err_set(err, ENOTSUP, "the acquisition has %d %ss, which are not exported", s->images.n,
			       pet_division_name(s->images.of));
	for (int role = 1; role <= SINOGRAM_ROLES && rc == 0; role++)
		if (s->part[role].present) {
			rc = export_role(s, (enum sinogram_role)role, path, &ret_file[n], err);
			n += rc == 0;
		}
	if (rc == 0) {
		*ret_n = n;
		return 0;
	}
	while (n-- > 0) {
		char header[4096], data[4096];

		if (name_files(s, path, ret_file[n].role, header, data, NULL) == 0) {
			remove(header);
			remove(data);
		}
	}
	return rc;
}
