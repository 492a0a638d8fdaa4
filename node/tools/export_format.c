/* SPDX-License-Identifier: Apache-2.0 */
/* export_format.c - see node/tools/export_format.h. */
#include "node/tools/export_format.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/folder.h"

const struct export_format *const export_formats[EXPORT_FORMAT_COUNT + 1] = {
#define X(name) &export_format_##name,
	EXPORT_FORMATS(X)
#undef X
		NULL};

const struct export_format *export_format_of_file(const char *path)
{
	size_t n = strlen(file_name(path));

	for (size_t i = 0; export_formats[i]; i++)
		for (const char *const *e = export_formats[i]->endings; *e; e++)
			if (n > strlen(*e) && !strcmp(path + strlen(path) - strlen(*e), *e))
				return export_formats[i];
	return NULL;
}

const struct export_format *export_format_named(const char *name)
{
	for (size_t i = 0; export_formats[i]; i++)
		if (export_formats[i]->name && !strcmp(export_formats[i]->name, name))
			return export_formats[i];
	return NULL;
}

int export_job_add(struct export_job *j, char *path, bool hidden, const char *note, struct err *err)
{
	struct export_file *more = path ? realloc(j->files, (j->n + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(path);
		return err_set(err, ENOMEM, "no memory for the name of a file");
	}
	j->files = more;
	more[j->n] = (struct export_file){.path = path, .hidden = hidden};
	snprintf(more[j->n++].note, sizeof(more->note), "%s", note);
	return 0;
}

int export_job_write(struct export_job *j, const struct export_format *format, bool force, struct err *err)
{
	int rc = format->name_files(j, err);

	for (size_t i = 0; !force && i < j->n && rc == 0; i++)
		rc = export_must_be_new(j->files[i].path, err);
	if (rc == 0)
		rc = folder_create_parent(j->out, err);
	return rc == 0 ? format->write(j, err) : rc;
}

void export_job_print(const struct export_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->files[i].note[0])
			printf("%s: %s\n", j->files[i].path, j->files[i].note);
}

json_t *export_job_list(const struct export_job *j)
{
	json_t *files = json_array();

	for (size_t i = 0; i < j->n; i++)
		if (!j->files[i].hidden)
			json_array_append_new(files, json_string(j->files[i].path));
	return files;
}

void export_job_clear(struct export_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		free(j->files[i].path);
	free(j->files);
	json_decref(j->details);
	j->files = NULL;
	j->details = NULL;
	j->n = 0;
}

char *export_beside(const char *path, const char *ending)
{
	size_t cut = file_name_ends(path, ".nii.gz") ? 7 : strlen(strrchr(path, '.') ? strrchr(path, '.') : "");
	char *name;

	return asprintf(&name, "%.*s%s", (int)(strlen(path) - cut), path, ending) >= 0 ? name : NULL;
}

int export_must_be_new(const char *path, struct err *err)
{
	struct stat st;

	return lstat(path, &st) == 0 ? err_set(err, EEXIST, "%s exists; --force replaces it", path) : 0;
}
