/* SPDX-License-Identifier: Apache-2.0 */
/* exam_consistency.c - check that all files belong to one exposure series. Each file is compared with the first; an error names
 * both values. Whether they name one patient is checked separately, without printing values (dicom/object/patient.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

struct agreement {
	uint32_t tag;
	const char *name;
	double tolerance; /* > 0: compare numbers; 0: compare texts */
	unsigned index;
};

static const struct agreement agreements[] = {
	{TAG_SOP_CLASS_UID, "SOP class", 0, 0},
	{TAG_STUDY_INSTANCE_UID, "study", 0, 0},
	{TAG_SERIES_INSTANCE_UID, "series", 0, 0},
	{TAG_FRAME_OF_REFERENCE_UID, "frame of reference", 0, 0},
	{TAG_MANUFACTURER, "manufacturer", 0, 0},
	{TAG_MANUFACTURER_MODEL_NAME, "model", 0, 0},
	{TAG_DEVICE_SERIAL_NUMBER, "serial number", 0, 0},
	{TAG_PATIENT_ORIENTATION, "patient orientation", 0, 0},
	{TAG_ROWS, "rows", 0.5, 0},
	{TAG_COLUMNS, "columns", 0.5, 0},
	{TAG_BITS_ALLOCATED, "bits allocated", 0.5, 0},
	{TAG_BITS_STORED, "bits stored", 0.5, 0},
	{TAG_PIXEL_REPRESENTATION, "pixel representation", 0.5, 0},
	{TAG_IMAGER_PIXEL_SPACING, "pixel pitch", 1e-5, 0},
	{TAG_IMAGER_PIXEL_SPACING, "pixel pitch", 1e-5, 1},
	{TAG_BODY_PART_THICKNESS, "compressed thickness", 1, 0}, /* some systems measure it for each projection */
	{TAG_DISTANCE_SOURCE_TO_DETECTOR, "source to detector distance", 0.05, 0},
	{TAG_DETECTOR_ELEMENT_SPACING, "detector element spacing", 1e-5, 0},
	{TAG_DETECTOR_BINNING, "detector binning", 1e-5, 0},
	{TAG_FIELD_OF_VIEW_ORIGIN, "row of the field of view", 1e-3, 0},
	{TAG_FIELD_OF_VIEW_ORIGIN, "column of the field of view", 1e-3, 1},
	{TAG_FIELD_OF_VIEW_ROTATION, "rotation of the field of view", 1e-3, 0},
	{TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, "flip of the field of view", 0, 0},
	{TAG_PIXEL_INTENSITY_RELATIONSHIP, "pixel intensity relationship", 0, 0},
	{TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "pixel intensity relationship sign", 0.5, 0},
	{TAG_PIXEL_PADDING_VALUE, "pixel padding value", 0.5, 0},
	{TAG_PIXEL_PADDING_RANGE_LIMIT, "pixel padding range limit", 0.5, 0},
};

static int refuse_difference(const struct exam *exam, size_t file, const char *name, uint32_t tag, const char *here,
			     const char *there, struct err *err)
{
	return err_set(err, EBADMSG, "%s %s is '%s' in %s and '%s' in %s: a projection from another exam", name, tag_text(tag),
		       here, file_name(exam->paths[file]), there, file_name(exam->paths[0]));
}

/* Read the value as text; numbers are formatted again, so that "50" and "50.0" are equal. */
static int value_of(const struct header *h, const struct agreement *a, char *ret_text, size_t size, double *ret_number,
		    struct err *err)
{
	int found;

	ret_text[0] = '\0';
	*ret_number = 0;
	if (!(a->tolerance > 0))
		return header_text(h, a->tag, ret_text, size, err);
	found = header_double(h, a->tag, a->index, ret_number, err);
	if (found > 0)
		snprintf(ret_text, size, "%.10g", *ret_number);
	return found;
}

static bool values_agree(const struct agreement *a, const char *here, double x, const char *there, double y)
{
	return a->tolerance > 0 && here[0] && there[0] ? fabs(x - y) <= a->tolerance : !strcmp(here, there);
}

static int agree_on(const struct exam *exam, size_t file, const struct agreement *a, struct err *err)
{
	struct header first = {.root = dicom_root(exam->files[0]), .frame = -1};
	struct header other = {.root = dicom_root(exam->files[file]), .frame = -1};
	char here[512], there[512];
	double x, y;
	int found;

	found = value_of(&first, a, there, sizeof(there), &y, err);
	if (found < 0)
		return err_prefix(err, "%s", file_name(exam->paths[0]));
	found = value_of(&other, a, here, sizeof(here), &x, err);
	if (found < 0)
		return err_prefix(err, "%s", file_name(exam->paths[file]));
	if (values_agree(a, here, x, there, y))
		return 0;
	return refuse_difference(exam, file, a->name, a->tag, here, there, err);
}

/* Compare laterality and view by meaning, because they may be coded in several ways. */
static int agree_on_view(const struct exam *exam, size_t file, struct err *err)
{
	struct header first = {.root = dicom_root(exam->files[0]), .frame = -1};
	struct header other = {.root = dicom_root(exam->files[file]), .frame = -1};
	char here[64] = {header_laterality(&other), '\0'}, there[64] = {header_laterality(&first), '\0'};

	if (strcmp(here, there))
		return refuse_difference(exam, file, "laterality", TAG_IMAGE_LATERALITY, here, there, err);
	header_view(&other, here, sizeof(here));
	header_view(&first, there, sizeof(there));
	if (strcmp(here, there))
		return refuse_difference(exam, file, "view", TAG_VIEW_CODE_SEQUENCE, here, there, err);
	return 0;
}

static int instance_uid(const struct exam *exam, size_t file, char ret_uid[DICOM_UID_SIZE], struct err *err)
{
	int found = dicom_get_text(dicom_root(exam->files[file]), TAG_SOP_INSTANCE_UID, ret_uid, DICOM_UID_SIZE, err);

	if (!found)
		err_set(err, EBADMSG, "SOP Instance UID %s is missing", tag_text(TAG_SOP_INSTANCE_UID));
	return found > 0 ? 0 : err_prefix(err, "%s", file_name(exam->paths[file]));
}

static int no_duplicate(const struct exam *exam, size_t file, struct err *err)
{
	char uid[DICOM_UID_SIZE], other[DICOM_UID_SIZE];
	int rc = instance_uid(exam, file, uid, err);

	for (size_t i = 0; !rc && i < file; i++) {
		rc = instance_uid(exam, i, other, err);
		if (!rc && !strcmp(uid, other))
			return err_set(err, EBADMSG, "SOP Instance UID (0008,0018) %s is in both %s and %s", uid,
				       file_name(exam->paths[i]), file_name(exam->paths[file]));
	}
	return rc;
}

/* Check values that must be equal in all frames of a multi-frame object, because only the first frame is read for them. */
int exam_check_frames(const struct exam *exam, struct err *err)
{
	static const struct agreement same[] = {
		{TAG_PATIENT_ORIENTATION, "patient orientation", 0, 0},
		{TAG_FRAME_LATERALITY, "laterality", 0, 0},
		{TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, "breast support angle", 0.05, 0},
		{TAG_PIXEL_INTENSITY_RELATIONSHIP, "pixel intensity relationship", 0, 0},
		{TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "pixel intensity relationship sign", 0.5, 0},
		{TAG_IMAGER_PIXEL_SPACING, "pixel pitch", 1e-5, 0},
		{TAG_FIELD_OF_VIEW_ORIGIN, "row of the field of view", 1e-3, 0},
		{TAG_FIELD_OF_VIEW_ORIGIN, "column of the field of view", 1e-3, 1},
		{TAG_DISTANCE_SOURCE_TO_DETECTOR, "source to detector distance", 0.05, 0},
	};
	struct header first = exam_header(exam, 0);
	char here[512], there[512];
	double x, y;

	for (int i = 1; i < exam->n_views; i++) { /* the first one: exam_check_consistency() */
		struct header h = exam_header(exam, i);

		if (header_check_side(&h, err) < 0)
			return err_prefix(err, "frame %ld", h.frame + 1);
	}
	for (size_t k = 0; k < sizeof(same) / sizeof(same[0]); k++) {
		const struct agreement *a = &same[k];

		if (value_of(&first, a, there, sizeof(there), &y, err) < 0)
			return err_prefix(err, "frame %ld", first.frame + 1);
		for (int i = 1; i < exam->n_views; i++) {
			struct header h = exam_header(exam, i);

			if (value_of(&h, a, here, sizeof(here), &x, err) < 0)
				return err_prefix(err, "frame %ld", h.frame + 1);
			if (!values_agree(a, here, x, there, y))
				return err_set(err, EBADMSG, "%s %s is '%s' in frame %ld and '%s' in frame %ld", a->name,
					       tag_text(a->tag), here, h.frame + 1, there, first.frame + 1);
		}
	}
	return 0;
}

int exam_check_consistency(const struct exam *exam, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < exam->n_files; i++) {
		struct header h = {.root = dicom_root(exam->files[i]), .frame = exam->frames_in_file ? 0 : -1};

		if (header_check_side(&h, err) < 0)
			return err_prefix(err, "%s", file_name(exam->paths[i]));
	}
	for (size_t i = 1; !rc && i < exam->n_files; i++) {
		for (size_t k = 0; !rc && k < sizeof(agreements) / sizeof(agreements[0]); k++)
			rc = agree_on(exam, i, &agreements[k], err);
		if (!rc)
			rc = agree_on_view(exam, i, err);
		if (!rc)
			rc = no_duplicate(exam, i, err);
	}
	return rc;
}
