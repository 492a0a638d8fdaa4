/* pet_result_header.c - the header of a PET Image (PS3.3 A.21): series, isotope, plane, pixels.
 *
 * - Series Date and Time are when the acquisition began, because that is what decay is corrected to and what SUV viewers take;
 *   the reconstruction's own clock is in Content Date and Time, Instance Creation and Contribution DateTime.
 * - How the patient lies is told by codes: PatientPosition (0018,5100) may not stand beside them.
 */
#include <math.h>
#include <string.h>

#include "node/result/pet_result_parts.h"
#include "node/result/result_series.h"

/* As the source has them: isotope and dose with their codes, the place in the body, the detection. */
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

/* Type 2. */
static const uint32_t copied_or_empty[] = {
	TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE,
	TAG_TYPE_OF_DETECTOR_MOTION,
	TAG_COLLIMATOR_TYPE,
	TAG_POSITION_REFERENCE_INDICATOR,
};

/* PS3.16 CID 20: how the patient lies, by the second part of PatientPosition. */
static const struct lie {
	const char *position, *code, *meaning;
} lies[] = {
	{"S", "40199007", "supine"},
	{"P", "1240000", "prone"},
	{"DR", "102535000", "right lateral decubitus"},
	{"DL", "102536004", "left lateral decubitus"},
};

static void fill_code_into(struct fill *f, uint32_t sequence, const char *value, const char *meaning)
{
	fill_code(f, sequence, value, "SCT", meaning);
}

/* The source's codes, or those that its PatientPosition means. */
static void fill_patient_orientation(const struct pet_result *r, struct fill *f)
{
	const char *position = r->s->facts.patient_position;
	struct fill item;

	if (dicom_item_count(r->source, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE) > 0) {
		fill_copy(f, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, r->source);
	} else {
		fill_empty(f, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE);
		for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			if (strlen(position) < 3 || strcmp(position + 2, lies[i].position))
				continue;
			fill_code_into(f, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, "102538003", "recumbent");
			item = *f;
			if (f->rc >= 0)
				item.item = dicom_item_at(f->item, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, 0);
			fill_code_into(&item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, lies[i].code, lies[i].meaning);
			fill_join(f, &item);
		}
	}
	if (dicom_item_count(r->source, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE) > 0) {
		fill_copy(f, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, r->source);
		return;
	}
	fill_empty(f, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE);
	if (!strncmp(position, "HF", 2))
		fill_code_into(f, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "102540008", "headfirst");
	else if (!strncmp(position, "FF", 2))
		fill_code_into(f, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "102541007", "feet-first");
}

static void fill_series(const struct pet_result *r, struct fill *f)
{
	const struct result_series series = {r->source, r->info->protocol, "PT", "PET", r->series};

	result_series_fill(&series, f);
	fill_text(f, TAG_SERIES_DATE, r->quantity.date);
	fill_text(f, TAG_SERIES_TIME, r->quantity.time);
	fill_text(f, TAG_ACQUISITION_DATE, r->quantity.date);
	fill_text(f, TAG_ACQUISITION_TIME, r->quantity.time);
}

static void fill_quantity(const struct pet_result *r, struct fill *f)
{
	const struct pet_quantity *q = &r->quantity;

	fill_text(f, TAG_SERIES_TYPE, "STATIC\\IMAGE");
	fill_int(f, TAG_NUMBER_OF_SLICES, r->info->plan->grid.n[2]);
	fill_text(f, TAG_COUNTS_SOURCE, "EMISSION");
	fill_text(f, TAG_UNITS, q->calibrated ? "BQML" : "CNTS");
	fill_text(f, TAG_CORRECTED_IMAGE, q->corrected);
	fill_text(f, TAG_DECAY_CORRECTION, q->decay);
	if (strcmp(q->decay, "NONE"))
		fill_double(f, TAG_DECAY_FACTOR, q->decay_before > 0 ? q->decay_before : q->decay_factor);
	if (q->calibrated)
		fill_double(f, TAG_DOSE_CALIBRATION_FACTOR, q->calibration);
	fill_double(f, TAG_FRAME_REFERENCE_TIME, q->reference_ms);
	fill_int(f, TAG_ACTUAL_FRAME_DURATION, lround(1000 * q->duration));
	fill_double(f, TAG_RECONSTRUCTION_DIAMETER, 2 * r->info->plan->fov_radius);
}

static void fill_image(const struct pet_result *r, struct fill *f)
{
	/* computed from raw data, not from other images (PS3.3 C.7.6.1.1.2) */
	result_series_fill_image("ORIGINAL\\PRIMARY", &r->now, f);
	result_slices_fill_plane(&r->view, &r->info->plan->grid, r->is_signed, f);
	fill_double(f, TAG_RESCALE_INTERCEPT, 0);
	result_series_fill_window(0, r->largest, f);
}

void pet_result_fill_header(const struct pet_result *r, struct fill *root)
{
	provenance_fill_patient(r->source, root);
	fill_copies(root, r->source, copied, sizeof(copied) / sizeof(copied[0]));
	for (size_t i = 0; i < sizeof(copied_or_empty) / sizeof(copied_or_empty[0]); i++) {
		fill_empty(root, copied_or_empty[i]);
		fill_copy(root, copied_or_empty[i], r->source);
	}
	fill_patient_orientation(r, root);
	fill_series(r, root);
	provenance_fill_equipment(root);
	fill_quantity(r, root);
	fill_image(r, root);
}

void pet_result_fill_slice(const struct pet_result *r, int index, double slope, struct fill *root)
{
	const struct grid *g = &r->info->plan->grid;
	char uid[DICOM_UID_SIZE];
	double position[3];

	slice_view_position(&r->view, r->s->centre, r->s->axis, g, index, position);
	pet_result_uid(r->s, r->info->protocol, slice_view_slice(&r->view, g, index), uid);
	fill_text(root, TAG_SOP_INSTANCE_UID, uid);
	fill_int(root, TAG_INSTANCE_NUMBER, index + 1);
	fill_int(root, TAG_IMAGE_INDEX, index + 1);
	result_slices_fill_place(&r->view, position, root);
	fill_double(root, TAG_RESCALE_SLOPE, slope);
}
