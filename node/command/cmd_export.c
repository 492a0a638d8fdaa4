/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `tomonode export`: convert DICOM objects to files for other programs. Images: node/command/export_images.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/command/export_images.h"
#include "node/sinogram/pet_source.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/export_image.h"
#include "node/tools/export_petsird.h"
#include "node/tools/export_sinogram.h"

enum { OPTION_VOXEL = OPTION_LONG, OPTION_SLICE, OPTION_WINDOW, OPTION_FORMAT };

static const char *const plane_names[] = {"stored", "axial", "coronal", "sagittal", NULL};
static const char *const bits_names[] = {"8", "16", NULL};

/* The formats, in the order of enum export_format. */
static const char *const format_names[] = {"nifti", "metaimage", "interfile", "png", NULL};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file: scanners of raw data, profiles of SCO objects, and keys for the audit trail",
	 INTO_TEXT(struct export_request, config_path)},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{'o', "output", "FILE",
	 "file to write, created with its parents; its extension selects the format: .nii, .nii.gz, .mha, .mhd, .hv, .png\n"
	 "(an image), .hs (sinograms), .petsird (list mode). With --format a folder",
	 INTO_TEXT(struct export_request, out)},
	{OPTION_FORMAT, "format", "FORMAT",
	 "write one file of each series and tomosynthesis to the folder of -o: nifti (.nii.gz), metaimage (.mha), interfile, png",
	 .words = format_names},
	{0, "series", "NAME", "of several series: those whose name (as --format writes it) contains NAME, or with this UID",
	 INTO_TEXT(struct export_request, series)},
	{0, "force", NULL, "replace files that exist; without it they are an error", INTO_ON(struct export_request, force)},
	{0, "suv", NULL, "PET values as SUV by body weight, g/ml; an error if the objects do not have what it needs",
	 INTO_ON(struct export_request, suv)},
	{0, "compress", NULL, "compress the values of .mha and .mhd", INTO_ON(struct export_request, compress)},
	{0, "plane", "PLANE", "PNG: stored (as in the objects), axial, coronal or sagittal; default stored",
	 INTO_WORD(struct export_request, picture.plane, plane_names)},
	{OPTION_SLICE, "slice", "N", "PNG: number of the slice from 1, middle, or all (NAME-0001.png ...); default middle"},
	{0, "image", "N", "PNG: number of the time frame or gate; default 1",
	 INTO_INT(struct export_request, picture.image, 1, 100000)},
	{0, "mip", NULL, "PNG: maximum intensity projection across the planes, instead of a slice",
	 INTO_ON(struct export_request, picture.mip)},
	{OPTION_WINDOW, "window", "LEVEL,WIDTH",
	 "PNG: the values that are grey, in units of the image; full: all; auto: the window of the objects, of PET from 0 to "
	 "most of the object; default auto"},
	{0, "bits", "BITS", "PNG: 8 or 16; default 8", INTO_WORD(struct export_request, bits, bits_names)},
	{0, "invert", NULL, "PNG: large values dark", INTO_ON(struct export_request, picture.invert)},
	{0},
};

static const struct command_spec spec = {
	.name = "export",
	.usage = "-o FILE [--force] [OPTION]... PATH...\n       tomonode export -o FOLDER --format FORMAT [--force] [OPTION]... "
		 "PATH...",
	.summary = "Convert a PET or CT series or a tomosynthesis to NIfTI, MetaImage, Interfile or pictures, sinogram objects "
		   "back to the Interfile files that were imported, or the counts of PET to list mode.",
	.text = "PATH: files or folders; DICOM objects of other kinds are ignored.\n"
		".nii, .nii.gz  NIfTI-1, float32, in real units, with the position in the patient (RAS). A dynamic or gated "
		"series\n"
		"      has four dimensions; its times are in a .json file beside it. A tomosynthesis is one Breast "
		"Tomosynthesis\n"
		"      Image, or a Hologic SCO object with slices, if the profile has sco = true.\n"
		".mha, .mhd  MetaImage, float32, with the position in the patient (LPS), else the same. The values of .mhd are "
		"in a\n"
		"      .raw file beside it, compressed in a .zraw file.\n"
		".png  a picture as it is viewed, with square pixels: axial from the feet, coronal from the front, sagittal from "
		"the\n"
		"      patient's left. Planes follow the axes of the voxels; slices count to the head, the back and the left.\n"
		".hv   Interfile image, float32; the values are in a .v file beside it.\n"
		".hs   Interfile projection data, byte for byte as imported; each other role (attenuation, ...) in "
		"NAME-role.hs.\n"
		"      Of raw data of a scanner the prompts, the delayed coincidences in NAME-delayeds.hs, and the detector\n"
		"      efficiencies in NAME-multiplicative.hs.\n"
		".petsird  list mode (docs/petsird.md): the events of a Siemens mMR, or one for each count of sinograms of span "
		"1\n"
		"      whose bins are pairs of detectors. Factors and background are not written.\n"
		"Files in a folder are named MODALITY_NUMBER_DESCRIPTION of the series, with the UID where these are the same.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
	.examples = "tomonode export -o series.nii.gz series\n"
		    "tomonode export -o pictures/middle.png --plane coronal series\n"
		    "tomonode export -o volumes --format nifti exam\n"
		    "tomonode export -o osem.nii.gz --series pet-osem results\n"
		    "tomonode export -o sinograms/scan.hs sinograms\n",
	.files = true,
};

static enum export_format format_of(const char *path)
{
	static const struct {
		const char *ending;
		enum export_format format;
	} endings[] = {{".nii", EXPORT_NIFTI},	   {".nii.gz", EXPORT_NIFTI},	{".mha", EXPORT_METAIMAGE},
		       {".mhd", EXPORT_METAIMAGE}, {".hv", EXPORT_IMAGE},	{".png", EXPORT_PNG},
		       {".hs", EXPORT_SINOGRAM},   {".petsird", EXPORT_PETSIRD}};
	size_t n = strlen(file_name(path));

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t e = strlen(endings[i].ending);

		if (n > e && !strcmp(path + strlen(path) - e, endings[i].ending))
			return endings[i].format;
	}
	return EXPORT_NONE;
}

static int export_projections(struct options *o, const struct series_files *l, const struct export_request *r)
{
	const struct pet_opening how = {.config = r->config, .anonymous = true, .raw = true};
	struct export_file files[SINOGRAM_ROLES];
	struct sinogram *s = NULL;
	json_t *names = json_array();
	struct err err = {0};
	size_t n = 0;
	int code = CODE_OK;

	if (pet_source_open((const char *const *)l->list[0].paths, l->list[0].n, &how, &s, &err) < 0 ||
	    (!r->force && export_sinogram_must_be_new(s, r->out, &err) < 0) || folder_create_parent(r->out, &err) < 0 ||
	    export_sinogram(s, r->out, files, &n, &err) < 0) {
		code = options_fail_err(o, &err);
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(names, json_string(files[i].path));
		if (!o->json)
			printf("%s: %s, %llu bytes\n", files[i].path, sinogram_role_name(files[i].role),
			       (unsigned long long)files[i].bytes);
	}
	if (o->json)
		code = options_json(json_pack("{s:b, s:i, s:O, s:I}", "ok", 1, "code", 0, "files", names, "passed_over",
					      (json_int_t)l->n_passed));
out:
	json_decref(names);
	sinogram_close(s);
	return code;
}

/* Write the names of the roles other than EMISSION, separated by commas. */
static void list_factors(const struct sinogram *s, char *ret, size_t size)
{
	*ret = '\0';
	for (int role = SINOGRAM_EMISSION + 1; role <= SINOGRAM_ROLES; role++)
		if (s->part[role].present && !(s->source->list_mode && role == SINOGRAM_DELAYEDS)) /* those are in the list */
			snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", *ret ? ", " : "",
				 sinogram_role_name((enum sinogram_role)role));
}

static int export_list(struct options *o, const struct series_files *l, const struct export_request *r)
{
	const struct pet_opening how = {.config = r->config, .anonymous = true};
	struct export_petsird report;
	struct sinogram *s = NULL;
	struct err err = {0};
	char factors[100];
	int code = CODE_OK;

	if (pet_source_open((const char *const *)l->list[0].paths, l->list[0].n, &how, &s, &err) < 0 ||
	    (!r->force && export_must_be_new(r->out, &err) < 0) || folder_create_parent(r->out, &err) < 0 ||
	    export_petsird(s, r->out, &report, &err) < 0) {
		code = options_fail_err(o, &err);
		goto out;
	}
	list_factors(s, factors, sizeof(factors));
	if (o->json)
		code = options_json(json_pack("{s:b, s:i, s:[s], s:I, s:I, s:I, s:s, s:I}", "ok", 1, "code", 0, "files", r->out,
					      "prompts", (json_int_t)report.prompts, "delayeds", (json_int_t)report.delayeds,
					      "blocks", (json_int_t)report.blocks, "not_written", factors, "passed_over",
					      (json_int_t)l->n_passed));
	else
		printf("%s: %llu prompts, %llu delayed events, %zu time block%s%s%s\n", r->out,
		       (unsigned long long)report.prompts, (unsigned long long)report.delayeds, report.blocks,
		       plural(report.blocks), factors[0] ? "; not written: " : "", factors);
out:
	sinogram_close(s);
	return code;
}

/* ---- the command line ---- */

static bool parse_slice(const char *text, int *ret)
{
	long long v;

	if (!strcmp(text, "all"))
		*ret = SLICE_ALL;
	else if (!strcmp(text, "middle"))
		*ret = 0;
	else if (options_integer(text, 1, 1000000, &v) < 0)
		return false;
	else
		*ret = (int)v;
	return true;
}

static bool parse_window(const char *text, struct picture_choice *c)
{
	double level, width;
	int used = 0;

	c->window = !strcmp(text, "auto") ? WINDOW_AUTO : !strcmp(text, "full") ? WINDOW_FULL : WINDOW_GIVEN;
	if (c->window != WINDOW_GIVEN)
		return true;
	if (sscanf(text, "%lf,%lf%n", &level, &width, &used) != 2 || text[used] || !(fabs(level) < 1e30) || !(width > 0) ||
	    !(width < 1e30))
		return false;
	c->range[0] = level - width / 2;
	c->range[1] = level + width / 2;
	return true;
}

static int word_of(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

/* Check that the options fit the format and each other; *ret_raw: the input is raw data. */
static int check_request(const struct options *o, struct export_request *r, int format, bool *ret_raw)
{
	const struct picture_choice *c = &r->picture;
	enum export_format by_name;

	if (!r->out)
		return options_fail(o, CODE_USAGE, "-o FILE is missing");
	by_name = format_of(r->out);
	r->folder = format >= 0;
	if (r->folder && by_name != EXPORT_NONE)
		return options_fail(
			o, CODE_USAGE,
			"-o %s is the name of a file, which selects the format itself; with --format it must be a folder",
			r->out);
	r->format = r->folder ? (enum export_format)(EXPORT_NIFTI + format) : by_name;
	if (r->format == EXPORT_NONE)
		return options_fail(o, CODE_USAGE,
				    "-o %s: the name must end in .nii, .nii.gz, .mha, .mhd, .png, .hv, .hs or .petsird; for a "
				    "folder state --format",
				    r->out);
	*ret_raw = r->format == EXPORT_SINOGRAM || r->format == EXPORT_PETSIRD;
	if (*ret_raw && (r->voxel || r->suv || r->series))
		return options_fail(o, CODE_USAGE, "--%s is for images, not for raw data",
				    r->voxel ? "voxel"
				    : r->suv ? "suv"
					     : "series");
	if (r->compress && r->format != EXPORT_METAIMAGE)
		return options_fail(o, CODE_USAGE, "--compress is for .mha and .mhd; .nii.gz and .png are always compressed");
	if (r->format != EXPORT_PNG &&
	    (c->plane || c->slice || c->mip || c->window != WINDOW_AUTO || c->image != 1 || c->invert || r->bits))
		return options_fail(o, CODE_USAGE,
				    "--plane, --slice, --image, --mip, --window, --bits and --invert are for .png");
	if (c->mip && c->slice)
		return options_fail(o, CODE_USAGE, "--mip and --slice exclude each other: a projection is made of all slices");
	r->picture.bits = r->bits ? 16 : 8;
	return CODE_OK;
}

int cmd_export(int argc, char **argv)
{
	struct export_request r = {.picture = {.image = 1}};
	struct config *config = NULL;
	struct series_files files = {0};
	struct err err = {0};
	struct options o;
	double voxel[3];
	bool raw = false;
	int id, code, format = -1;

	options_begin(&o, &spec, argc, argv);
	o.into = &r;
	while ((id = options_next(&o)) >= 0) {
		bool allowed = true;

		if (id == OPTION_VOXEL && (allowed = tomo_slices_voxel(o.value, voxel)))
			r.voxel = voxel;
		if (id == OPTION_SLICE)
			allowed = parse_slice(o.value, &r.picture.slice);
		if (id == OPTION_WINDOW)
			allowed = parse_window(o.value, &r.picture);
		if (id == OPTION_FORMAT)
			allowed = (format = word_of(o.value, format_names)) >= 0;
		if (!allowed)
			return options_refuse(&o, id);
	}
	if (id == OPTION_STOP)
		return o.code;
	code = check_request(&o, &r, format, &raw);
	if (code == CODE_OK)
		code = options_config(&o, r.config_path, &config);
	if (code != CODE_OK)
		return code;
	r.config = config;
	audit_start(&config->node, AUDIT_DIRECT, "export");
	if (series_files_find(argv + o.first, raw, &files, &err) < 0)
		code = options_fail(&o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s", err.msg);
	else if (files.n == 0)
		code = options_fail(&o, CODE_INPUT, "no %s among %zu file%s",
				    raw ? "sinogram object" : "PET, CT or tomosynthesis image", files.n_passed,
				    plural(files.n_passed));
	else if (r.series && series_files_choose(&files, r.series, &err) < 0)
		code = options_fail(&o, CODE_NOT_FOUND, "%s", err.msg);
	else if (r.format == EXPORT_SINOGRAM)
		code = export_projections(&o, &files, &r);
	else if (r.format == EXPORT_PETSIRD)
		code = export_list(&o, &files, &r);
	else
		code = export_images(&o, &r, &files);
	audit_files_exported(&files, r.out, code);
	series_files_clear(&files);
	config_free(config);
	return code;
}
