/* SPDX-License-Identifier: Apache-2.0 */
/* series_files.c - see node/tools/series_files.h. */
#include "node/tools/series_files.h"

#include <ctype.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/dicom_mark.h"
#include "node/base/folder.h"
#include "node/base/own_files.h"
#include "node/base/plural.h"
#include "node/sinogram/pet_source.h"
#include "node/tools/image_series.h"

#define FILES_MAX 100000

/* What a file is; NONE: nothing to export. */
enum is { IS_NONE, IS_SINOGRAM, IS_IMAGE, IS_TOMO, IS_VIEW };

struct object {
	enum is is;
	char uid[DICOM_UID_SIZE], series[DICOM_UID_SIZE], name[160 - DICOM_UID_SIZE - 1];
};

/* ---- one file ---- */

static bool is_one_of(const char *found, const char *first, const char *second)
{
	return !strcmp(found, first) || !strcmp(found, second);
}

/* Append a word to a name, "_" before it, with "-" for each run of characters that are not allowed in a name. */
static void append_word(char *name, size_t size, const char *word)
{
	size_t n = strlen(name);
	bool gap = false;

	if (n > 0 && n + 2 < size)
		name[n++] = '_';
	for (size_t begin = n; *word && n + 3 < size; word++) {
		bool allowed = isalnum((unsigned char)*word) || strchr("._+-", *word);

		if (allowed && gap && n > begin)
			name[n++] = '-';
		if (allowed)
			name[n++] = *word;
		gap = !allowed;
	}
	while (n > 0 && name[n - 1] == '_')
		n--;
	name[n] = '\0';
}

static void name_object(const struct dicom_item *root, struct object *o)
{
	static const uint32_t tags[] = {TAG_MODALITY, TAG_SERIES_NUMBER, TAG_SERIES_DESCRIPTION};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		char text[257] = "";

		if (dicom_get_utf8(root, tags[i], text, sizeof(text), NULL) == 1)
			append_word(o->name, sizeof(o->name), text);
	}
	if (o->name[0] == '.' || !o->name[0]) /* a hidden file, or none */
		snprintf(o->name, sizeof(o->name), "series");
}

static int read_object(const char *path, struct object *ret, struct err *err)
{
	char found[DICOM_UID_SIZE] = "";
	struct dicom_file *file = NULL;
	const struct dicom_item *root;
	enum dicom_mark mark;
	int rc = dicom_mark_find(path, &mark, err);

	*ret = (struct object){.is = IS_NONE};
	if (rc < 0 || mark != DICOM_MARK_OBJECT)
		return rc;
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(path));
	root = dicom_root(file);
	dicom_get_text(root, TAG_SOP_CLASS_UID, found, sizeof(found), NULL);
	ret->is = is_one_of(found, CLASS_PET, CLASS_CT)	  ? IS_IMAGE
		  : pet_source_has_class(found)		  ? IS_SINOGRAM
		  : tomo_object_is(root)		  ? IS_TOMO
		  : !strcmp(found, CLASS_MG_PRESENTATION) ? IS_VIEW
							  : IS_NONE;
	if (ret->is == IS_IMAGE || ret->is == IS_TOMO || ret->is == IS_VIEW) {
		uint32_t tag = ret->is != IS_IMAGE ? TAG_SOP_INSTANCE_UID : TAG_SERIES_INSTANCE_UID;

		dicom_get_text(root, tag, ret->uid, sizeof(ret->uid), NULL);
		dicom_get_text(root, TAG_SERIES_INSTANCE_UID, ret->series, sizeof(ret->series), NULL);
		name_object(root, ret);
	}
	dicom_close(file);
	return 0;
}

/* ---- volumes ---- */

/* Make room for one more element of an array with n elements, which grows by doubling. NULL: no memory; `list` is as before. */
static void *grow_list(void *list, size_t n, size_t size, struct err *err)
{
	void *more = n & (n - 1) ? list : realloc(list, (n ? 2 * n : 1) * size);

	if (!more)
		err_set(err, ENOMEM, "no memory for a list of %zu files", n + 1);
	return more;
}

/* Find the volume of an object, or append it. */
static int volume_of(struct series_files *f, const struct object *o, struct series_volume **ret, struct err *err)
{
	struct series_volume *list;

	for (size_t i = f->n; i-- > 0;)
		if (!strcmp(f->list[i].uid, o->uid) && f->list[i].tomo == (o->is == IS_TOMO)) {
			*ret = &f->list[i];
			return 0;
		}
	list = grow_list(f->list, f->n, sizeof(*f->list), err);
	if (!list)
		return -ENOMEM;
	f->list = list;
	*ret = &f->list[f->n++];
	**ret = (struct series_volume){.tomo = o->is == IS_TOMO, .view = o->is == IS_VIEW};
	memcpy((*ret)->uid, o->uid, sizeof(o->uid));
	memcpy((*ret)->series, o->series, sizeof(o->series));
	(*ret)->plain = (size_t)snprintf((*ret)->name, sizeof((*ret)->name), "%s", o->name);
	return 0;
}

static int add_file(struct series_files *f, const char *path, bool named, bool raw, struct err *err)
{
	struct series_volume *v = NULL;
	struct object o;
	char **list;
	int rc = read_object(path, &o, err);

	if (rc < 0)
		return rc;
	if (o.is == IS_NONE || (o.is == IS_SINOGRAM) != raw || (o.is == IS_VIEW && !(f->views && named))) {
		f->n_passed += !own_file(path);
		return 0;
	}
	if (f->n_files == FILES_MAX)
		return err_set(err, E2BIG, "more than %d files", FILES_MAX);
	rc = volume_of(f, &o, &v, err);
	if (rc < 0)
		return rc;
	list = grow_list(v->paths, v->n, sizeof(*v->paths), err);
	if (!list)
		return -ENOMEM;
	v->paths = list;
	v->paths[v->n] = strdup(path);
	if (!v->paths[v->n])
		return err_set(err, ENOMEM, "no memory for a path");
	v->n++;
	f->n_files++;
	return 0;
}

/* Append the UID where two volumes have the same name, also if only the case differs. */
static int make_names_unique(struct series_files *f, struct err *err)
{
	bool *same = calloc(f->n + 1, sizeof(*same));

	if (!same)
		return err_set(err, ENOMEM, "no memory for the names of %zu series", f->n);
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->n; k++)
			same[i] |= k != i && !strcasecmp(f->list[i].name, f->list[k].name);
	for (size_t i = 0; i < f->n; i++)
		if (same[i])
			append_word(f->list[i].name, sizeof(f->list[i].name), f->list[i].uid);
	free(same);
	return 0;
}

int series_files_find(char *const *paths, bool raw, struct series_files *ret_files, struct err *err)
{
	FTS *fts = folder_walk(paths);
	FTSENT *entry;
	int rc = 0;

	if (!fts)
		return err_set(err, errno, "cannot read the folders: %s", strerror(errno));
	while (rc >= 0 && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_F)
			rc = add_file(ret_files, entry->fts_path, entry->fts_level == FTS_ROOTLEVEL, raw, err);
		else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			rc = err_set(err, ENOENT, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
	}
	fts_close(fts);
	return rc < 0 ? rc : make_names_unique(ret_files, err);
}

static void clear_volume(struct series_volume *v)
{
	for (size_t k = 0; k < v->n; k++)
		free(v->paths[k]);
	free(v->paths);
}

void series_files_clear(struct series_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		clear_volume(&f->list[i]);
	free(f->list);
	*f = (struct series_files){0};
}

static bool is_chosen(const struct series_volume *v, const char *text)
{
	return !strcmp(v->uid, text) || strcasestr(v->name, text);
}

int series_files_check(const struct series_files *f, char *const *paths, bool raw, struct err *err)
{
	if (f->n > 0)
		return 0;
	return err_set(err, EBADMSG, "%.300s%s: no %s among %zu file%s%s", paths[0], paths[1] ? ", ..." : "",
		       raw ? "sinogram object" : "tomosynthesis, PET or CT image", f->n_passed, plural(f->n_passed),
		       raw || f->n_passed == 0 ? "" : "; of projections and sinograms `tomonode recon` makes one");
}

void series_files_list(const struct series_files *f, char *ret, size_t size)
{
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; i < f->n; i++) {
		if (n + strlen(f->list[i].name) + sizeof(", , ...") > size) {
			snprintf(ret + n, size - n, ", ...");
			return;
		}
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", f->list[i].name);
	}
}

int series_files_choose(struct series_files *f, const char *text, struct err *err)
{
	char names[SERIES_LIST_SIZE];
	size_t n = 0;
	bool whole = false;

	for (size_t i = 0; i < f->n; i++) {
		n += is_chosen(&f->list[i], text);
		whole = whole || !strcasecmp(f->list[i].name, text);
	}
	if (n == 0) {
		series_files_list(f, names, sizeof(names));
		return err_set(err, ENOENT, "no series is --series %.64s: %s", text, names);
	}
	n = 0;
	for (size_t i = 0; i < f->n; i++) {
		if (whole ? !strcasecmp(f->list[i].name, text) : is_chosen(&f->list[i], text)) {
			f->list[n++] = f->list[i];
		} else {
			f->n_files -= f->list[i].n;
			f->n_passed += f->list[i].n;
			clear_volume(&f->list[i]);
		}
	}
	f->n = n;
	return 0;
}
