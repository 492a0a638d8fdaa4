/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet_header.c - write the standard attributes of a simulated acquisition. Name and ID of the patient show that it is
 * not a real person. */
#include <math.h>
#include <stdio.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "dicom/pixels/pixels.h"
#include "node/base/version.h"
#include "node/simulate/simulate_pet.h"
#include "node/sinogram/sinogram.h"

static void fill_fixed(struct item_writer *w)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} entries[] = {
		{TAG_STUDY_DATE, SIMULATE_PET_DATE},
		{TAG_STUDY_TIME, SIMULATE_PET_INJECTED},
		{TAG_SERIES_DATE, SIMULATE_PET_DATE},
		{TAG_SERIES_TIME, SIMULATE_PET_START},
		{TAG_ACQUISITION_DATE, SIMULATE_PET_DATE},
		{TAG_ACQUISITION_TIME, SIMULATE_PET_START},
		{TAG_CONTENT_DATE, SIMULATE_PET_DATE},
		{TAG_CONTENT_TIME, SIMULATE_PET_CONTENT},
		{TAG_ACCESSION_NUMBER, "SIM2"},
		{TAG_MODALITY, "PT"},
		{TAG_REFERRING_PHYSICIAN_NAME, ""},
		{TAG_INSTITUTION_NAME, "SIMULATED"},
		{TAG_STATION_NAME, "SIMULATOR"},
		{TAG_PATIENT_NAME, "TOMONODE^PHANTOM"},
		{TAG_PATIENT_ID, "TOMONODE-PHANTOM"},
		{TAG_PATIENT_BIRTH_DATE, "19601130"},
		{TAG_PATIENT_SEX, "F"},
		{TAG_STUDY_ID, "2"},
		{TAG_SERIES_NUMBER, "1"},
		{TAG_SERIES_DESCRIPTION, "simulated sinograms"},
		{TAG_INSTANCE_NUMBER, "1"},
		{TAG_SOFTWARE_VERSIONS, "tomonode " TOMONODE_VERSION},
		{TAG_DEVICE_SERIAL_NUMBER, "SIMULATED"},
		{TAG_BODY_PART_EXAMINED, "ABDOMEN"},
		{TAG_POSITION_REFERENCE_INDICATOR, ""},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		item_put_text(w, entries[i].tag, entries[i].text);
}

static void fill_radiopharmaceutical(const struct simulate_pet *s, struct item_writer *root)
{
	struct item_writer f = item_begin(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);

	item_put_text(&f, TAG_RADIOPHARMACEUTICAL, "Fluorodeoxyglucose");
	item_put_text(&f, DICOM_TAG(0x0018, 0x1070), "Intravenous"); /* Radiopharmaceutical Route */
	item_put_double(&f, DICOM_TAG(0x0018, 0x1071), 0);	     /* Radiopharmaceutical Volume, ml */
	item_put_text(&f, TAG_RADIOPHARMACEUTICAL_START_TIME, SIMULATE_PET_INJECTED);
	item_put_text(&f, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, SIMULATE_PET_DATE SIMULATE_PET_INJECTED);
	item_put_double(&f, TAG_RADIONUCLIDE_TOTAL_DOSE, s->dose);
	item_put_double(&f, TAG_RADIONUCLIDE_HALF_LIFE, SIMULATE_PET_HALF_LIFE);
	item_put_double(&f, TAG_RADIONUCLIDE_POSITRON_FRACTION, 0.9673);
	item_put_code(&f, DICOM_TAG(0x0054, 0x0300), "77004003", "SCT", "^18^Fluorine");
	item_put_code(&f, TAG_RADIOPHARMACEUTICAL_CODE, "35321007", "SCT", "Fluorodeoxyglucose F^18^");
	item_end(root, &f);
}

/* Effects that are not simulated count as already corrected. */
static void fill_corrections(const struct simulate_pet *s, struct item_writer *root)
{
	char text[64];

	snprintf(text, sizeof(text), "NORM\\DTIM\\SCAT%s%s", s->o.attenuation ? "" : "\\ATTN", s->o.randoms > 0 ? "" : "\\RAN");
	item_put_text(root, TAG_CORRECTED_IMAGE, text);
}

int simulate_pet_header(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *path, struct err *err)
{
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	char uid[DICOM_UID_SIZE];

	simulate_pet_uid(s, "header", uid);
	root.rc = dicom_new(CLASS_RAW_DATA, uid, &file, err);
	if (root.rc < 0)
		return root.rc;
	root.item = dicom_root(file);
	fill_fixed(&root);
	simulate_pet_uid(s, "series", uid);
	item_put_text(&root, TAG_STUDY_INSTANCE_UID, s->study);
	item_put_text(&root, TAG_SERIES_INSTANCE_UID, uid);
	item_put_text(&root, TAG_FRAME_OF_REFERENCE_UID, s->frame_of_reference);
	item_put_text(&root, TAG_MANUFACTURER, s->manufacturer);
	item_put_text(&root, TAG_MANUFACTURER_MODEL_NAME, s->model);
	item_put_text(&root, TAG_PATIENT_POSITION, s->o.position);
	item_put_double(&root, TAG_PATIENT_WEIGHT, s->weight);
	item_put_double(&root, DICOM_TAG(0x0010, 0x1020), 2e-3 * s->phantom->attenuation->shapes[0].r[2]); /* Patient's Size, m */
	item_put_int(&root, TAG_ACTUAL_FRAME_DURATION, lround(1000 * SIMULATE_PET_DURATION));
	item_put_double(&root, TAG_DOSE_CALIBRATION_FACTOR, known->calibration);
	fill_corrections(s, &root);
	fill_radiopharmaceutical(s, &root);
	item_put_empty(&root, TAG_ACQUISITION_CONTEXT_SEQUENCE);
	if (root.rc == 0)
		root.rc = dicom_write(path, file, err);
	dicom_close(file);
	return root.rc;
}
