/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `tomonode export`: convert DICOM objects to files for other programs. Images: node/command/export_images.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/command/export_images.h"
#include "node/sinogram/pet_source.h"
#include "node/tomo/tomo_slices.h"

enum { OPTION_VOXEL = OPTION_LONG, OPTION_SLICE, OPTION_WINDOW, OPTION_FORMAT };

static const char *const plane_names[] = {"stored", "axial", "coronal", "sagittal", NULL};
static const char *const bits_names[] = {"8", "16", NULL};

/* What the rows of the formats say; filled by collect_formats(). */
static const char *format_names[EXPORT_FORMAT_COUNT + 1];
static char format_help[100 + 40 * EXPORT_FORMAT_COUNT], output_help[200 + 40 * EXPORT_FORMAT_COUNT];
static char endings[40 * EXPORT_FORMAT_COUNT], help[300 + 800 * EXPORT_FORMAT_COUNT];

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file: scanners of raw data, profiles of SCO objects, and keys for the audit trail",
	 INTO_TEXT(struct export_request, config_path)},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{'o', "output", "FILE", output_help, INTO_TEXT(struct export_request, out)},
	{OPTION_FORMAT, "format", "FORMAT", format_help, .words = format_names},
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
	{0, "zoom", "N", "PNG: magnify N times, 1 to 32; default 1",
	 INTO_INT(struct export_request, picture.zoom, 1, PICTURE_ZOOM_MAX)},
	{0, "invert", NULL, "PNG: large values dark", INTO_ON(struct export_request, picture.invert)},
	{0},
};

static const struct command_spec spec = {
	.name = "export",
	.usage = "-o FILE [--force] [OPTION]... PATH...\n       tomonode export -o FOLDER --format FORMAT [--force] [OPTION]... "
		 "PATH...",
	.summary = "Convert a PET or CT series or a tomosynthesis to NIfTI, MetaImage, Interfile or pictures, sinogram objects "
		   "back to the Interfile files that were imported, or the counts of PET to list mode.",
	.text = help,
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

/* ---- what the rows say ---- */

/* Append to a text in `size` bytes. */
__attribute__((format(printf, 3, 4))) static void append_text(char *to, size_t size, const char *fmt, ...)
{
	size_t n = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + n, size - n, fmt, ap);
	va_end(ap);
}

static void collect_endings(const struct export_format *f, bool last)
{
	for (const char *const *e = f->endings; *e; e++) {
		append_text(endings, sizeof(endings), "%s%s", !endings[0] ? "" : last && !e[1] ? " or " : ", ", *e);
		append_text(output_help, sizeof(output_help), "%s%s", e == export_formats[0]->endings ? "" : ", ", *e);
	}
}

static void collect_formats(void)
{
	static const char *const inputs[EXPORT_INPUTS] = {"\n(an image)", " (sinograms)", " (list mode)"};
	const struct export_format *const *f = export_formats;
	size_t n = 0;

	append_text(output_help, sizeof(output_help),
		    "file to write, created with its parents; its extension selects the format: ");
	append_text(format_help, sizeof(format_help), "write one file of each series and tomosynthesis to the folder of -o: ");
	append_text(help, sizeof(help), "PATH: files or folders; DICOM objects of other kinds are ignored.\n");
	for (; *f; f++) {
		collect_endings(*f, !f[1]);
		if (!f[1] || f[1]->input != (*f)->input)
			append_text(output_help, sizeof(output_help), "%s", inputs[(*f)->input]);
		append_text(help, sizeof(help), "%s", (*f)->help);
		if (!(*f)->name)
			continue;
		append_text(format_help, sizeof(format_help), "%s%s", n ? ", " : "", (*f)->name);
		if ((*f)->endings[1])
			append_text(format_help, sizeof(format_help), " (%s)", (*f)->ending);
		format_names[n++] = (*f)->name;
	}
	append_text(output_help, sizeof(output_help), ". With --format a folder");
	append_text(
		help, sizeof(help),
		"Files in a folder are named MODALITY_NUMBER_DESCRIPTION of the series, with the UID where these are the same.");
}

/* ---- raw data ---- */

static int export_raw(struct options *o, const struct series_files *l, const struct export_request *r)
{
	const struct pet_opening how = {.config = r->config, .anonymous = true, .raw = r->format->input == EXPORT_BYTES};
	struct export_job job = {.out = r->out};
	struct err err = {0};
	int code = CODE_OK;
	json_t *root;

	if (pet_source_open((const char *const *)l->list[0].paths, l->list[0].n, &how, &job.sinogram, &err) < 0 ||
	    export_job_write(&job, r->format, r->force, &err) < 0) {
		code = options_fail_err(o, &err);
	} else if (o->json) {
		root = json_pack("{s:b, s:i, s:o}", "ok", 1, "code", 0, "files", export_job_list(&job));
		if (root && job.details)
			json_object_update(root, job.details);
		json_object_set_new(root, "passed_over", json_integer((json_int_t)l->n_passed));
		code = options_json(root);
	} else {
		if (job.text[0])
			printf("%s: %s\n", job.out, job.text);
		export_job_print(&job);
	}
	sinogram_close(job.sinogram);
	export_job_clear(&job);
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

/* Check that the options fit the format and each other. */
static int check_request(const struct options *o, struct export_request *r)
{
	const struct picture_choice *c = &r->picture;
	const struct export_format *by_name;

	if (!r->out)
		return options_fail(o, CODE_USAGE, "-o FILE is missing");
	by_name = export_format_of_file(r->out);
	r->folder = r->format != NULL;
	if (r->folder && by_name)
		return options_fail(
			o, CODE_USAGE,
			"-o %s is the name of a file, which selects the format itself; with --format it must be a folder",
			r->out);
	r->format = r->folder ? r->format : by_name;
	if (!r->format)
		return options_fail(o, CODE_USAGE, "-o %s: the name must end in %s; for a folder state --format", r->out,
				    endings);
	if (r->format->input != EXPORT_IMAGES && (r->voxel || r->suv || r->series))
		return options_fail(o, CODE_USAGE, "--%s is for images, not for raw data",
				    r->voxel ? "voxel"
				    : r->suv ? "suv"
					     : "series");
	if (r->compress && !r->format->compressible)
		return options_fail(o, CODE_USAGE, "--compress is for .mha and .mhd; .nii.gz and .png are always compressed");
	if (!r->format->planes &&
	    (c->plane || c->slice || c->mip || c->window != WINDOW_AUTO || c->image != 1 || c->zoom != 1 || c->invert || r->bits))
		return options_fail(o, CODE_USAGE,
				    "--plane, --slice, --image, --mip, --window, --bits, --zoom and --invert are for .png");
	if (c->mip && c->slice)
		return options_fail(o, CODE_USAGE, "--mip and --slice exclude each other: a projection is made of all slices");
	r->picture.bits = r->bits ? 16 : 8;
	return CODE_OK;
}

int cmd_export(int argc, char **argv)
{
	struct export_request r = {.picture = {.image = 1, .zoom = 1}};
	struct config *config = NULL;
	struct series_files files = {.views = true};
	struct err err = {0};
	struct options o;
	double voxel[3];
	bool raw;
	int id, code;

	collect_formats();
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
			allowed = (r.format = export_format_named(o.value)) != NULL;
		if (!allowed)
			return options_refuse(&o, id);
	}
	if (id == OPTION_STOP)
		return o.code;
	code = check_request(&o, &r);
	if (code == CODE_OK)
		code = options_config(&o, r.config_path, &config);
	if (code != CODE_OK)
		return code;
	r.config = config;
	raw = r.format->input != EXPORT_IMAGES;
	audit_start(&config->node, AUDIT_DIRECT, "export");
	if (series_files_find(argv + o.first, raw, &files, &err) < 0)
		code = options_fail(&o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s", err.msg);
	else if (series_files_check(&files, argv + o.first, raw, &err) < 0)
		code = options_fail_err(&o, &err);
	else if (r.series && series_files_choose(&files, r.series, &err) < 0)
		code = options_fail(&o, CODE_NOT_FOUND, "%s", err.msg);
	else if (raw)
		code = export_raw(&o, &files, &r);
	else
		code = export_images(&o, &r, &files);
	audit_files_exported(&files, r.out, code);
	series_files_clear(&files);
	config_free(config);
	return code;
}
