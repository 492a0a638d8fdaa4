/* SPDX-License-Identifier: Apache-2.0 */
/* pet_source.c - choose a row. */
#include "node/sinogram/pet_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

#define X(name) &pet_source_##name,
static const struct pet_source *const sources[] = {PET_SOURCES(X)};
#undef X
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

const struct pet_source *pet_source_of_file(const char *path)
{
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i]->open && sources[i]->is_file && sources[i]->is_file(path))
			return sources[i];
	return NULL;
}

const struct pet_source *pet_source_to_import(const char *path)
{
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i]->import && sources[i]->is_file(path))
			return sources[i];
	return NULL;
}

const struct pet_source *pet_source_of_object(const struct dicom_item *root)
{
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i]->is_object && sources[i]->is_object(root))
			return sources[i];
	return &pet_source_objects;
}

bool pet_source_has_class(const char *sop_class)
{
	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i]->sop_class && !strcmp(sources[i]->sop_class, sop_class))
			return true;
	return false;
}

/* Open the files, or take those that are open. */
static int open_files(struct sinogram *s, const char *const *paths, size_t n, struct dicom_file **opened, struct err *err)
{
	s->paths = calloc(n, sizeof(*s->paths));
	s->files = calloc(n, sizeof(*s->files));
	if (!s->paths || !s->files)
		return err_set(err, ENOMEM, "no memory for %zu files", n);
	for (size_t i = 0; i < n; i++) {
		int rc = 0;

		if (opened && opened[i]) {
			s->files[i] = opened[i];
			opened[i] = NULL;
		} else {
			rc = dicom_open(paths[i], &s->files[i], err);
		}
		if (rc < 0) {
			err_prefix(err, "%s", file_name(paths[i]));
			return rc;
		}
		s->n_files = i + 1;
		s->paths[i] = strdup(paths[i]);
		if (!s->paths[i])
			return err_set(err, ENOMEM, "no memory for a path");
	}
	return 0;
}

static int open_acquisition(const char *const *paths, size_t n, const struct pet_opening *o, struct sinogram **ret,
			    struct err *err)
{
	struct sinogram *s;
	int rc = 0;

	if (n == 0 || n > SINOGRAM_FILES_MAX)
		return err_set(err, EBADMSG, "%zu files; an acquisition has 1 to %d", n, SINOGRAM_FILES_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "no memory for an acquisition");
	s->source = n == 1 && o->protocol ? pet_source_of_file(paths[0]) : NULL;
	if (!s->source) {
		rc = open_files(s, paths, n, o->files, err);
		s->source = rc == 0 ? pet_source_of_object(dicom_root(s->files[0])) : NULL;
	}
	if (rc == 0)
		rc = s->source->open(s, paths[0], o, err);
	if (rc < 0)
		sinogram_close(s);
	else
		*ret = s;
	return rc;
}

int pet_source_open(const char *const *paths, size_t n, const struct pet_opening *o, struct sinogram **ret, struct err *err)
{
	int rc = open_acquisition(paths, n, o, ret, err);

	for (size_t i = 0; o->files && i < n; i++)
		o->files[i] = dicom_close(o->files[i]);
	return rc;
}

int sinogram_open(const char *const *paths, size_t n, const struct patient_statement *patient, const struct config *config,
		  struct sinogram **ret, struct err *err)
{
	return pet_source_open(paths, n, &(struct pet_opening){.patient = patient, .config = config}, ret, err);
}
