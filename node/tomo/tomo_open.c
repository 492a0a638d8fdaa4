/* SPDX-License-Identifier: Apache-2.0 */
/* tomo_open.c - open a case: from the files' tags to a scan and prepared views. See node/tomo/exam.h. Each step has a separate
 * file: the type of the objects (exam_facts.c), whether they belong to one exam (exam_consistency.c), the system's geometry
 * profile, the orientation of the image in the patient (exam_orientation.c), the angles (exam_views.c), the geometry
 * (exam_geometry.c), the intensity scale (exam_intensity.c, exam_i0.c). Headers stay open; pixels are read one view at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

#define ELEMENTS_MAX 1000000 /* in all headers of a case: some 200 MB; a valid projection has a few hundred */
#define BAND 131072	     /* stored values that fit the cache of a core */

static int open_files(struct exam *exam, const char *const *paths, size_t n, struct err *err)
{
	size_t n_elements = 0;

	exam->paths = calloc(n, sizeof(*exam->paths));
	exam->files = calloc(n, sizeof(*exam->files));
	if (!exam->paths || !exam->files)
		return err_set(err, ENOMEM, "no memory for %zu files", n);
	exam->n_files = n;
	for (size_t i = 0; i < n; i++) {
		exam->paths[i] = strdup(paths[i]);
		if (!exam->paths[i])
			return err_set(err, ENOMEM, "no memory for a path");
		if (dicom_open(paths[i], &exam->files[i], err) < 0)
			return err_prefix(err, "%s", file_name(paths[i]));
		n_elements += dicom_element_count(exam->files[i]);
		if (n_elements > ELEMENTS_MAX)
			return err_set(err, EBADMSG, "%s: the headers of the case up to this file have more than %d elements",
				       file_name(paths[i]), ELEMENTS_MAX);
	}
	return 0;
}

static int check_classes(struct exam *exam, struct err *err)
{
	char reason[256];
	bool refused;

	for (size_t i = 0; i < exam->n_files; i++)
		if (!exam_class(dicom_root(exam->files[i]), &exam->source, &refused, reason, sizeof(reason)))
			return err_set(err, ENOTSUP, "%s: %s", file_name(exam->paths[i]),
				       reason[0] ? reason : "no projections to reconstruct");
	return 0;
}

/* Check the pixel format. Call it when all files are known to be of one class. */
static int check_pixels(struct exam *exam, struct err *err)
{
	/* Lossy Image Compression, its Ratio and its Method: which systems write without the first */
	static const uint32_t lossy_tags[] = {TAG_LOSSY_IMAGE_COMPRESSION, DICOM_TAG(0x0028, 0x2112), DICOM_TAG(0x0028, 0x2114)};

	if (exam->frames_in_file && exam->n_files != 1)
		return err_set(err, EBADMSG, "%zu %s objects for one view: each holds all projections of an exposure series",
			       exam->n_files, exam->source == EXAM_SCO ? "SCO" : "Breast Projection");
	for (size_t i = 0; i < exam->n_files; i++) {
		struct header h = {.root = dicom_root(exam->files[i]), .frame = -1};
		struct dicom_pixel_info *info = &exam->pixels;
		char lossy[20];

		/* Data that were compressed with loss are still lossy after decompression. */
		for (size_t k = 0; k < sizeof(lossy_tags) / sizeof(lossy_tags[0]); k++)
			if (header_text(&h, lossy_tags[k], lossy, sizeof(lossy), NULL) == 1 && lossy[0] &&
			    strcmp(lossy, "00") != 0)
				return err_set(err, ENOTSUP, "%s: %s is %s: its values are not those of the detector",
					       file_name(exam->paths[i]), tag_text(lossy_tags[k]), lossy);
		if (exam->source != EXAM_SCO && dicom_pixels_info(exam->files[i], info, err) < 0)
			return err_prefix(err, "%s", file_name(exam->paths[i]));
		if (exam->source == EXAM_MG_SERIES && info->frames != 1)
			return err_set(err, EBADMSG, "%s: %ld frames in an object of a single-frame class",
				       file_name(exam->paths[i]), info->frames);
	}
	return 0;
}

int exam_find_profile(struct exam *exam, const struct config *config, struct err *err)
{
	const struct dicom_item *root = dicom_root(exam->files[0]);
	char manufacturer[65] = "", model[65] = "", serial[65] = "";

	if (dicom_get_text(root, TAG_MANUFACTURER, manufacturer, sizeof(manufacturer), err) < 0 ||
	    dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), err) < 0 ||
	    dicom_get_text(root, TAG_DEVICE_SERIAL_NUMBER, serial, sizeof(serial), err) < 0)
		return err_prefix(err, "%s", file_name(exam->paths[0]));
	exam->profile = config_profile(config, manufacturer, model, serial);
	if (!exam->profile)
		return err_set(err, ENOKEY, "no geometry profile for manufacturer '%s', model '%s', serial '%s'", manufacturer,
			       model, serial);
	return 0;
}

/* Open the container of an SCO object, if the profile allows it, and take size and format of the views from it: in full
 * resolution, or in lower resolution if it has no other. */
static int open_sco(struct exam *exam, struct err *err)
{
	const struct dicom_item *root = dicom_root(exam->files[0]);
	int rc;

	if (!exam->profile->sco)
		return err_set(
			err, ENOTSUP,
			"%s: projections in a Hologic SCO object, whose format is not documented by the manufacturer: they are "
			"read only if the profile '%s' has sco = true",
			file_name(exam->paths[0]), exam->profile->name);
	exam->sco_lower = !sco_has(root, SCO_FULL) && sco_has(root, SCO_LOWER);
	rc = sco_open(exam->files[0], exam->sco_lower ? SCO_LOWER : SCO_FULL, &exam->sco, err);
	if (rc < 0)
		return err_prefix(err, "%s", file_name(exam->paths[0]));
	exam->pixels = *sco_info(exam->sco);
	return 0;
}

int exam_open(const char *const *paths, size_t n, bool as_is, const struct patient_statement *patient,
	      const struct config *config, struct exam **ret_exam, struct err *err)
{
	struct exam *exam;
	int rc;

	if (n == 0)
		return err_set(err, EBADMSG, "no files");
	if (n > EXAM_VIEWS_MAX) /* checked before a descriptor is opened for each file */
		return err_set(err, EBADMSG, "%zu files: at most %d projections are supported", n, EXAM_VIEWS_MAX);
	exam = calloc(1, sizeof(*exam));
	if (!exam)
		return err_set(err, ENOMEM, "no memory for a case");
	exam->band = BAND;
	rc = open_files(exam, paths, n, err);
	if (rc < 0)
		goto out;
	rc = check_classes(exam, err);
	if (rc < 0)
		goto out;
	exam->frames_in_file = exam->source != EXAM_MG_SERIES;
	rc = exam_check_consistency(exam, err);
	if (rc < 0)
		goto out;
	rc = patient_check(exam->files, exam->paths, exam->n_files, patient, &exam->patient, err);
	if (rc < 0)
		goto out;
	rc = check_pixels(exam, err);
	if (rc < 0)
		goto out;
	rc = exam_find_profile(exam, config, err);
	if (rc < 0)
		goto out;
	rc = exam->source == EXAM_SCO ? open_sco(exam, err) : 0;
	if (rc < 0)
		goto out;
	rc = exam->profile->pose_in_header || exam->source == EXAM_SCO ? exam_read_poses(exam, err) : 0;
	if (rc < 0)
		goto out;
	rc = exam_orient(exam, err);
	if (rc < 0)
		goto out;
	rc = exam_list_views(exam, as_is, err);
	if (rc < 0)
		goto out;
	rc = exam->frames_in_file ? exam_check_frames(exam, err) : 0;
	if (rc < 0)
		goto out;
	rc = exam_make_scan(exam, err);
	if (rc < 0)
		goto out;
	rc = exam_intensity(exam, err);
	if (rc < 0)
		goto out;
	exam_geometry_source(exam); /* after the sentences about this exam */
	*ret_exam = exam;
	exam = NULL;
out:
	exam_close(exam);
	/* A value representation without texts and numbers, a text that is too long, a number that is too large: errors of the
	 * data, which no other attempt can cure. */
	rc = err_remap(rc, EINVAL, EBADMSG, err);
	rc = err_remap(rc, EMSGSIZE, EBADMSG, err);
	return err_remap(rc, ERANGE, EBADMSG, err);
}

struct exam *exam_close(struct exam *exam)
{
	if (!exam)
		return NULL;
	sco_close(exam->sco);
	for (size_t i = 0; i < exam->n_files; i++) {
		if (exam->files)
			dicom_close(exam->files[i]);
		if (exam->paths)
			free(exam->paths[i]);
	}
	free(exam->files);
	free(exam->paths);
	free(exam->views);
	free(exam->poses);
	free(exam->i0);
	free(exam->flatfield);
	exam_close_flatfield(exam->flatfields);
	scan_free(exam->scan);
	free(exam);
	return NULL;
}

/* Refuse a view whose bins all have one value: it shows nothing, and would be reconstructed as an object or as air. */
static int check_image(const struct exam *exam, const struct exam_view *v, const uint16_t *raw, struct err *err)
{
	size_t n = (size_t)exam->pixels.columns * (size_t)exam->pixels.rows, i = 1;

	while (i < n && raw[i] == raw[0])
		i++;
	if (i < n)
		return 0;
	return err_set(err, EBADMSG, "%s, frame %ld: every stored value is %u, which is no projection",
		       file_name(exam->paths[v->file]), v->frame + 1, (unsigned)raw[0]);
}

static void turn_values(const struct exam *exam, uint16_t *values, long rows)
{
	orientation_turn(values, (size_t)exam->pixels.columns, (size_t)rows, exam->columns_toward_chest,
			 exam->rows_toward_minus_y);
}

/* Read and turn some rows at a time, while they are in a core's cache. */
static int read_bands(const struct exam *exam, const struct exam_view *v, uint16_t *ret_raw, struct err *err)
{
	long columns = exam->pixels.columns, rows = exam->pixels.rows, band = exam->band / columns + 1, n;
	int rc = 0;

	for (long row = 0; rc == 0 && row < rows; row += n) {
		n = rows - row < band ? rows - row : band;
		uint16_t *to = ret_raw + (size_t)(exam->rows_toward_minus_y ? rows - row - n : row) * (size_t)columns;

		rc = dicom_read_rows(exam->files[v->file], v->frame, row, n, to, err);
		if (rc == 0)
			turn_values(exam, to, n);
	}
	return rc;
}

static int read_whole(const struct exam *exam, const struct exam_view *v, uint16_t *ret_raw, struct err *err)
{
	int rc = exam->sco ? sco_read_frame(exam->sco, v->frame, ret_raw, err)
			   : dicom_read_frame(exam->files[v->file], v->frame, ret_raw, err);

	if (rc == 0)
		turn_values(exam, ret_raw, exam->pixels.rows);
	return rc;
}

int exam_read_view(const struct exam *exam, int view, uint16_t *ret_raw, struct err *err)
{
	const struct exam_view *v;
	int rc;

	if (view < 0 || view >= exam->n_views)
		return err_set(err, EINVAL, "view %d of %d", view, exam->n_views);
	v = &exam->views[view];
	rc = !exam->sco && dicom_has_rows(exam->files[v->file]) ? read_bands(exam, v, ret_raw, err)
								: read_whole(exam, v, ret_raw, err);
	return rc < 0 ? err_prefix(err, "%s", file_name(exam->paths[v->file])) : check_image(exam, v, ret_raw, err);
}
