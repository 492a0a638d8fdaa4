/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_measure.c - `tomonode measure`: compute figures of image quality from a reconstructed object. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/command/commands.h"
#include "node/process/options.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/measure.h"

enum { OPTION_TRUTH = OPTION_LONG, OPTION_REGION, OPTION_POINT, OPTION_BACKGROUND, OPTION_VOXEL };

static const struct option_spec option_specs[] = {
	{OPTION_TRUTH, "truth", "FILE", "truth.json of `tomonode simulate dbt`: measure every lesion and bead in it"},
	{OPTION_REGION, "region", "NAME=COLUMN,ROW,FRAME,RADIUS",
	 "measure a circular region; column, row and frame count from 1, radius in mm; may be repeated"},
	{OPTION_BACKGROUND, "background", "COLUMN,ROW,RADIUS",
	 "background of all following regions; default: a ring around each region"},
	{OPTION_POINT, "point", "NAME=COLUMN,ROW,FRAME", "measure a small bright detail near this position; may be repeated"},
	{'c', "config", "FILE", "configuration file: profiles of Hologic SCO objects"},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{0},
};

static const struct command_spec spec = {
	.name = "measure",
	.usage = "(--truth FILE | --region NAME=... | --point NAME=...)... [-c FILE] [--voxel COLUMN,ROW,SLICE] [--json] OBJECT",
	.summary = "Measure contrast, noise, sharpness, spread in depth and distances in a Breast Tomosynthesis object, or in a "
		   "Hologic SCO object with slices.",
	.text = "For each region: mean, contrast, contrast-to-noise ratio (CNR), coefficient of variation (CV), artefact spread\n"
		"function. For each point: position, width (FWHM) along columns, rows and depth, signal-to-noise ratio (SNR),\n"
		"distances to the other points. docs/measure.md has the formulas and the members of --json.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
};

#define REQUESTS_MAX 256

struct request {
	int id;
	const char *text;
};

/* Parse "NAME=a,b,c", or "a,b,c" if name is NULL: exactly n numbers. false: the text has another form. */
static bool parse(const char *text, char *name, size_t size, double *values, int n)
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
		*has_background = parse(q->text, NULL, 0, background, 3) && background[2] > 0;
		background[0]--;
		background[1]--;
		return *has_background
			       ? 0
			       : options_fail(o, CODE_USAGE, "--background %s: not of the form COLUMN,ROW,RADIUS", q->text);
	}
	if (!parse(q->text, item.name, sizeof(item.name), v, item.point ? 3 : 4) || (!item.point && !(v[3] > 0)) ||
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

static double member(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static double component(const json_t *object, const char *key, size_t i)
{
	const json_t *value = json_array_get(json_object_get(object, key), i);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_tables(const json_t *result)
{
	const char *units = json_string_value(json_object_get(json_object_get(result, "object"), "units"));
	const json_t *item;
	size_t i;

	if (json_array_size(json_object_get(result, "regions")))
		printf("%-20s %10s %10s %9s %9s %9s %11s\n", "region", units && !strcmp(units, "/mm") ? "mean 1/mm" : "mean",
		       "around", "contrast", "CNR", "CV", "depth FWHM");
	json_array_foreach(json_object_get(result, "regions"), i, item)
	{
		if (json_object_get(item, "left_out"))
			printf("%-20s left out: %s\n", json_string_value(json_object_get(item, "name")),
			       json_string_value(json_object_get(item, "left_out")));
		else
			printf("%-20s %10.5f %10.5f %9.4f %9.2f %9.4f %8.2f mm\n",
			       json_string_value(json_object_get(item, "name")), member(item, "mean"), member(item, "background"),
			       member(item, "contrast"), member(item, "cnr"), member(item, "cv"), member(item, "asf_fwhm_mm"));
	}
	if (json_array_size(json_object_get(result, "points")))
		printf("%-20s %9s %9s %9s %27s %9s\n", "point", "column", "row", "depth mm", "FWHM mm (x, y, depth)", "SNR");
	json_array_foreach(json_object_get(result, "points"), i, item)
	{
		if (json_is_false(json_object_get(item, "found")))
			printf("%-20s not found\n", json_string_value(json_object_get(item, "name")));
		else
			printf("%-20s %9.2f %9.2f %9.2f %9.3f %8.3f %8.3f %9.1f\n",
			       json_string_value(json_object_get(item, "name")), component(item, "at", 0) + 1,
			       component(item, "at", 1) + 1, component(item, "at", 2), component(item, "fwhm_mm", 0),
			       component(item, "fwhm_mm", 1), component(item, "fwhm_mm", 2), member(item, "snr"));
	}
	json_array_foreach(json_object_get(result, "distances"), i, item)
	{
		printf("%s to %s: %.3f mm", json_string_value(json_object_get(item, "from")),
		       json_string_value(json_object_get(item, "to")), member(item, "measured_mm"));
		if (json_is_number(json_object_get(item, "truth_mm")))
			printf(", truth %.3f, %+.3f %%", member(item, "truth_mm"), member(item, "error_percent"));
		printf("\n");
	}
}

/* What the command line says besides regions and points. */
struct input {
	const char *path, *truth, *config_path;
	const double *voxel;
};

/* Open the object. Return an exit code. */
static int open_object(struct options *o, const struct input *in, struct tomo_object **ret_object, char *ret_notes)
{
	struct config *config = NULL;
	struct err err = {0};
	int code = options_config(o, in->config_path, &config);

	if (code != CODE_OK)
		return code;
	if (tomo_slices_open(in->path, config, in->voxel, ret_object, ret_notes, &err) < 0)
		code = options_fail(o, err.code == ENOENT ? CODE_NOT_FOUND : options_code(&err), "%s: %s", in->path, err.msg);
	config_free(config);
	if (code == CODE_OK && in->truth && (*ret_object)->sco)
		return options_fail(o, CODE_INPUT,
				    "%s: --truth needs positions in the patient, which an SCO object does not have", in->path);
	return code;
}

static int measure(struct options *o, const struct input *in, const struct request *requests, size_t n)
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
	if (o->json) {
		code = options_json(result);
		result = NULL;
	} else {
		print_tables(result);
		if (notes[0])
			printf("%s\n", notes);
	}
out:
	json_decref(result);
	measure_clear(&list);
	tomo_object_close(object);
	return code;
}

int cmd_measure(int argc, char **argv)
{
	struct request requests[REQUESTS_MAX];
	struct input in = {0};
	struct options o;
	double voxel[3];
	size_t n = 0;
	int id;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0) {
		if (id == OPTION_TRUTH)
			in.truth = o.value;
		else if (id == 'c')
			in.config_path = o.value;
		else if (id == OPTION_VOXEL) {
			if (!tomo_slices_voxel(o.value, voxel))
				return options_refuse(&o, id);
			in.voxel = voxel;
		} else if (n < REQUESTS_MAX)
			requests[n++] = (struct request){id, o.value};
		else
			return options_fail(&o, CODE_USAGE, "more than %d regions and points", REQUESTS_MAX);
	}
	if (id == OPTION_STOP)
		return o.code;
	if (!in.truth && n == 0)
		return options_fail(&o, CODE_USAGE, "nothing to measure: --truth, --region or --point");
	in.path = argv[o.first];
	return measure(&o, &in, requests, n);
}
