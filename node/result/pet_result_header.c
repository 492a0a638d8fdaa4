/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_header.c - write the header of a PET Image (PS3.3 A.21): series, isotope, plane, pixels.
 *
 * - Series Date and Time are the start of the acquisition, because decay is corrected to it and SUV viewers use it; the time of
 * the reconstruction is in Content Date and Time, Instance Creation and Contribution DateTime.
 * - The patient's position is written as codes; PatientPosition (0018,5100) is not allowed together with them.
 */
#include <math.h>
#include <string.h>

#include "node/result/pet_result_internal.h"

/* Attributes copied from the source: isotope and dose with their codes, anatomic region, detection. */
static const uint32_t copied[] = {
	TAG_ACQUISITION_DATE_TIME,
	DICOM_TAG(0x0008, 0x2218), /* Anatomic Region */
	TAG_IRRADIATION_EVENT_UID,
	DICOM_TAG(0x0010, 0x1021), /* Patient's Size Code */
	TAG_BODY_PART_EXAMINED,
	DICOM_TAG(0x0018, 0x0026), /* Intervention Drug Information */
	TAG_GANTRY_TILT,
	DICOM_TAG(0x0018, 0x1121), /* Gantry Slew */
	TAG_ENERGY_WINDOW_RANGE_SEQUENCE,
	DICOM_TAG(0x0054, 0x1104), /* Detector Lines of Response Used */
	TAG_COINCIDENCE_WINDOW_WIDTH,
	DICOM_TAG(0x0054, 0x1220), /* Secondary Counts Type */
};

/* Type 2: copied, or written empty. */
static const uint32_t copied_or_empty[] = {
	TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE,
	TAG_TYPE_OF_DETECTOR_MOTION,
	TAG_COLLIMATOR_TYPE,
	TAG_POSITION_REFERENCE_INDICATOR,
};

const struct series_kind pet_series = {
	.sop_class = CLASS_PET,
	.image_type = "ORIGINAL\\PRIMARY", /* computed from raw data, not from other images (PS3.3 C.7.6.1.1.2) */
	.modality = "PT",
	.name = "PET",
	.seed = "tomonode pet",
	.prefix = "pt",
	.geometry = "scanner",
	.role = SINOGRAM_EMISSION,
	.copied = copied,
	.copied_or_empty = copied_or_empty,
	.n_copied = sizeof(copied) / sizeof(copied[0]),
	.n_copied_or_empty = sizeof(copied_or_empty) / sizeof(copied_or_empty[0]),
};

/* PS3.16 CID 20: orientation of the patient, by the second part of PatientPosition. */
static const struct orientation {
	const char *position, *code, *meaning;
} orientations[] = {
	{"S", "40199007", "supine"},
	{"P", "1240000", "prone"},
	{"DR", "102535000", "right lateral decubitus"},
	{"DL", "102536004", "left lateral decubitus"},
};

/* Write a code of SNOMED CT. */
static void put_code(struct item_writer *w, uint32_t sequence, const char *value, const char *meaning)
{
	item_put_code(w, sequence, value, "SCT", meaning);
}

/* Copy the source's codes, or write those of its PatientPosition. */
static void fill_patient_orientation(const struct pet_result *r, struct item_writer *w)
{
	const char *position = r->series.s->facts.patient_position;
	const struct dicom_item *source = r->series.source;
	struct item_writer item;

	if (dicom_item_count(source, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE) > 0) {
		item_copy(w, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, source);
	} else {
		item_put_empty(w, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE);
		for (size_t i = 0; i < sizeof(orientations) / sizeof(orientations[0]); i++) {
			if (strlen(position) < 3 || strcmp(position + 2, orientations[i].position))
				continue;
			put_code(w, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, "102538003", "recumbent");
			item = *w;
			if (w->rc >= 0)
				item.item = dicom_item_at(w->item, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, 0);
			put_code(&item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, orientations[i].code,
				 orientations[i].meaning);
			item_end(w, &item);
		}
	}
	if (dicom_item_count(source, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE) > 0) {
		item_copy(w, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, source);
		return;
	}
	item_put_empty(w, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE);
	if (!strncmp(position, "HF", 2))
		put_code(w, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "102540008", "headfirst");
	else if (!strncmp(position, "FF", 2))
		put_code(w, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "102541007", "feet-first");
}

/* Write the start of the acquisition, as Series Date and Time, too. */
static void fill_start(const struct pet_result *r, struct item_writer *w)
{
	item_put_text(w, TAG_SERIES_DATE, r->quantity.date);
	item_put_text(w, TAG_SERIES_TIME, r->quantity.time);
	item_put_text(w, TAG_ACQUISITION_DATE, r->quantity.date);
	item_put_text(w, TAG_ACQUISITION_TIME, r->quantity.time);
}

static const char *series_type(const struct pet_result *r)
{
	if (r->series.s->images.of == PET_GATES)
		return "GATED\\IMAGE";
	if (r->info->join)
		return "WHOLE BODY\\IMAGE";
	return r->n_frames > 0 ? "DYNAMIC\\IMAGE" : "STATIC\\IMAGE";
}

/* Of a dynamic, gated or whole-body series, each image replaces what differs: pet_result_fill_frame(). */
static void fill_quantity(const struct pet_result *r, struct item_writer *w)
{
	const struct pet_quantity *q = &r->quantity;

	item_put_text(w, TAG_SERIES_TYPE, series_type(r));
	item_put_int(w, TAG_NUMBER_OF_SLICES, r->info->plan->grid.n[2]);
	if (r->series.s->images.of == PET_GATES)
		pet_result_fill_gating(r, w);
	else if (r->n_frames > 0)
		item_put_int(w, TAG_NUMBER_OF_TIME_SLICES, r->n_frames);
	item_put_text(w, TAG_COUNTS_SOURCE, "EMISSION");
	item_put_text(w, TAG_UNITS, q->calibrated ? "BQML" : "CNTS");
	item_put_text(w, TAG_CORRECTED_IMAGE, q->corrected);
	item_put_text(w, TAG_DECAY_CORRECTION, q->decay);
	if (strcmp(q->decay, "NONE"))
		item_put_double(w, TAG_DECAY_FACTOR, q->decay_before > 0 ? q->decay_before : q->decay_factor);
	if (q->calibrated)
		item_put_double(w, TAG_DOSE_CALIBRATION_FACTOR, q->calibration);
	if (q->dead_time > 0)
		item_put_double(w, TAG_DEAD_TIME_FACTOR, q->dead_time);
	item_put_double(w, TAG_FRAME_REFERENCE_TIME, q->reference_ms);
	item_put_int(w, TAG_ACTUAL_FRAME_DURATION, lround(1000 * q->duration));
	item_put_double(w, TAG_RECONSTRUCTION_DIAMETER, 2 * r->info->plan->fov_radius);
}

/* Leave a Start DateTime of the data that is not valid out of the result. */
static void drop_injection(struct item_writer *root)
{
	struct item_writer item = {.item = dicom_item_at(root->item, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0),
				   .err = root->err,
				   .rc = root->rc};
	char value[DICOM_UID_SIZE] = "";

	if (!item.item || dicom_get_text(item.item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, value, sizeof(value), NULL) != 1 ||
	    pet_facts_says_injection(value))
		return;
	item_put_empty(&item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME);
	item_end(root, &item);
}

void pet_result_fill_header(const struct pet_result *r, struct item_writer *root)
{
	result_series_fill_header(&r->series, r->is_signed, root);
	fill_patient_orientation(r, root);
	fill_start(r, root);
	fill_quantity(r, root);
	drop_injection(root);
	pet_facts_complete_injection(root);
	result_series_fill_window(0, r->largest, root);
}
