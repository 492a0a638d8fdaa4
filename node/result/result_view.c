/* SPDX-License-Identifier: Apache-2.0 */
/* result_view.c - write a synthetic 2-D view as a Digital Mammography X-Ray Image For Presentation (PS3.3 A.27, modules of A.26).
 *
 * - There was no exposure for it: technique and detector are copied from the projections; dose and exposure are only in the
 * object of slices, so that they are not counted twice.
 * - A point of the view is a line along z through the volume. Its spacing is therefore that of the slices at every height: Pixel
 * Spacing equals Imager Pixel Spacing, the magnification is 1, and the distances to the source, from which viewers would compute
 * another magnification, are omitted.
 * - Stored values are for display: the window spans the tissue, and higher attenuation is brighter. The class requires identity
 * as rescale (C.8.11.3); a Real World Value Mapping gives the meaning of the values. */
#include <stdio.h>

#include "node/result/result_internal.h"

/* Type 2 or 3: copied from the first projection, wherever its object stores them. */
static const uint32_t copied[] = {
	TAG_KVP,
	TAG_ANODE_TARGET_MATERIAL,
	TAG_FILTER_TYPE,
	TAG_FILTER_MATERIAL,
	TAG_FOCAL_SPOTS,
	TAG_COMPRESSION_FORCE,
	TAG_BODY_PART_THICKNESS,
	TAG_PADDLE_DESCRIPTION,
	TAG_DETECTOR_ID,
	TAG_DATE_OF_LAST_DETECTOR_CALIBRATION,
	TAG_TIME_OF_LAST_DETECTOR_CALIBRATION,
	TAG_DETECTOR_TEMPERATURE,
	TAG_EXPOSURE_CONTROL_MODE,
	TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION,
	TAG_ACQUISITION_DATE,
	TAG_ACQUISITION_TIME,
	TAG_IRRADIATION_EVENT_UID,
};

/* Write the anatomical direction of a direction vector as in Patient Orientation (PS3.3 C.7.6.1.1.1): the largest component
 * first, followed by other components above 0.3 (17 degrees). */
static void direction_text(const double v[3], char ret_text[4])
{
	static const char letters[3][2] = {{'R', 'L'}, {'A', 'P'}, {'F', 'H'}};
	bool used[3] = {false, false, false};
	size_t n = 0;

	for (int step = 0; step < 3; step++) {
		int best = -1;

		for (int c = 0; c < 3; c++)
			if (!used[c] && fabs(v[c]) > 0.3 && (best < 0 || fabs(v[c]) > fabs(v[best]) + 1e-6))
				best = c;
		if (best < 0)
			break;
		used[best] = true;
		ret_text[n++] = letters[best][v[best] > 0];
	}
	ret_text[n] = '\0';
}

/* Write the orientation, which is that of the source's images, using their values if present. */
static void fill_orientation(const struct result *r, const struct header *h, struct item_writer *w)
{
	const struct dicom_item *from = header_find(h, TAG_PATIENT_ORIENTATION);
	const struct exam *e = r->exam;
	double columns[3], rows[3];
	char a[4], b[4], text[12];

	if (from) {
		item_copy(w, TAG_PATIENT_ORIENTATION, from);
		return;
	}
	for (int c = 0; c < 3; c++) {
		columns[c] = (e->columns_toward_chest ? -1 : 1) * e->axis[0][c];
		rows[c] = (e->rows_toward_minus_y ? -1 : 1) * e->axis[1][c];
	}
	direction_text(columns, a);
	direction_text(rows, b);
	snprintf(text, sizeof(text), "%s\\%s", a, b);
	item_put_text(w, TAG_PATIENT_ORIENTATION, text);
}

static void fill_values(const struct result *r, struct item_writer *w)
{
	item_put_text(w, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG");  /* attenuation: the logarithm is taken */
	item_put_int(w, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, -1); /* larger values: less X-ray intensity */
	item_put_double(w, TAG_RESCALE_INTERCEPT, 0);
	item_put_double(w, TAG_RESCALE_SLOPE, 1);
	item_put_text(w, TAG_RESCALE_TYPE, "US");
	result_put_window(r, w);
	result_put_mapping(r, w);
}

void result_fill_view(const struct result *r, struct item_writer *root)
{
	const struct grid *g = &r->info->plan->grid;
	struct header h = exam_header(r->exam, 0);
	char laterality[2] = {r->exam->laterality, '\0'};
	double spacing[2] = {g->h[1], g->h[0]}; /* between rows, then between columns */

	item_put_text(root, DICOM_TAG(0x0008, 0x0068), "FOR PRESENTATION"); /* Presentation Intent Type */
	item_put_text(root, DICOM_TAG(0x0018, 0x1508), "MAMMOGRAPHIC");	    /* Positioner Type */
	item_put_text(root, DICOM_TAG(0x0040, 0x0318), "BREAST");	    /* Organ Exposed */
	item_put_text(root, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	item_put_text(root, TAG_IMAGE_LATERALITY, laterality);
	item_put_code(root, TAG_ANATOMIC_REGION_SEQUENCE, "76752008", "SCT", "Breast");
	fill_orientation(r, &h, root);
	item_copy_or_empty(root, TAG_DETECTOR_TYPE, header_find(&h, TAG_DETECTOR_TYPE));
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		const struct dicom_item *from = header_find(&h, copied[i]);

		if (from)
			item_copy(root, copied[i], from);
	}
	item_put_doubles(root, TAG_IMAGER_PIXEL_SPACING, spacing, 2);
	item_put_doubles(root, TAG_PIXEL_SPACING, spacing, 2);
	item_put_text(root, DICOM_TAG(0x0028, 0x0A02), "GEOMETRY"); /* Pixel Spacing Calibration Type */
	item_put_text(root, DICOM_TAG(0x0028, 0x0A04), "orthographic view of the reconstructed volume");
	item_put_double(root, TAG_ESTIMATED_RADIOGRAPHIC_MAGNIFICATION_FACTOR, 1);
	fill_values(r, root);
	item_put_text(root, TAG_DERIVATION_DESCRIPTION, r->derivation);
	result_fill_reconstruction_code(r, root);
	result_fill_further_code(r, root);
	result_fill_source_images(r, root, TAG_SOURCE_IMAGE_SEQUENCE, true);
	result_fill_source_slices(r, root, TAG_SOURCE_IMAGE_SEQUENCE, true);
}
