/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_measure.c - `tomonode measure`: compute figures of image quality from a reconstructed object. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/command/commands.h"
#include "node/command/measure_print.h"
#include "node/options/options.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/measure.h"
#include "node/tools/measure_series.h"
#include "node/tools/series_files.h"

/* What the command line says besides regions and points. */
struct input {
	const char *path, *truth, *config_path, *mask, *series, *activity;
	const double *voxel;
	int nps_side, image; /* image: from 1; 0: not given */
	bool pairs, csv;
	const char *of_tomo, *of_series; /* an option for one kind of images only; NULL: none */
};

enum {
	OPTION_REGION = OPTION_LONG,
	OPTION_POINT,
	OPTION_BACKGROUND,
	OPTION_VOXEL,
	OPTION_PAIRS,
	OPTION_CIRCLE,
	OPTION_SPHERE,
	OPTION_UNIFORM,
	OPTION_ACTIVITY,
	OPTION_MASK,
	OPTION_NPS_SIZE,
	OPTION_IMAGE,
};

static const struct option_spec option_specs[] = {
	{0, "truth", "FILE", "truth.json of `tomonode simulate`: measure what is in it", INTO_TEXT(struct input, truth)},
	{0, "series", "NAME",
	 "of several series: the one whose name (as `tomonode export` writes it) contains NAME, or with this UID",
	 INTO_TEXT(struct input, series)},
	{0, "csv", NULL, "print the members of --json as lines: list,name,figure,value", INTO_ON(struct input, csv)},
	{OPTION_REGION, "region", "NAME=COLUMN,ROW,FRAME,RADIUS",
	 "tomosynthesis: measure a circular region; column, row and frame count from 1, radius in mm; may be repeated"},
	{OPTION_BACKGROUND, "background", "COLUMN,ROW,RADIUS",
	 "tomosynthesis: background of all following regions; default: a ring around each region"},
	{OPTION_POINT, "point", "NAME=COLUMN,ROW,FRAME",
	 "tomosynthesis: measure a small bright detail near this position; may be repeated"},
	{OPTION_PAIRS, "pairs", NULL, "tomosynthesis: print the distance of every pair of points"},
	{'c', "config", "FILE", "tomosynthesis: configuration file with profiles of Hologic SCO objects"},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{OPTION_CIRCLE, "circle", "X,Y,Z,D[,NAME]",
	 "PET, CT: measure a circle in the nearest slice: centre in the patient (left, back, head) and diameter, mm; may be "
	 "repeated"},
	{OPTION_SPHERE, "sphere", "X,Y,Z,D[,NAME]", "PET, CT: measure a sphere; may be repeated"},
	{OPTION_UNIFORM, "uniform", "X,Y,Z,D,LENGTH[,NAME]",
	 "PET, CT: measure uniformity and noise of a uniform cylinder along the normal of the slices: centre, diameter and "
	 "length in mm (0: the nearest slice); may be repeated"},
	{OPTION_ACTIVITY, "activity", "BQML[,YYYYMMDDHHMMSS]",
	 "PET: activity of the uniform cylinder at the start of the series, or at a time: print the calibration factor that it gives"},
	{OPTION_MASK, "mask", "FILE", "PET, CT: measure each label of a segmentation (.nii, .nii.gz, .mha, .mhd)"},
	{OPTION_NPS_SIZE, "nps-size", "N", "PET, CT: pixels of a side of the squares of the noise power spectrum, 8 to 128"},
	{OPTION_IMAGE, "image", "N", "PET: time frame or gate of a series with several, from 1"},
	{0},
};

static const struct command_spec spec = {
	.name = "measure",
	.usage = "[--truth FILE | --region NAME=... | --circle X,Y,Z,D | ...]... [--pairs] [--csv | --json] PATH...",
	.summary =
		"Measure image quality: contrast, noise, sharpness, distances and the rim of a tomosynthesis; regions, SUV, contrast "
		"recovery, uniformity and noise power spectrum of a PET or CT series.",
	.text = "PATH: one tomosynthesis (Breast Tomosynthesis, or a Hologic SCO object with slices), or the files or the "
		"folder\n"
		"of one PET or CT series; of several, --series chooses one. docs/measure.md has the formulas, their sources and "
		"the members of --json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
	.examples = "tomonode measure --truth exam/truth.json result/volume.dcm\n"
		    "tomonode measure --point bead=120,340,25 --json result/volume.dcm\n"
		    "tomonode measure --sphere 0,-30,0,20,lesion --csv series\n"
		    "tomonode measure --truth sinograms/truth.json --series pet-osem results\n",
	.files = true,
};

struct request {
	int id;
	const char *text;
};

/* Parse "NAME=a,b,c", or "a,b,c" if name is NULL: exactly n numbers. false: the text has another form. */
static bool parse_numbers(const char *text, char *name, size_t size, double *values, int n)
{
	const char *at = text;

	if (name) {
		at = strchr(text, '=');
		if (!at || at == text || (size_t)(at - text) >= size)
			return false;
		snprintf(name, size, "%.*s", (int)(at - text), text);
		at++;
	}
	for (int i = 0; i < n; i++) {
		int used = 0;

		if (sscanf(at, i + 1 < n ? "%lf,%n" : "%lf%n", &values[i], &used) != 1 || used == 0 || !isfinite(values[i]))
			return false;
		at += used;
	}
	return *at == '\0';
}

/* Convert regions and points of the command line, in pixels counted from 1, to items. */
static int add_request(struct options *o, const struct tomo_object *object, const struct request *q, double background[3],
		       bool *has_background, struct measure_list *list, struct err *err)
{
	struct measure_item item = {.point = q->id == OPTION_POINT, .radius = {0.5, 0.5, 0.5}};
	double v[4] = {0};

	if (q->id == OPTION_BACKGROUND) {
		*has_background = parse_numbers(q->text, NULL, 0, background, 3) && background[2] > 0;
		background[0]--;
		background[1]--;
		return *has_background
			       ? 0
			       : options_fail(o, CODE_USAGE, "--background %s: not of the form COLUMN,ROW,RADIUS", q->text);
	}
	if (!parse_numbers(q->text, item.name, sizeof(item.name), v, item.point ? 3 : 4) || (!item.point && !(v[3] > 0)) ||
	    !(v[2] >= 1 && v[2] <= (double)object->info.frames))
		return options_fail(o, CODE_USAGE, "--%s %s: not of the form NAME=COLUMN,ROW,FRAME%s with frames 1 to %ld",
				    item.point ? "point" : "region", q->text, item.point ? "" : ",RADIUS", object->info.frames);
	item.at[0] = v[0] - 1;
	item.at[1] = v[1] - 1;
	for (long k = 0; k < object->info.frames; k++)
		if (object->frame[k] == (long)v[2] - 1)
			item.at[2] = object->depth[k];
	if (!item.point)
		item.radius[0] = item.radius[1] = item.radius[2] = v[3];
	item.has_background = *has_background && !item.point;
	memcpy(item.background, background, sizeof(item.background));
	return measure_add(list, &item, err) < 0 ? options_fail_err(o, err) : 0;
}

/* Print the result as requested; takes over the reference. Return an exit code. */
static int print_result(const struct options *o, const struct input *in, json_t *result)
{
	if (o->json)
		return options_json(result);
	if (in->csv)
		measure_print_csv(result);
	else if (json_object_get(result, "points"))
		measure_print_tomo(result, in->pairs);
	else
		measure_print_series(result);
	json_decref(result);
	return CODE_OK;
}

/* Open the object. Return an exit code. */
static int open_object(struct options *o, const struct input *in, struct tomo_object **ret_object, char *ret_notes)
{
	struct config *config = NULL;
	struct err err = {0};
	int code = options_config(o, in->config_path, &config);

	if (code != CODE_OK)
		return code;
	if (tomo_slices_open(in->path, config, in->voxel, ret_object, ret_notes, &err) < 0)
		code = options_fail(o, options_code(&err), "%s: %s", in->path, err.msg);
	config_free(config);
	if (code == CODE_OK && in->truth && (*ret_object)->sco)
		return options_fail(o, CODE_INPUT,
				    "%s: --truth needs positions in the patient, which an SCO object does not have", in->path);
	return code;
}

static int measure_tomo(struct options *o, const struct input *in, const struct request *requests, size_t n)
{
	const char *path = in->path, *truth = in->truth;
	char notes[SLICES_NOTES_SIZE] = "";
	struct tomo_object *object = NULL;
	struct measure_list list = {0};
	double background[3] = {0};
	bool has_background = false;
	json_t *result = NULL;
	struct err err = {0};
	int code = open_object(o, in, &object, notes);

	if (code != CODE_OK)
		goto out;
	if (truth && measure_read_truth(truth, object, &list, &err) < 0) {
		code = options_fail(o, options_code(&err), "%s: %s", truth, err.msg);
		goto out;
	}
	for (size_t i = 0; code == CODE_OK && i < n; i++)
		code = add_request(o, object, &requests[i], background, &has_background, &list, &err);
	if (code != CODE_OK)
		goto out;
	if (measure_run(object, &list, &result, &err) < 0) {
		code = options_fail(o, options_code(&err), "%s: %s", path, err.msg);
		goto out;
	}
	json_object_set_new(result, "warnings", json_string(notes));
	code = print_result(o, in, result);
	if (!o->json && !in->csv && notes[0])
		printf("%s\n", notes);
out:
	measure_clear(&list);
	tomo_object_close(object);
	return code;
}

/* ---- PET and CT ---- */

/* Parse n numbers, then a name if there is one, else `kind` and a number. */
static bool parse_place(const char *text, int n, double *values, const char *kind, size_t number, char *name)
{
	const char *at = text;

	for (int i = 0; i < n; i++) {
		char *end;

		values[i] = strtod(at, &end);
		if (end == at || !isfinite(values[i]) || (*end && *end != ','))
			return false;
		at = end + (*end == ',');
		if (*end == '\0' && i + 1 < n)
			return false;
	}
	if (*at == '\0' && at[-1] == ',')
		return false;
	if (*at)
		snprintf(name, SERIES_NAME_SIZE, "%s", at);
	else
		snprintf(name, SERIES_NAME_SIZE, "%s %zu", kind, number);
	return true;
}

static int add_place(struct options *o, const struct request *r, size_t number, struct series_request *q)
{
	bool uniform = r->id == OPTION_UNIFORM;
	const char *kind = uniform ? "uniform" : r->id == OPTION_CIRCLE ? "circle" : "sphere";
	double v[5] = {0};

	q->what = uniform ? SERIES_UNIFORM : r->id == OPTION_CIRCLE ? SERIES_CIRCLE : SERIES_SPHERE;
	if (!parse_place(r->text, uniform ? 5 : 4, v, kind, number, q->name) || !(v[3] > 0) || !(v[4] >= 0))
		return options_fail(o, CODE_USAGE, "--%s %s: not of the form X,Y,Z,D%s[,NAME] in mm with D above 0", kind,
				    r->text, uniform ? ",LENGTH" : "");
	memcpy(q->at, v, sizeof(q->at));
	q->diameter = v[3];
	q->length = v[4];
	return CODE_OK;
}

static int measure_series(struct options *o, const struct input *in, const struct series_volume *files,
			  const struct request *requests, size_t n)
{
	struct series_request places[SERIES_REQUESTS_MAX] = {{0}};
	struct series_activity activity;
	struct series_requests all = {.request = places,
				      .n = n,
				      .truth = in->truth,
				      .mask = in->mask,
				      .nps_side = in->nps_side,
				      .image = in->image ? in->image - 1 : 0,
				      .activity = in->activity ? &activity : NULL};
	struct image_series *s = NULL;
	struct series_suv suv;
	json_t *result = NULL;
	struct err err = {0};
	int code = CODE_OK;

	if (in->of_tomo)
		return options_fail(o, CODE_USAGE, "--%s is for a tomosynthesis; %s is a PET or CT image", in->of_tomo,
				    file_name(files->paths[0]));
	if (!in->truth && !in->mask && n == 0)
		return options_fail(o, CODE_USAGE, "nothing to measure: --truth, --circle, --sphere, --uniform or --mask");
	for (size_t i = 0; i < n; i++)
		if (add_place(o, &requests[i], i + 1, &places[i]) != CODE_OK)
			return CODE_USAGE;
	if (image_series_open(files->paths, files->n, false, &s, &err) < 0 ||
	    (!s->ct && series_suv_read(files->paths, files->n, &suv, &err) < 0))
		code = options_fail_err(o, &err);
	else if (s->n_images > 1 && in->image == 0)
		code = options_fail(o, CODE_USAGE, "the series has %d images (%s): choose one with --image", s->n_images,
				    s->type);
	else if (in->activity && s->ct)
		code = options_fail(o, CODE_USAGE, "--activity is for PET; %s is a CT image", file_name(files->paths[0]));
	else if (in->activity && series_activity_read(in->activity, files->paths[0], &activity, &err) < 0)
		code = err.code == EINVAL ? options_fail(o, CODE_USAGE, "%s", err.msg) : options_fail_err(o, &err);
	else if (measure_series_run(s, &all, s->ct ? NULL : &suv, &result, &err) < 0)
		code = options_fail_err(o, &err);
	else
		code = print_result(o, in, result);
	image_series_close(s);
	return code;
}

/* Find out what the paths are, and measure it. A single file that is no image is opened as a tomosynthesis, which says why it is
 * none. */
static int measure_paths(struct options *o, struct input *in, const struct request *requests, size_t n, char **paths)
{
	struct series_files files = {0};
	char names[SERIES_LIST_SIZE];
	struct err err = {0};
	int code;

	if (series_files_find(paths, false, &files, &err) < 0 ||
	    (in->series && series_files_choose(&files, in->series, &err) < 0)) {
		code = options_fail(o, options_code(&err), "%s", err.msg);
	} else if (files.n > 1) {
		series_files_list(&files, names, sizeof(names));
		code = options_fail(o, CODE_INPUT, "%zu volumes among %zu files: %s; choose one with --series NAME", files.n,
				    files.n_files, names);
	} else if (files.n == 1 && !files.list[0].tomo) {
		code = measure_series(o, in, &files.list[0], requests, n);
	} else if (in->of_series) {
		code = options_fail(o, CODE_USAGE, "--%s is for PET and CT series; %s is not one", in->of_series, paths[0]);
	} else if ((paths[1] || folder_exists(paths[0])) && series_files_check(&files, paths, false, &err) < 0) {
		code = options_fail_err(o, &err);
	} else {
		in->path = files.n ? files.list[0].paths[0] : paths[0];
		code = measure_tomo(o, in, requests, n);
	}
	series_files_clear(&files);
	return code;
}

/* Store an option that is for one kind of images. */
static int take_option(struct options *o, int id, struct input *in, double voxel[3])
{
	long long number = 0;

	switch (id) {
	case 'c':
		in->config_path = o->value;
		in->of_tomo = "config";
		return CODE_OK;
	case OPTION_PAIRS:
		in->pairs = true;
		in->of_tomo = "pairs";
		return CODE_OK;
	case OPTION_VOXEL:
		in->voxel = voxel;
		in->of_tomo = "voxel";
		return tomo_slices_voxel(o->value, voxel) ? CODE_OK : options_refuse(o, id);
	case OPTION_ACTIVITY:
		in->activity = o->value;
		in->of_series = "activity";
		return CODE_OK;
	case OPTION_MASK:
		in->mask = o->value;
		in->of_series = "mask";
		return CODE_OK;
	case OPTION_NPS_SIZE:
		in->of_series = "nps-size";
		if (options_integer(o->value, 8, 128, &number) < 0)
			return options_refuse(o, id);
		in->nps_side = (int)number;
		return CODE_OK;
	default:
		in->of_series = "image";
		if (options_integer(o->value, 1, 10000, &number) < 0)
			return options_refuse(o, id);
		in->image = (int)number;
		return CODE_OK;
	}
}

int cmd_measure(int argc, char **argv)
{
	struct request requests[SERIES_REQUESTS_MAX];
	struct input in = {0};
	struct options o;
	double voxel[3];
	size_t n = 0;
	int id, code;

	options_begin(&o, &spec, argc, argv);
	o.into = &in;
	while ((id = options_next(&o)) >= 0) {
		bool of_tomo = id == OPTION_REGION || id == OPTION_POINT || id == OPTION_BACKGROUND;
		bool of_series = id == OPTION_CIRCLE || id == OPTION_SPHERE || id == OPTION_UNIFORM;

		if (!of_tomo && !of_series) {
			code = take_option(&o, id, &in, voxel);
			if (code != CODE_OK)
				return code;
			continue;
		}
		if (of_tomo)
			in.of_tomo = id == OPTION_REGION ? "region" : id == OPTION_POINT ? "point" : "background";
		else
			in.of_series = id == OPTION_CIRCLE ? "circle" : id == OPTION_SPHERE ? "sphere" : "uniform";
		if (n == SERIES_REQUESTS_MAX)
			return options_fail(&o, CODE_USAGE, "more than %d regions and points", SERIES_REQUESTS_MAX);
		requests[n++] = (struct request){id, o.value};
	}
	if (id == OPTION_STOP)
		return o.code;
	return measure_paths(&o, &in, requests, n, argv + o.first);
}
