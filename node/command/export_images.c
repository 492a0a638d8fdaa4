/* SPDX-License-Identifier: Apache-2.0 */
/* export_images.c - see node/command/export_images.h. */
#include "node/command/export_images.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/export_image.h"
#include "node/tools/image_series.h"
#include "node/tools/series_suv.h"

/* What one volume becomes. */
struct work {
	const struct export_request *r;
	const struct series_volume *volume;
	const char *out; /* the file */
	struct image_series *s;
	struct picture_report picture;
	char *beside[2];	       /* the files beside `out`: of the values, of the times; NULL: none */
	char notes[SLICES_NOTES_SIZE]; /* what the object does not prove, or "" */
};

static void work_clear(struct work *w)
{
	free(w->beside[0]);
	free(w->beside[1]);
	image_series_close(w->s);
}

/* ---- input ---- */

static int open_tomo(struct work *w, struct err *err)
{
	struct tomo_object *t = NULL;
	const char *path = w->volume->paths[0];
	int rc = tomo_slices_open(path, w->r->config, w->r->voxel, &t, w->notes, err);

	if (rc == 0)
		rc = image_series_of_tomo(&t, path, &w->s, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	tomo_object_close(t);
	return rc;
}

/* Convert the values of PET to SUV. */
static int convert_suv(struct work *w, struct err *err)
{
	struct series_suv suv;
	int rc;

	if (w->volume->tomo || w->s->ct)
		return err_set(err, EBADMSG, "--suv: %s is not PET", file_name(w->volume->paths[0]));
	rc = series_suv_read(w->volume->paths, w->volume->n, &suv, err);
	if (rc == 0 && suv.reason[0])
		rc = err_set(err, EBADMSG, "--suv: %s", suv.reason);
	if (rc == 0)
		image_series_scale(w->s, suv.factor, "GML");
	return rc;
}

static int open_volume(struct work *w, struct err *err)
{
	int rc;

	if (w->volume->tomo)
		rc = open_tomo(w, err);
	else if (w->r->voxel)
		rc = err_set(err, EBADMSG, "--voxel is for slices in Hologic SCO objects: PET and CT images have their own");
	else
		rc = image_series_open(w->volume->paths, w->volume->n, &w->s, err);
	return rc == 0 && w->r->suv ? convert_suv(w, err) : rc;
}

/* ---- output ---- */

/* Name the files beside the image. */
static int name_beside(struct work *w, struct err *err)
{
	int rc = 0;

	if (w->r->format == EXPORT_METAIMAGE)
		rc = export_metaimage_data(w->out, w->r->compress, &w->beside[0], err);
	if (w->r->format == EXPORT_IMAGE)
		rc = export_beside(w->out, ".v", &w->beside[0], err);
	if (rc == 0 && (w->r->format == EXPORT_METAIMAGE || w->r->format == EXPORT_NIFTI))
		rc = export_times(w->s, w->out, &w->beside[1], err);
	return rc;
}

/* Check that no file is overwritten, unless a person has allowed it. */
static int check_new(const struct work *w, struct err *err)
{
	const struct picture_choice *c = &w->r->picture;
	int rc = 0, n = w->r->format == EXPORT_PNG && !c->mip && c->slice == SLICE_ALL ? export_picture_slices(w->s, c) : 1;

	if (w->r->force)
		return 0;
	for (int i = 1; i <= n && rc == 0; i++) {
		char *name = NULL;

		rc = n > 1 ? export_picture_name(c, w->out, i, &name, err) : 0;
		if (rc == 0)
			rc = export_must_be_new(name ? name : w->out, err);
		free(name);
	}
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = w->beside[i] ? export_must_be_new(w->beside[i], err) : 0;
	return rc;
}

static int write_volume(struct work *w, struct err *err)
{
	int rc = folder_create_parent(w->out, err);

	if (rc < 0)
		return rc;
	switch (w->r->format) {
	case EXPORT_NIFTI:
		return export_nifti(w->s, w->out, err);
	case EXPORT_METAIMAGE:
		return export_metaimage(w->s, w->out, w->r->compress, err);
	case EXPORT_PNG:
		return export_pictures(w->s, &w->r->picture, w->out, &w->picture, err);
	default:
		return export_interfile_image(w->s, w->out, err);
	}
}

static int export_volume(struct work *w, struct err *err)
{
	int rc = w->r->force || w->r->format == EXPORT_PNG ? 0 : export_must_be_new(w->out, err); /* before all is read */

	if (rc == 0)
		rc = open_volume(w, err);
	if (rc == 0 && w->r->format == EXPORT_PNG)
		rc = export_picture_check(w->s, &w->r->picture, err);
	if (rc == 0)
		rc = name_beside(w, err);
	if (rc == 0)
		rc = check_new(w, err);
	return rc == 0 ? write_volume(w, err) : rc;
}

/* ---- report ---- */

static const char *unit_of(const struct image_series *s)
{
	const char *unit = image_series_unit(s->units);

	return unit[0] ? unit : "no unit";
}

static void print_pictures(const struct work *w)
{
	static const char *const planes[] = {"stored", "axial", "coronal", "sagittal"};
	const struct picture_report *p = &w->picture;
	const struct picture_choice *c = &w->r->picture;
	char what[80], image[48] = "";

	if (c->mip)
		snprintf(what, sizeof(what), "%s projection of the largest values", planes[c->plane]);
	else if (c->slice == SLICE_ALL)
		snprintf(what, sizeof(what), "%s slices 1 to %d, one file of each", planes[c->plane], p->n);
	else
		snprintf(what, sizeof(what), "%s slice %d of %d", planes[c->plane], p->first, export_picture_slices(w->s, c));
	if (w->s->n_images > 1)
		snprintf(image, sizeof(image), ", image %d of %d", c->image, w->s->n_images);
	printf("%s: %s%s, %d x %d pixels of %.4g mm, grey from %.6g to %.6g, %s\n", w->out, what, image, p->width, p->height,
	       p->mm, p->range[0], p->range[1], unit_of(w->s));
}

static void print_volume(const struct work *w)
{
	const struct image_series *s = w->s;
	char images[48] = "";

	if (w->r->format == EXPORT_PNG) {
		print_pictures(w);
	} else {
		if (s->n_images > 1)
			snprintf(images, sizeof(images), ", %d images (%s)", s->n_images, s->type);
		printf("%s: %d x %d x %d voxels of %.4g x %.4g x %.4g mm%s, %s\n", w->out, s->n[0], s->n[1], s->n[2],
		       s->spacing[0], s->spacing[1], s->spacing[2], images, unit_of(s));
	}
	if (w->beside[1])
		printf("%s: the times of the images\n", w->beside[1]);
	if (w->notes[0])
		printf("  %s\n", w->notes);
}

/* List the files that were written. */
static json_t *files_of(const struct work *w)
{
	const struct picture_choice *c = &w->r->picture;
	json_t *files = json_array();

	if (w->r->format != EXPORT_PNG)
		json_array_append_new(files, json_string(w->out));
	for (int i = 0; w->r->format == EXPORT_PNG && i < w->picture.n; i++) {
		char *name = NULL;

		if (export_picture_name(c, w->out, w->picture.first + i, &name, NULL) == 0)
			json_array_append_new(files, json_string(name));
		free(name);
	}
	if (w->beside[0] && w->r->format == EXPORT_METAIMAGE) /* of Interfile only the header is listed */
		json_array_append_new(files, json_string(w->beside[0]));
	if (w->beside[1])
		json_array_append_new(files, json_string(w->beside[1]));
	return files;
}

static json_t *describe_volume(const struct work *w)
{
	const struct image_series *s = w->s;
	json_t *root = json_pack("{s:o, s:s, s:[i,i,i], s:i, s:[f,f,f], s:s, s:s}", "files", files_of(w), "series", s->series,
				 "size", s->n[0], s->n[1], s->n[2], "images", s->n_images, "voxel_mm", s->spacing[0],
				 s->spacing[1], s->spacing[2], "units", s->units, "warnings", w->notes);

	if (root && w->r->format == EXPORT_PNG)
		json_object_set_new(root, "picture",
				    json_pack("{s:[i,i], s:f, s:[f,f]}", "pixels", w->picture.width, w->picture.height,
					      "pixel_mm", w->picture.mm, "grey", w->picture.range[0], w->picture.range[1]));
	return root;
}

/* ---- one file, or a folder ---- */

static int export_file(struct options *o, const struct export_request *r, const struct series_files *files)
{
	struct work w = {.r = r, .volume = &files->list[0], .out = r->out};
	char names[SERIES_LIST_SIZE];
	struct err err = {0};
	json_t *root;
	int code = CODE_OK;

	if (files->n > 1) {
		series_files_list(files, names, sizeof(names));
		return options_fail(o, CODE_INPUT,
				    "%zu volumes among %zu files: %s; -o FILE takes one: choose it with --series NAME, or export "
				    "all with --format FORMAT -o FOLDER",
				    files->n, files->n_files, names);
	}
	if (export_volume(&w, &err) < 0) {
		code = options_fail_err(o, &err);
	} else if (o->json) {
		root = describe_volume(&w);
		json_object_update_new(
			root, json_pack("{s:b, s:i, s:I}", "ok", 1, "code", 0, "passed_over", (json_int_t)files->n_passed));
		code = options_json(root);
	} else {
		print_volume(&w);
	}
	work_clear(&w);
	return code;
}

static const char *ending_of(enum export_format format)
{
	return format == EXPORT_NIFTI ? "nii.gz" : format == EXPORT_METAIMAGE ? "mha" : format == EXPORT_PNG ? "png" : "hv";
}

/* Export one volume into the folder. Returns an exit code; appends to the list of results or of failures. */
static int export_into(struct options *o, const struct export_request *r, const struct series_volume *v, json_t *results,
		       json_t *failures)
{
	struct work w = {.r = r, .volume = v};
	struct err err = {0};
	int code = CODE_OK;
	char *out = NULL;

	if (asprintf(&out, "%s/%s.%s", r->out, v->name, ending_of(r->format)) < 0)
		return options_fail(o, CODE_MEMORY, "no memory for the name of a file");
	w.out = out;
	if (export_volume(&w, &err) < 0) {
		code = (int)options_code(&err);
		fprintf(stderr, "tomonode export: %s: %s\n", v->name, err.msg);
		json_array_append_new(failures, json_pack("{s:s, s:s, s:i, s:s}", "name", v->name, "uid", v->uid, "code", code,
							  "error", err.msg));
	} else if (o->json) {
		json_array_append_new(results, describe_volume(&w));
	} else {
		print_volume(&w);
	}
	work_clear(&w);
	free(out);
	return code;
}

static int export_folder(struct options *o, const struct export_request *r, const struct series_files *files)
{
	json_t *results = json_array(), *failures = json_array();
	int code = CODE_OK;
	size_t failed;

	for (size_t i = 0; i < files->n; i++) {
		int of = export_into(o, r, &files->list[i], results, failures);

		code = code == CODE_OK ? of : code;
	}
	failed = json_array_size(failures);
	if (failed > 0)
		fprintf(stderr, "tomonode export: %zu of %zu volumes failed\n", failed, files->n);
	if (o->json) {
		int printed = options_json(json_pack("{s:b, s:i, s:O, s:O, s:I}", "ok", code == CODE_OK, "code", code, "volumes",
						     results, "failed", failures, "passed_over", (json_int_t)files->n_passed));

		code = code == CODE_OK ? printed : code;
	}
	json_decref(results);
	json_decref(failures);
	return code;
}

int export_images(struct options *o, const struct export_request *r, const struct series_files *files)
{
	return r->folder ? export_folder(o, r, files) : export_file(o, r, files);
}
