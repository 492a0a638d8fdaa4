/* SPDX-License-Identifier: Apache-2.0 */
/* export_sinogram.c - write the Interfile files that sinogram objects were made from: EMISSION in the file that the user names (.hs)
 * and a .s file in the same folder, other roles in NAME-multiplicative.hs and so on. Data and header texts are unchanged, except for
 * the name of the data file. */
#include "node/tools/export_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "node/base/atomic_file.h"
#include "node/base/folder.h"

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

static int name_roles(struct export_job *j, struct err *err)
{
	const struct sinogram *s = j->sinogram;
	char header[4096], data[4096], note[80];
	int rc = 0;

	for (int role = 1; role <= SINOGRAM_ROLES && rc == 0; role++) {
		if (!s->part[role].present)
			continue;
		rc = name_files(s, j->out, (enum sinogram_role)role, header, data, err);
		snprintf(note, sizeof(note), "%s, %llu bytes", sinogram_role_name((enum sinogram_role)role),
			 (unsigned long long)s->part[role].bytes);
		if (rc == 0)
			rc = export_job_add(j, strdup(header), false, note, err);
		if (rc == 0)
			rc = export_job_add(j, strdup(data), true, "", err);
	}
	return rc;
}

static int write_role(const struct sinogram *s, enum sinogram_role role, const char *header, const char *data, struct err *err)
{
	struct atomic_file *f[2] = {NULL}; /* data, header */
	uint8_t *bytes = NULL;
	char *renamed = NULL;
	int rc = interfile_rename_data(s->part[role].text, file_name(data), &renamed, err);

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
	free(bytes);
	free(renamed);
	return rc;
}

static int write_roles(struct export_job *j, struct err *err)
{
	const struct sinogram *s = j->sinogram;
	size_t n = 0;
	int rc = 0;

	if (s->images.n > 0)
		return err_set(err, ENOTSUP, "the acquisition has %d %ss, which are not exported", s->images.n,
			       pet_division_name(s->images.of));
	for (int role = 1; role <= SINOGRAM_ROLES && rc == 0; role++)
		if (s->part[role].present) {
			rc = write_role(s, (enum sinogram_role)role, j->files[n].path, j->files[n + 1].path, err);
			n += rc == 0 ? 2 : 0;
		}
	while (rc < 0 && n-- > 0)
		remove(j->files[n].path);
	return rc;
}

const struct export_format export_format_sinogram = {
	.endings = {".hs"},
	.help = ".hs   Interfile projection data, byte for byte as imported; each other role (attenuation, ...) in NAME-role.hs.\n"
		"      Of raw data of a scanner the prompts, the delayed coincidences in NAME-delayeds.hs, and the detector\n"
		"      efficiencies in NAME-multiplicative.hs.\n",
	.input = EXPORT_BYTES,
	.name_files = name_roles,
	.write = write_roles,
};
