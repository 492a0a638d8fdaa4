/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_header.c - write the attributes that both formats of a simulated exam share. Name and ID of the patient show that it
 * is not a real person. */
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "node/base/version.h"
#include "node/simulate/simulate.h"

static void fill_fixed(struct item_writer *w)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} entries[] = {
		{TAG_STUDY_DATE, "20260601"},
		{TAG_STUDY_TIME, "101500"},
		{DICOM_TAG(0x0008, 0x0021), "20260601"}, /* Series Date */
		{DICOM_TAG(0x0008, 0x0031), "101700"},	 /* Series Time */
		{TAG_CONTENT_DATE, "20260601"},
		{TAG_CONTENT_TIME, "101800"},
		{TAG_ACCESSION_NUMBER, "SIM1"},
		{TAG_MODALITY, "MG"},
		{TAG_REFERRING_PHYSICIAN_NAME, ""},
		{TAG_INSTITUTION_NAME, "SIMULATED"},
		{TAG_INSTITUTION_ADDRESS, "SIMULATED"},
		{TAG_STATION_NAME, "SIMULATOR"},
		{DICOM_TAG(0x0008, 0x1070), "SIMULATOR^TOMONODE"}, /* Operators' Name */
		{TAG_PATIENT_NAME, "TOMONODE^PHANTOM"},
		{TAG_PATIENT_ID, "TOMONODE-PHANTOM"},
		{TAG_PATIENT_BIRTH_DATE, "19601130"},
		{TAG_PATIENT_SEX, "F"},
		{TAG_PATIENT_AGE, "065Y"},
		{TAG_STUDY_ID, "1"},
		{TAG_SOFTWARE_VERSIONS, "tomonode " TOMONODE_VERSION},
		{TAG_BODY_PART_EXAMINED, "BREAST"},
		{TAG_SERIES_NUMBER, "1"},
		{TAG_SERIES_DESCRIPTION, "simulated tomosynthesis projections"},
		{TAG_POSITION_REFERENCE_INDICATOR, ""},
		{TAG_BURNED_IN_ANNOTATION, "NO"},
		{TAG_BREAST_IMPLANT_PRESENT, "NO"},
		{TAG_PARTIAL_VIEW, "NO"},
		{TAG_LOSSY_IMAGE_COMPRESSION, "00"},
		{DICOM_TAG(0x0008, 0x0068), "FOR PROCESSING"}, /* Presentation Intent Type */
		{DICOM_TAG(0x0018, 0x1508), "MAMMOGRAPHIC"},   /* Positioner Type */
		{TAG_DETECTOR_TYPE, "DIRECT"},
		{TAG_DETECTOR_ID, "SIMULATED"},
		{TAG_DETECTOR_TEMPERATURE, "30"},
		{TAG_DATE_OF_LAST_DETECTOR_CALIBRATION, "20260601"},
		{TAG_TIME_OF_LAST_DETECTOR_CALIBRATION, "080000"},
		{TAG_KVP, "30"},
		{TAG_FOCAL_SPOTS, "0.3"},
		{TAG_COMPRESSION_FORCE, "100"},
		{TAG_PADDLE_DESCRIPTION, "SIMULATED"},
		{TAG_EXPOSURE_CONTROL_MODE, "MANUAL"},
		{TAG_EXPOSURE_CONTROL_MODE_DESCRIPTION, "SIMULATED"},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		item_put_text(w, entries[i].tag, entries[i].text);
}

static void fill_view_code(const struct simulation *s, struct item_writer *root)
{
	bool cc = strcmp(s->o.view, "CC") == 0;
	struct item_writer code = item_begin(root, TAG_VIEW_CODE_SEQUENCE);

	item_put_text(&code, TAG_CODE_VALUE, cc ? "399162004" : "399368009");
	item_put_text(&code, TAG_CODING_SCHEME_DESIGNATOR, "SCT");
	item_put_text(&code, TAG_CODE_MEANING, cc ? "cranio-caudal" : "medio-lateral oblique");
	item_put_empty(&code, TAG_VIEW_MODIFIER_CODE_SEQUENCE);
	item_end(root, &code);
}

static void fill_pixels(const struct simulation *s, struct item_writer *w)
{
	item_put_int(w, TAG_SAMPLES_PER_PIXEL, 1);
	item_put_text(w, TAG_PHOTOMETRIC_INTERPRETATION, s->o.inverted ? "MONOCHROME2" : "MONOCHROME1");
	item_put_text(w, TAG_PRESENTATION_LUT_SHAPE, s->o.inverted ? "IDENTITY" : "INVERSE");
	item_put_int(w, TAG_ROWS, s->n_v);
	item_put_int(w, TAG_COLUMNS, s->n_u);
	item_put_int(w, TAG_BITS_ALLOCATED, 16);
	item_put_int(w, TAG_BITS_STORED, 16);
	item_put_int(w, TAG_HIGH_BIT, 15);
	item_put_int(w, TAG_PIXEL_REPRESENTATION, 0);
	if (s->o.collimate == 0)
		return;
	item_put_int(w, TAG_PIXEL_PADDING_VALUE, s->o.inverted ? s->max_value : 0);
	item_put_int(w, TAG_PIXEL_PADDING_RANGE_LIMIT, s->o.inverted ? s->max_value : 0);
}

void simulate_fill_header(const struct simulation *s, struct item_writer *root)
{
	fill_fixed(root);
	item_put_text(root, TAG_STUDY_INSTANCE_UID, s->study);
	item_put_text(root, TAG_SERIES_INSTANCE_UID, s->series);
	item_put_text(root, TAG_FRAME_OF_REFERENCE_UID, s->frame_of_reference);
	item_put_text(root, TAG_MANUFACTURER, s->o.system.manufacturer);
	item_put_text(root, TAG_MANUFACTURER_MODEL_NAME, s->o.system.model);
	item_put_text(root, TAG_DEVICE_SERIAL_NUMBER, s->o.system.serial);
	item_put_text(root, TAG_ANODE_TARGET_MATERIAL, s->o.system.anode);
	item_put_doubles(root, TAG_DETECTOR_ELEMENT_SPACING, (double[]){s->o.profile->pitch, s->o.profile->pitch}, 2);
	item_put_doubles(root, TAG_DETECTOR_BINNING, (double[]){s->o.binning, s->o.binning}, 2);
	item_put_double(root, TAG_BODY_PART_THICKNESS, s->o.thickness);
	fill_view_code(s, root);
	fill_pixels(s, root);
	item_put_empty(root, TAG_ACQUISITION_CONTEXT_SEQUENCE);
}

/* Return the directions of stored columns and rows, see docs/geometry.md "How an image is stored". */
const char *simulate_orientation(const struct simulation *s)
{
	bool cc = strcmp(s->o.view, "CC") == 0;

	if (s->o.side == 'L')
		return cc ? "A\\R" : "A\\FR";
	return cc ? "P\\L" : "P\\FL";
}

/* The physical detector is stored as the images of left breasts are: its columns along +x, its rows along -y. Images of right
 * breasts are turned by 180 degrees. */
void simulate_fill_window(const struct simulation *s, struct item_writer *w)
{
	const struct profile_conf *p = s->o.profile;
	double rows = p->elements_y > 0 ? p->elements_y : s->n_v * s->o.binning;
	double origin[2] = {rows / 2 - s->o.window[1] / p->pitch - s->n_v * s->o.binning / 2.0, s->o.window[0] / p->pitch};

	item_put_doubles(w, TAG_FIELD_OF_VIEW_ORIGIN, origin, 2);
	item_put_text(w, TAG_FIELD_OF_VIEW_ROTATION, s->o.side == 'R' ? "180" : "0");
	item_put_text(w, TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, "NO");
}
