/* SPDX-License-Identifier: Apache-2.0 */
/* series_files.c - see node/tools/series_files.h. */
#include "node/tools/series_files.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/tools/image_series.h"

#define FILES_MAX 100000

void series_files_clear(struct series_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->paths[i]);
	free(f->paths);
	*f = (struct series_files){0};
}

static bool is_dicom(const char *path)
{
	FILE *f = fopen(path, "rb");
	char mark[4] = "";
	bool is = f && !fseek(f, 128, SEEK_SET) && fread(mark, 1, 4, f) == 4 && !memcmp(mark, "DICM", 4);

	if (f)
		fclose(f);
	return is;
}

/* Add a file if it is an image. A DICOM file that cannot be read is an error, because it might be one. */
static int add_file(struct series_files *f, const char *path, struct err *err)
{
	char class[DICOM_UID_SIZE] = "";
	struct dicom_file *file = NULL;
	bool tomo, image;
	int rc;

	if (!is_dicom(path)) {
		f->n_other++;
		return 0;
	}
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(path));
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, class, sizeof(class), NULL);
	tomo = tomo_object_is(dicom_root(file));
	image = tomo || !strcmp(class, PET_IMAGE_CLASS) || !strcmp(class, CT_IMAGE_CLASS);
	dicom_close(file);
	if (!image) {
		f->n_other++;
		return 0;
	}
	if (f->n == FILES_MAX)
		return err_set(err, E2BIG, "more than %d images", FILES_MAX);
	if (!(f->n & (f->n - 1))) { /* grows by doubling */
		char **more = realloc(f->paths, (f->n ? 2 * f->n : 1) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory for a list of %zu files", f->n);
		f->paths = more;
	}
	f->paths[f->n] = strdup(path);
	if (!f->paths[f->n])
		return err_set(err, ENOMEM, "no memory for a path");
	f->n++;
	f->n_tomo += tomo;
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

int series_files_find(char *const *paths, struct series_files *ret, struct err *err)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, by_name);
	struct series_files f = {0};
	FTSENT *entry;
	int rc = fts ? 0 : err_set(err, errno, "cannot read the folders: %s", strerror(errno));

	while (rc >= 0 && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_F)
			rc = add_file(&f, entry->fts_path, err);
		else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			rc = err_set(err, entry->fts_errno, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
	}
	if (fts)
		fts_close(fts);
	if (rc < 0)
		series_files_clear(&f);
	else
		*ret = f;
	return rc;
}
