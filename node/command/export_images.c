/* SPDX-License-Identifier: Apache-2.0 */
/* export_images.c - see node/command/export_images.h. */
#include "node/command/export_images.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/base/folder.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/image_series.h"
#include "node/tools/series_suv.h"

/* What one volume becomes. */
struct work {
	const struct export_request *r;
	const struct series_volume *volume;
	struct export_job job;
	char notes[SLICES_NOTES_SIZE]; /* what the object does not prove, or "" */
};

static struct work work_of(const struct export_request *r, const struct series_volume *volume, const char *out)
{
	return (struct work){
		.r = r,
		.volume = volume,
		.job = {.out = out, .compress = r->compress, .choice = r->picture},
	};
}

static void work_clear(struct work *w)
{
	image_series_close(w->job.series);
	export_job_clear(&w->job);
}

/* ---- input ---- */

static int open_tomo(struct work *w, struct err *err)
{
	struct tomo_object *t = NULL;
	const char *path = w->volume->paths[0];
	int rc = tomo_slices_open(path, w->r->config, w->r->voxel, &t, w->notes, err);

	if (rc == 0)
		rc = image_series_of_tomo(&t, path, &w->job.series, err);
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

	if (w->volume->tomo || w->volume->view || w->job.series->ct)
		return err_set(err, EBADMSG, "--suv: %s is not PET", file_name(w->volume->paths[0]));
	rc = series_suv_read(w->volume->paths, w->volume->n, &suv, err);
	if (rc == 0 && suv.reason[0])
		rc = err_set(err, EBADMSG, "--suv: %s", suv.reason);
	if (rc == 0)
		image_series_scale(w->job.series, suv.factor, "GML");
	return rc;
}

static int open_volume(struct work *w, struct err *err)
{
	int rc;

	if (w->volume->view && !w->r->format->flat)
		rc = err_set(err, EBADMSG, "%s: a two-dimensional view has no place in the patient; allowed: .npy, .png",
			     file_name(w->volume->paths[0]));
	else if (w->volume->tomo)
		rc = open_tomo(w, err);
	else if (w->r->voxel)
		rc = err_set(err, EBADMSG, "--voxel is for slices in Hologic SCO objects: PET and CT images have their own");
	else if (w->volume->view)
		rc = image_series_of_view(w->volume->paths[0], &w->job.series, err);
	else
		rc = image_series_open(w->volume->paths, w->volume->n, false, &w->job.series, err);
	return rc == 0 && w->r->suv ? convert_suv(w, err) : rc;
}

/* ---- output ---- */

static int export_volume(struct work *w, struct err *err)
{
	const struct export_format *format = w->r->format;
	int rc = w->r->force || format->planes ? 0 : export_must_be_new(w->job.out, err); /* before all is read */

	if (rc == 0)
		rc = open_volume(w, err);
	return rc == 0 ? export_job_write(&w->job, format, w->r->force, err) : rc;
}

/* ---- report ---- */

static const char *unit_of(const struct image_series *s)
{
	const char *unit = image_series_unit(s->units);

	return unit[0] ? unit : "no unit";
}

static void print_volume(const struct work *w)
{
	const struct image_series *s = w->job.series;
	char images[48] = "";

	if (s->n_images > 1)
		snprintf(images, sizeof(images), ", %d images (%s)", s->n_images, s->type);
	if (w->job.text[0])
		printf("%s: %s, %s\n", w->job.out, w->job.text, unit_of(s));
	else if (s->view)
		printf("%s: %d x %d pixels of %.4g x %.4g mm, %s\n", w->job.out, s->n[0], s->n[1], s->spacing[0], s->spacing[1],
		       unit_of(s));
	else
		printf("%s: %d x %d x %d voxels of %.4g x %.4g x %.4g mm%s, %s\n", w->job.out, s->n[0], s->n[1], s->n[2],
		       s->spacing[0], s->spacing[1], s->spacing[2], images, unit_of(s));
	export_job_print(&w->job);
	if (w->notes[0])
		printf("  %s\n", w->notes);
}

static json_t *describe_volume(const struct work *w)
{
	const struct image_series *s = w->job.series;
	json_t *root = json_pack("{s:o, s:s, s:[i,i,i], s:i, s:[f,f,f], s:s, s:s}", "files", export_job_list(&w->job), "series",
				 s->series, "size", s->n[0], s->n[1], s->n[2], "images", s->n_images, "voxel_mm", s->spacing[0],
				 s->spacing[1], s->spacing[2], "units", s->units, "warnings", w->notes);

	if (root && w->job.details)
		json_object_update(root, w->job.details);
	return root;
}

/* ---- one file, or a folder ---- */

static int export_file(struct options *o, const struct export_request *r, const struct series_files *files)
{
	struct work w = work_of(r, &files->list[0], r->out);
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

/* Export one volume into the folder. Returns an exit code; appends to the list of results or of failures. */
static int export_into(struct options *o, const struct export_request *r, const struct series_volume *v, json_t *results,
		       json_t *failures)
{
	struct err err = {0};
	int code = CODE_OK;
	char *out = NULL;
	struct work w;

	if (asprintf(&out, "%s/%s%s", r->out, v->name, r->format->ending) < 0)
		return options_fail(o, CODE_MEMORY, "no memory for the name of a file");
	w = work_of(r, v, out);
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
