/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/report_files.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/base/own_files.h"
#include "node/report/report_internal.h"
#include "node/tomo/tomo_slices.h"

#define FILES_MAX 100000
#define NAME_DIGITS 12

/* ---- find ---- */

struct kind_of_file {
	bool image, tomo;
	char series[DICOM_UID_SIZE];
};

static int read_kind(const char *path, struct kind_of_file *ret, struct err *err)
{
	FILE *f = fopen(path, "rb");
	char mark[4] = "", sop_class[DICOM_UID_SIZE] = "";
	struct dicom_file *file = NULL;
	bool dicom = f && !fseek(f, 128, SEEK_SET) && fread(mark, 1, 4, f) == 4 && !memcmp(mark, "DICM", 4);
	int rc;

	*ret = (struct kind_of_file){0};
	if (f)
		fclose(f);
	if (!dicom)
		return 0;
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(path));
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(dicom_root(file), TAG_SERIES_INSTANCE_UID, ret->series, sizeof(ret->series), NULL);
	ret->image = !strcmp(sop_class, PET_IMAGE_CLASS) || !strcmp(sop_class, CT_IMAGE_CLASS);
	ret->tomo = !ret->image && tomo_object_is(dicom_root(file));
	dicom_close(file);
	return 0;
}

/* Return the group of this series, a new one for a tomosynthesis. NULL: no memory. */
static struct report_group *group_of(struct report_groups *g, const struct kind_of_file *kind)
{
	struct report_group *list;

	for (size_t i = g->n; !kind->tomo && i-- > 0;)
		if (!g->list[i].tomo && !strcmp(g->list[i].series, kind->series))
			return &g->list[i];
	list = realloc(g->list, (g->n + 1) * sizeof(*list));
	if (!list)
		return NULL;
	g->list = list;
	list[g->n] = (struct report_group){.tomo = kind->tomo};
	memcpy(list[g->n].series, kind->series, sizeof(kind->series));
	return &list[g->n++];
}

static int add_file(struct report_groups *groups, const char *path, struct err *err)
{
	struct kind_of_file kind;
	struct report_group *g;
	int rc = read_kind(path, &kind, err);

	if (rc < 0)
		return rc;
	if (!kind.image && !kind.tomo) {
		groups->n_ignored += !own_file(path);
		return 0;
	}
	g = group_of(groups, &kind);
	if (g && g->n == FILES_MAX)
		return err_set(err, E2BIG, "more than %d files in one series", FILES_MAX);
	if (g && !(g->n & (g->n - 1))) { /* grows by doubling */
		char **more = realloc(g->paths, (g->n ? 2 * g->n : 1) * sizeof(*more));

		g->paths = more ? more : g->paths;
		g = more ? g : NULL;
	}
	if (g)
		g->paths[g->n] = strdup(path);
	if (!g || !g->paths[g->n])
		return err_set(err, ENOMEM, "no memory for a list of files");
	g->n++;
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

int report_groups_find(char *const *paths, struct report_groups *ret_groups, struct err *err)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, by_name);
	FTSENT *entry;
	int rc = 0;

	if (!fts)
		return err_set(err, errno, "cannot read the folders: %s", strerror(errno));
	while (rc >= 0 && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_F)
			rc = add_file(ret_groups, entry->fts_path, err);
		else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			rc = err_set(err, ENOENT, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
	}
	fts_close(fts);
	return rc;
}

void report_groups_clear(struct report_groups *g)
{
	for (size_t i = 0; i < g->n; i++) {
		for (size_t k = 0; k < g->list[i].n; k++)
			free(g->list[i].paths[k]);
		free(g->list[i].paths);
	}
	free(g->list);
	*g = (struct report_groups){0};
}

/* ---- make ---- */

/* Refuse a series whose values need more memory than allowed; all objects have the size of the first (image_series.c). */
static int check_size(const struct report_group *g, size_t most, struct err *err)
{
	struct dicom_pixel_info info = {0};
	struct dicom_file *file = NULL;
	double bytes;
	int rc;

	if (most == 0)
		return 0;
	rc = dicom_open(g->paths[0], &file, err);
	if (rc == 0)
		rc = dicom_pixels_info(file, &info, err);
	dicom_close(file);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(g->paths[0]));
	bytes = (double)g->n * (double)info.rows * (double)info.columns * sizeof(float);
	if (bytes > (double)most)
		return err_set(
			err, EFBIG,
			"the series has %zu objects of %ld x %ld pixels, %.2f GiB as float32; the status page makes reports "
			"of at most %.2f GiB: make it with tomonode report",
			g->n, info.columns, info.rows, bytes / (1 << 30), (double)most / (1 << 30));
	return 0;
}

static int open_series(const struct report_group *g, const struct report_conf *conf, struct image_series **ret_series,
		       char *ret_notes, struct err *err)
{
	struct tomo_object *t = NULL;
	int rc;

	ret_notes[0] = '\0';
	if (!g->tomo) {
		rc = check_size(g, conf->most_bytes, err);
		return rc < 0 ? rc : image_series_open(g->paths, g->n, ret_series, err);
	}
	rc = tomo_slices_open(g->paths[0], conf->config, conf->voxel, &t, ret_notes, err);
	if (rc == 0)
		rc = image_series_of_tomo(&t, g->paths[0], ret_series, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(g->paths[0]));
	tomo_object_close(t);
	return rc;
}

/* Read the pictures of the corrections from the folder of the objects. */
static void read_corrections(const struct report_group *g, const struct dicom_item *root,
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

int report_group_make(const struct report_group *g, const struct report_conf *conf, struct html *h, struct err *err)
{
	char notes[SLICES_NOTES_SIZE], missing[640] = "";
	struct report_request request = {.patient = conf->patient, .notes = notes, .no_corrections = missing};
	struct correction_pictures corrections = {0};
	struct dicom_file *header = NULL;
	struct image_series *s = NULL;
	struct series_suv suv;
	int rc = open_series(g, conf, &s, notes, err);

	if (rc == 0 && !g->tomo && !s->ct) {
		rc = series_suv_read(g->paths, g->n, &suv, err);
		request.suv = &suv;
	}
	if (rc == 0)
		rc = dicom_open(g->paths[0], &header, err);
	if (rc == 0 && request.suv)
		read_corrections(g, dicom_root(header), &corrections, &request, missing, sizeof(missing));
	if (rc == 0)
		rc = report_make(s, dicom_root(header), g->n, &request, h, err);
	correction_pictures_clear(&corrections);
	dicom_close(header);
	image_series_close(s);
	return rc;
}

static int name_report(const struct report_group *g, const char *folder, char **ret_path, struct err *err)
{
	char uid[DICOM_UID_SIZE] = "", sop_class[DICOM_UID_SIZE] = "", hex[65];
	struct dicom_file *file = NULL;
	int rc = dicom_open(g->paths[0], &file, err);

	if (rc < 0)
		return rc;
	dicom_get_text(dicom_root(file), g->tomo ? TAG_SOP_INSTANCE_UID : TAG_SERIES_INSTANCE_UID, uid, sizeof(uid), NULL);
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_close(file);
	dicom_sha256(uid, strlen(uid), hex);
	if (asprintf(ret_path, "%s/report-%s-%.*s.html", folder,
		     g->tomo				   ? "tomosynthesis"
		     : !strcmp(sop_class, PET_IMAGE_CLASS) ? "pt"
							   : "ct",
		     NAME_DIGITS, hex) < 0)
		return err_set(err, ENOMEM, "no memory for a path");
	return 0;
}

int report_group_write(const struct report_group *g, const struct report_conf *conf, const char *folder, char **ret_path,
		       struct err *err)
{
	struct html h = {0};
	char *path = NULL;
	int rc = report_group_make(g, conf, &h, err);

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
