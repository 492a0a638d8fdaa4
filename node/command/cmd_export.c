/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `tomonode export`: convert DICOM objects to files for other programs. */
#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/core/dataset.h"
#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/process/options.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/export_image.h"
#include "node/tools/export_petsird.h"
#include "node/tools/export_sinogram.h"

#define FILES_MAX 100000

enum { OPTION_VOXEL = OPTION_LONG };

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE",
	 "configuration file: scanners of raw data, profiles of SCO objects, and keys for the audit trail"},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{'o', "output", "FILE",
	 "file to write, created with its parents; its extension selects the format: .nii or .hv (an image), .hs (sinograms),\n"
	 ".petsird (list mode)"},
	{0},
};

static const struct command_spec spec = {
	.name = "export",
	.usage = "-o FILE.nii|FILE.hv|FILE.hs|FILE.petsird [-c FILE] [--voxel COLUMN,ROW,SLICE] [--json] PATH...",
	.summary = "Convert a PET or CT series to NIfTI or Interfile, a tomosynthesis to NIfTI, sinogram objects back to the "
		   "Interfile files that were imported, or the counts of PET to list mode.",
	.text = "PATH: files or folders; DICOM objects of other kinds are ignored.\n"
		".nii  NIfTI-1, float32, with the position in the patient (RAS). A dynamic or gated series has four dimensions; "
		"its\n"
		"      times are in a .json file beside it. Files that exist are replaced. A tomosynthesis is one Breast\n"
		"      Tomosynthesis Image, or a Hologic SCO object with slices, if the profile has sco = true.\n"
		".hv   Interfile image, float32; the values are in a .v file beside it.\n"
		".hs   Interfile projection data, byte for byte as imported; each other role (attenuation, ...) in NAME-role.hs. "
		"Of raw\n"
		"      data of a scanner the prompts, and the detector efficiencies in NAME-multiplicative.hs.\n"
		".petsird  list mode (docs/petsird.md): the events of a Siemens mMR, or one for each count of sinograms of span "
		"1\n"
		"      whose bins are pairs of detectors. Factors and background are not written.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
	.examples = "tomonode export -o series.nii series\n"
		    "tomonode export -o sinograms/scan.hs sinograms\n",
	.files = true,
};

enum format { FORMAT_NONE, FORMAT_NIFTI, FORMAT_IMAGE, FORMAT_SINOGRAM, FORMAT_PETSIRD };

static enum format format_of(const char *path)
{
	const char *dot = strrchr(file_name(path), '.');

	if (!dot || dot == file_name(path))
		return FORMAT_NONE;
	return !strcmp(dot, ".nii")	  ? FORMAT_NIFTI
	       : !strcmp(dot, ".hv")	  ? FORMAT_IMAGE
	       : !strcmp(dot, ".hs")	  ? FORMAT_SINOGRAM
	       : !strcmp(dot, ".petsird") ? FORMAT_PETSIRD
					  : FORMAT_NONE;
}

/* ---- selection of the files ---- */

struct list {
	char **paths;
	size_t n, n_passed; /* numbers of selected and of skipped files */
	size_t n_tomo;	    /* how many of the selected files are a tomosynthesis each */
};

static void list_clear(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	free(l->paths);
}

static bool is_one_of(const struct dicom_item *root, const char *first, const char *second)
{
	char found[DICOM_UID_SIZE] = "";

	dicom_get_text(root, TAG_SOP_CLASS_UID, found, sizeof(found), NULL);
	return !strcmp(found, first) || !strcmp(found, second);
}

/* What a file is for the command; 0: nothing. */
enum is { IS_SINOGRAM = 1, IS_IMAGE, IS_TOMO };

/* Return what a file is. A DICOM file that cannot be read is an error, because it might be selected. */
static int read_class(const char *path, struct err *err)
{
	FILE *f = fopen(path, "rb");
	char mark[4] = "";
	struct dicom_file *file = NULL;
	bool dicom = f && !fseek(f, 128, SEEK_SET) && fread(mark, 1, 4, f) == 4 && !memcmp(mark, "DICM", 4);
	const struct dicom_item *root;
	int rc;

	if (f)
		fclose(f);
	if (!dicom)
		return 0;
	rc = dicom_open(path, &file, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(path));
	root = dicom_root(file);
	rc = is_one_of(root, PET_IMAGE_CLASS, CT_IMAGE_CLASS)	       ? IS_IMAGE
	     : is_one_of(root, SINOGRAM_CLASS, SINOGRAM_SIEMENS_CLASS) ? IS_SINOGRAM
	     : tomo_object_is(root)				       ? IS_TOMO
								       : 0;
	dicom_close(file);
	return rc;
}

/* Add the file if it is a sinogram object (raw), or an image (not raw). */
static int list_add(struct list *l, const char *path, bool raw, struct err *err)
{
	int is = read_class(path, err);

	if (is < 0)
		return is;
	if (is == 0 || (is == IS_SINOGRAM) != raw) {
		l->n_passed++;
		return 0;
	}
	l->n_tomo += is == IS_TOMO;
	if (l->n == FILES_MAX)
		return err_set(err, E2BIG, "more than %d files", FILES_MAX);
	if (!(l->n & (l->n - 1))) { /* grows by doubling */
		char **more = realloc(l->paths, (l->n ? 2 * l->n : 1) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory for a list of %zu files", l->n);
		l->paths = more;
	}
	l->paths[l->n] = strdup(path);
	if (!l->paths[l->n])
		return err_set(err, ENOMEM, "no memory for a path");
	l->n++;
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int list_fill(struct list *l, char *const *paths, bool raw, struct err *err)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, by_name);
	FTSENT *entry;
	int rc = 0;

	if (!fts)
		return err_set(err, errno, "cannot read the folders: %s", strerror(errno));
	while (rc >= 0 && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_F)
			rc = list_add(l, entry->fts_path, raw, err);
		else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			rc = err_set(err, ENOENT, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
	}
	fts_close(fts);
	return rc;
}

/* ---- output ---- */

static void print_series(const struct image_series *s, const char *out)
{
	char images[48] = "";

	if (s->n_images > 1)
		snprintf(images, sizeof(images), ", %d images (%s)", s->n_images, s->type);
	printf("%s: %d x %d x %d voxels of %.4g x %.4g x %.4g mm%s, %s\n", out, s->n[0], s->n[1], s->n[2], s->spacing[0],
	       s->spacing[1], s->spacing[2], images, s->units[0] ? s->units : "no unit");
}

/* Report the written files; times: the file of the times, or NULL; notes: what the object does not prove, or "". */
static int report_series(struct options *o, const struct image_series *s, const struct list *l, const char *out,
			 const char *times, const char *notes)
{
	json_t *files;

	if (!o->json) {
		print_series(s, out);
		if (times)
			printf("%s: the times of the images\n", times);
		if (notes[0])
			printf("  %s\n", notes);
		return CODE_OK;
	}
	files = times ? json_pack("[s,s]", out, times) : json_pack("[s]", out);
	return options_json(json_pack("{s:b, s:i, s:o, s:s, s:[i,i,i], s:i, s:[f,f,f], s:s, s:I, s:s}", "ok", 1, "code", 0,
				      "files", files, "series", s->series, "size", s->n[0], s->n[1], s->n[2], "images",
				      s->n_images, "voxel_mm", s->spacing[0], s->spacing[1], s->spacing[2], "units", s->units,
				      "passed_over", (json_int_t)l->n_passed, "warnings", notes));
}

/* Open the only tomosynthesis of the list. */
static int open_tomo(const struct list *l, const struct config *config, const double *voxel, struct image_series **ret_series,
		     char *ret_notes, struct err *err)
{
	struct tomo_object *t = NULL;
	int rc;

	if (l->n > 1)
		return err_set(err, EBADMSG,
			       "%zu images, of which %zu are tomosyntheses (%s is the first image): each of these is a volume of "
			       "its own; "
			       "export them one by one",
			       l->n, l->n_tomo, file_name(l->paths[0]));
	rc = tomo_slices_open(l->paths[0], config, voxel, &t, ret_notes, err);
	if (rc == 0)
		rc = image_series_of_tomo(&t, l->paths[0], ret_series, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(l->paths[0]));
	tomo_object_close(t);
	return rc;
}

static int open_series(const struct list *l, const struct config *config, const double *voxel, struct image_series **ret_series,
		       char *ret_notes, struct err *err)
{
	*ret_notes = '\0';
	if (l->n_tomo > 0)
		return open_tomo(l, config, voxel, ret_series, ret_notes, err);
	if (voxel)
		return err_set(err, EBADMSG, "--voxel is for slices in Hologic SCO objects: PET and CT images have their own");
	return image_series_open(l->paths, l->n, ret_series, err);
}

static int export_series(struct options *o, const struct list *l, const struct config *config, const double *voxel,
			 enum format format, const char *out)
{
	char *times = NULL, notes[SLICES_NOTES_SIZE];
	struct image_series *s = NULL;
	struct err err = {0};
	int rc = open_series(l, config, voxel, &s, notes, &err);

	if (rc == 0)
		rc = folder_create_parent(out, &err);
	if (rc == 0)
		rc = format == FORMAT_NIFTI ? export_nifti(s, out, &err) : export_interfile_image(s, out, &err);
	if (rc == 0 && format == FORMAT_NIFTI)
		rc = export_nifti_times(s, out, &times, &err);
	rc = rc == 0 ? report_series(o, s, l, out, times, notes) : options_fail_err(o, &err);
	free(times);
	image_series_close(s);
	return rc;
}

static int export_projections(struct options *o, const struct list *l, const struct config *config, const char *out)
{
	struct export_file files[SINOGRAM_ROLES];
	struct sinogram *s = NULL;
	json_t *names = json_array();
	struct err err = {0};
	size_t n = 0;
	int code = CODE_OK;

	if (sinogram_open_raw((const char *const *)l->paths, l->n, config, &s, &err) < 0 || folder_create_parent(out, &err) < 0 ||
	    export_sinogram(s, out, files, &n, &err) < 0) {
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
		if (s->part[role].present)
			snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", *ret ? ", " : "",
				 sinogram_role_name((enum sinogram_role)role));
}

static int export_list(struct options *o, const struct list *l, const struct config *config, const char *out)
{
	struct export_petsird report;
	struct sinogram *s = NULL;
	struct err err = {0};
	char factors[100];
	int code = CODE_OK;

	if (sinogram_open_data((const char *const *)l->paths, l->n, config, &s, &err) < 0 ||
	    folder_create_parent(out, &err) < 0 || export_petsird(s, out, &report, &err) < 0) {
		code = options_fail_err(o, &err);
		goto out;
	}
	list_factors(s, factors, sizeof(factors));
	if (o->json)
		code = options_json(json_pack("{s:b, s:i, s:[s], s:I, s:I, s:I, s:s, s:I}", "ok", 1, "code", 0, "files", out,
					      "prompts", (json_int_t)report.prompts, "delayeds", (json_int_t)report.delayeds,
					      "blocks", (json_int_t)report.blocks, "not_written", factors, "passed_over",
					      (json_int_t)l->n_passed));
	else
		printf("%s: %llu prompts, %llu delayed events, %zu time block%s%s%s\n", out, (unsigned long long)report.prompts,
		       (unsigned long long)report.delayeds, report.blocks, plural(report.blocks),
		       factors[0] ? "; not written: " : "", factors);
out:
	sinogram_close(s);
	return code;
}

static void audit(const struct list *l, const char *out, int code)
{
	struct audit_files files = {0};

	if (!audit_is_on())
		return;
	for (size_t i = 0; i < l->n; i++)
		audit_files_add(&files, l->paths[i]);
	audit_exported(out, files.list, files.n, code);
	audit_files_clear(&files);
}

int cmd_export(int argc, char **argv)
{
	const char *out = NULL, *config_path = NULL;
	double voxel[3];
	bool has_voxel = false;
	struct config *config = NULL;
	struct list list = {0};
	struct err err = {0};
	enum format format;
	struct options o;
	bool raw;
	int id, code;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0) {
		if (id == 'o')
			out = o.value;
		if (id == 'c')
			config_path = o.value;
		if (id == OPTION_VOXEL && !(has_voxel = tomo_slices_voxel(o.value, voxel)))
			return options_refuse(&o, id);
	}
	if (id == OPTION_STOP)
		return o.code;
	if (!out)
		return options_fail(&o, CODE_USAGE, "-o FILE is missing");
	format = format_of(out);
	if (format == FORMAT_NONE)
		return options_fail(&o, CODE_USAGE, "-o %s: the name must end in .nii, .hv, .hs or .petsird", out);
	raw = format == FORMAT_SINOGRAM || format == FORMAT_PETSIRD;
	if (raw && has_voxel)
		return options_fail(&o, CODE_USAGE, "--voxel is for images, not for raw data");
	code = options_config(&o, config_path, &config);
	if (code != CODE_OK)
		return code;
	audit_start(&config->node, AUDIT_DIRECT, "export");
	if (list_fill(&list, argv + o.first, raw, &err) < 0)
		code = options_fail(&o, CODE_INPUT, "%s", err.msg);
	else if (list.n == 0)
		code = options_fail(&o, CODE_INPUT, "no %s among %zu file%s",
				    raw ? "sinogram object" : "PET, CT or tomosynthesis image", list.n_passed,
				    plural(list.n_passed));
	else if (format == FORMAT_SINOGRAM)
		code = export_projections(&o, &list, config, out);
	else if (format == FORMAT_PETSIRD)
		code = export_list(&o, &list, config, out);
	else
		code = export_series(&o, &list, config, has_voxel ? voxel : NULL, format, out);
	audit(&list, out, code);
	list_clear(&list);
	config_free(config);
	return code;
}
