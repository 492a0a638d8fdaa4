/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/report_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/base/own_files.h"
#include "node/report/report_internal.h"

#define NAME_DIGITS 12

const struct series_volume *report_volume_with(const struct series_files *files, const char *name)
{
	for (size_t i = 0; i < files->n; i++)
		for (size_t k = 0; k < files->list[i].n; k++)
			if (!strcmp(file_name(files->list[i].paths[k]), name))
				return &files->list[i];
	return NULL;
}

int report_volume_open(const struct series_volume *g, const struct report_conf *conf, struct image_series **ret_series,
		       char ret_notes[SLICES_NOTES_SIZE], struct err *err)
{
	struct tomo_object *t = NULL;
	int rc;

	ret_notes[0] = '\0';
	if (!g->tomo)
		return image_series_open(g->paths, g->n, conf->lazy, ret_series, err);
	rc = tomo_slices_open(g->paths[0], conf->config, conf->voxel, &t, ret_notes, err);
	if (rc == 0)
		rc = image_series_of_tomo(&t, g->paths[0], ret_series, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(g->paths[0]));
	tomo_object_close(t);
	return rc;
}

static int open_header(const char *path, struct dicom_file **ret_header, struct err *err)
{
	int rc = dicom_open(path, ret_header, err);

	return rc < 0 ? err_prefix(err, "%s", file_name(path)) : 0;
}

/* Read the pictures of the corrections from the folder of the objects. */
static void read_corrections(const struct series_volume *g, const struct dicom_item *root,
			     struct correction_pictures *ret_pictures, struct report_request *request, char *ret_missing,
			     size_t size)
{
	const char *path = g->paths[0];
	char folder[400] = ".";
	struct err why = {0};
	int rc;

	if (file_name(path) > path)
		snprintf(folder, sizeof(folder), "%.*s", (int)(file_name(path) - path - 1), path);
	rc = correction_pictures_read(folder[0] ? folder : "/", g->series, ret_pictures, &why);
	if (rc == 0)
		request->corrections = ret_pictures;
	else if (rc != -ENOENT)
		snprintf(ret_missing, size,
			 "Their pictures cannot be shown: " OWN_CORRECTIONS "....json beside the objects: %.500s.", why.msg);
	else if (report_has_corrections(root))
		snprintf(ret_missing, size,
			 "Their pictures are not there: they are in " OWN_CORRECTIONS
			 "....json, which the reconstruction writes beside the objects, and is not sent with them.");
}

int report_volume_make(const struct series_volume *g, const struct report_conf *conf, struct html *h, struct err *err)
{
	char notes[SLICES_NOTES_SIZE], missing[640] = "";
	struct report_request request = {.patient = conf->patient, .notes = notes, .no_corrections = missing};
	struct correction_pictures corrections = {0};
	struct dicom_file *header = NULL;
	struct image_series *s = NULL;
	struct series_suv suv;
	int rc = report_volume_open(g, conf, &s, notes, err);

	if (rc == 0 && !g->tomo && !s->ct) {
		rc = series_suv_read(g->paths, g->n, &suv, err);
		request.suv = &suv;
	}
	if (rc == 0)
		rc = open_header(g->paths[0], &header, err);
	if (rc == 0 && request.suv)
		read_corrections(g, dicom_root(header), &corrections, &request, missing, sizeof(missing));
	if (rc == 0)
		rc = report_make(s, dicom_root(header), g->tomo ? 1 : g->n, &request, h, err);
	correction_pictures_clear(&corrections);
	dicom_close(header);
	image_series_close(s);
	return rc;
}

static int name_report(const struct series_volume *g, const char *folder, char **ret_path, struct err *err)
{
	char hex[65];

	dicom_sha256(g->uid, strlen(g->uid), hex);
	if (asprintf(ret_path, "%s/report-%.*s-%.*s.html", folder, (int)g->plain, g->name, NAME_DIGITS, hex) < 0)
		return err_set(err, ENOMEM, "no memory for a path");
	return 0;
}

int report_volume_write(const struct series_volume *g, const struct report_conf *conf, const char *folder, char **ret_path,
			struct err *err)
{
	struct html h = {0};
	char *path = NULL;
	int rc = report_volume_make(g, conf, &h, err);

	if (rc == 0)
		rc = name_report(g, folder, &path, err);
	if (rc == 0)
		rc = folder_create(folder, err);
	if (rc == 0)
		rc = atomic_file_put(path, h.text, h.n, err);
	html_clear(&h);
	if (rc < 0)
		free(path);
	else
		*ret_path = path;
	return rc;
}
