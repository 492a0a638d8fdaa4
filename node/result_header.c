/* result_header.c - patient, study, series, equipment and image of the result, at the root of its data set.
 *
 * What the source says about patient, study, order and place is copied byte for byte, with its character set. What is new is the
 * series, the equipment (this program, which made this object; the modality is in Contributing Equipment) and the image. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/result_parts.h"
#include "node/version.h"

static const uint32_t copied[] = {
	TAG_SPECIFIC_CHARACTER_SET, TAG_TIMEZONE_OFFSET_FROM_UTC, DICOM_TAG(0x0008, 0x0051), /* Issuer of Accession Number */
	DICOM_TAG(0x0008, 0x1030),							     /* Study Description */
	DICOM_TAG(0x0008, 0x1032),							     /* Procedure Code */
	DICOM_TAG(0x0008, 0x1048),							     /* Physicians of Record */
	DICOM_TAG(0x0008, 0x1050),							     /* Performing Physician's Name */
	DICOM_TAG(0x0008, 0x1070),							     /* Operators' Name */
	DICOM_TAG(0x0008, 0x1080),							     /* Admitting Diagnoses Description */
	DICOM_TAG(0x0008, 0x1110),							     /* Referenced Study */
	DICOM_TAG(0x0008, 0x1111), /* Referenced Performed Procedure Step */
	DICOM_TAG(0x0010, 0x0021), /* Issuer of Patient ID */
	DICOM_TAG(0x0010, 0x0024), /* Issuer of Patient ID Qualifiers */
	DICOM_TAG(0x0010, 0x0032), /* Patient's Birth Time */
	DICOM_TAG(0x0010, 0x1002), /* Other Patient IDs */
	DICOM_TAG(0x0010, 0x1020), /* Patient's Size */
	DICOM_TAG(0x0010, 0x1030), /* Patient's Weight */
	DICOM_TAG(0x0012, 0x0010), /* Clinical Trial Sponsor Name */
	DICOM_TAG(0x0012, 0x0020), /* Clinical Trial Protocol ID */
	DICOM_TAG(0x0012, 0x0021), /* Clinical Trial Protocol Name */
	DICOM_TAG(0x0012, 0x0030), /* Clinical Trial Site ID */
	DICOM_TAG(0x0012, 0x0031), /* Clinical Trial Site Name */
	DICOM_TAG(0x0012, 0x0040), /* Clinical Trial Subject ID */
	DICOM_TAG(0x0012, 0x0042), /* Clinical Trial Subject Reading ID */
	DICOM_TAG(0x0012, 0x0062), /* Patient Identity Removed */
	DICOM_TAG(0x0012, 0x0063), /* De-identification Method */
	DICOM_TAG(0x0012, 0x0064), /* De-identification Method Code */
	DICOM_TAG(0x0018, 0x1030), /* Protocol Name */
	DICOM_TAG(0x0040, 0x0244), /* Performed Procedure Step Start Date */
	DICOM_TAG(0x0040, 0x0245), /* Performed Procedure Step Start Time */
	DICOM_TAG(0x0040, 0x0253), /* Performed Procedure Step ID */
	DICOM_TAG(0x0040, 0x0254), /* Performed Procedure Step Description */
	DICOM_TAG(0x0040, 0x0260), /* Performed Protocol Code */
	DICOM_TAG(0x0040, 0x0275), /* Request Attributes */
	TAG_STUDY_INSTANCE_UID,	    TAG_INSTITUTION_NAME,	  TAG_INSTITUTION_ADDRESS,    TAG_INSTITUTIONAL_DEPARTMENT_NAME,
	TAG_PARTIAL_VIEW,	    TAG_PARTIAL_VIEW_DESCRIPTION, TAG_BREAST_IMPLANT_PRESENT,
};

/* Type 2: there, and empty where the source has none. */
static const uint32_t copied_or_empty[] = {
	TAG_PATIENT_NAME, TAG_PATIENT_ID,	TAG_PATIENT_BIRTH_DATE,	      TAG_PATIENT_SEX, TAG_STUDY_DATE,
	TAG_STUDY_TIME,	  TAG_ACCESSION_NUMBER, TAG_REFERRING_PHYSICIAN_NAME, TAG_STUDY_ID,
};

/* "047Y" out of two dates YYYYMMDD; empty: they say nothing sensible. */
static void age_text(const char *birth, const char *on, char *ret_text, size_t size)
{
	long a = strtol(birth, NULL, 10), b = strtol(on, NULL, 10), years = (b - a) / 10000;

	ret_text[0] = '\0';
	if (strlen(birth) == 8 && strlen(on) == 8 && a > 0 && b > a && years < 130)
		snprintf(ret_text, size, "%03ldY", years);
}

static void fill_age(const struct result *r, struct fill *f)
{
	char birth[65], on[65], age[24];

	fill_copy(f, TAG_PATIENT_AGE, r->source);
	if (f->rc != 0) /* copied, or failed */
		return;
	if (dicom_get_text(r->source, TAG_PATIENT_BIRTH_DATE, birth, sizeof(birth), NULL) != 1 ||
	    dicom_get_text(r->source, TAG_STUDY_DATE, on, sizeof(on), NULL) != 1)
		return;
	age_text(birth, on, age, sizeof(age));
	if (age[0])
		fill_text(f, TAG_PATIENT_AGE, age);
}

const char *result_image_type(const struct result *r)
{
	/* Of a mammogram PS3.3 C.8.11.7.1.4 names value 4 of a 2-D view; of X-Ray 3D it is NONE (C.8.21.1.1.1.4). */
	return r->kind == RESULT_SYNTHETIC ? "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D"
					   : "DERIVED\\PRIMARY\\TOMOSYNTHESIS\\NONE";
}

const char *result_volumetric_properties(const struct result *r)
{
	return r->kind == RESULT_SLICES ? "VOLUME" : "SAMPLED"; /* PS3.3 C.8.21.1.1.2, notes 1 to 3 */
}

const char *result_calculation_technique(const struct result *r)
{
	/* PS3.3 C.8.21.1.1.3, notes 1 and 2 */
	return r->kind == RESULT_SLABS && r->info->protocol->slab_mode == SLAB_MAXIMUM ? "MAX_IP" : "TOMOSYNTHESIS";
}

/* The source's series number with a digit for the view behind it: right and left CC, right and left MLO. Each kind has a thousand
 * of its own. */
static void fill_series(const struct result *r, struct fill *f)
{
	static const char *const what[] = {
		[RESULT_SLICES] = "tomosynthesis", [RESULT_SLABS] = "slabs", [RESULT_SYNTHETIC] = "synthetic view"};
	const struct protocol_conf *p = r->info->protocol;
	char description[128];
	long number = 0;
	int view = (strcmp(r->exam->view, "CC") ? 3 : 1) + (r->exam->laterality == 'L');

	if (dicom_get_int(r->source, TAG_SERIES_NUMBER, 0, &number, NULL) != 1 || number < 0 || number > 10000000)
		number = 0;
	fill_int(f, TAG_SERIES_NUMBER, number * 10 + 1000 * (1 + (int)r->kind) + view);
	if (p->description[0] && r->kind == RESULT_SLICES)
		snprintf(description, sizeof(description), "%.64s", p->description);
	else if (p->description[0])
		snprintf(description, sizeof(description), "%.48s %s", p->description, what[r->kind]);
	else
		snprintf(description, sizeof(description), "%c %s %s %.30s", r->exam->laterality, r->exam->view, what[r->kind],
			 p->name);
	fill_text(f, TAG_SERIES_DESCRIPTION, description);
	fill_text(f, TAG_SERIES_INSTANCE_UID, r->series);
	fill_text(f, TAG_MODALITY, "MG");
	fill_text(f, TAG_BODY_PART_EXAMINED, "BREAST");
}

/* Software has no serial number: the host it runs on stands for it. */
static void fill_equipment(struct fill *f)
{
	char host[HOST_NAME_MAX + 1] = "", station[17], creator[HOST_NAME_MAX + 64];
	char uid[DICOM_UID_SIZE];

	if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
		snprintf(host, sizeof(host), "unknown");
	snprintf(station, sizeof(station), "%.16s", host);
	snprintf(creator, sizeof(creator), "tomonode instance creator|%s", host);
	dicom_uid_from_text(creator, uid);
	fill_text(f, TAG_MANUFACTURER, "tomonode");
	fill_text(f, TAG_MANUFACTURER_MODEL_NAME, "tomonode");
	fill_text(f, TAG_DEVICE_SERIAL_NUMBER, host);
	fill_text(f, TAG_SOFTWARE_VERSIONS, TOMONODE_VERSION "\\" TOMONODE_REVISION);
	fill_text(f, TAG_STATION_NAME, station);
	fill_text(f, TAG_INSTANCE_CREATOR_UID, uid);
}

static void fill_view(const struct result *r, struct fill *f)
{
	const struct dicom_item *from = dicom_item_at(r->source, TAG_VIEW_CODE_SEQUENCE, 0);
	bool cc = !strcmp(r->exam->view, "CC");
	struct dicom_item *code;

	fill_code(f, TAG_VIEW_CODE_SEQUENCE, cc ? "399162004" : "399368009", "SCT",
		  cc ? "cranio-caudal" : "medio-lateral oblique");
	if (f->rc < 0)
		return;
	code = dicom_item_at(f->item, TAG_VIEW_CODE_SEQUENCE, 0);
	if (from && dicom_item_count(from, TAG_VIEW_MODIFIER_CODE_SEQUENCE) > 0)
		f->rc = dicom_copy(from, TAG_VIEW_MODIFIER_CODE_SEQUENCE, code, f->err);
	else
		f->rc = dicom_put_empty(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE, f->err);
}

/* What slices, slabs and the synthetic view have in common. */
static void fill_image(const struct result *r, struct fill *f)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {
		{TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2"},
		{TAG_PRESENTATION_LUT_SHAPE, "IDENTITY"},
		{TAG_BURNED_IN_ANNOTATION, "NO"},
		{TAG_RECOGNIZABLE_VISUAL_FEATURES, "NO"},
		{TAG_LOSSY_IMAGE_COMPRESSION, "00"}, /* JPEG-LS is lossless, too */
	};
	static const struct {
		uint32_t tag;
		long value;
	} numbers[] = {
		{TAG_PIXEL_REPRESENTATION, 0}, {TAG_SAMPLES_PER_PIXEL, 1}, {TAG_BITS_ALLOCATED, 16},
		{TAG_BITS_STORED, 16},	       {TAG_HIGH_BIT, 15},	   {TAG_INSTANCE_NUMBER, 1},
	};

	fill_text(f, TAG_IMAGE_TYPE, result_image_type(r));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		fill_text(f, texts[i].tag, texts[i].text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		fill_int(f, numbers[i].tag, numbers[i].value);
	fill_int(f, TAG_ROWS, r->info->plan->grid.n[1]);
	fill_int(f, TAG_COLUMNS, r->info->plan->grid.n[0]);
	fill_text(f, TAG_CONTENT_DATE, r->date);
	fill_text(f, TAG_CONTENT_TIME, r->time);
	fill_text(f, TAG_INSTANCE_CREATION_DATE, r->date);
	fill_text(f, TAG_INSTANCE_CREATION_TIME, r->time);
	fill_empty(f, TAG_ACQUISITION_CONTEXT_SEQUENCE);
}

static void fill_volume(const struct result *r, struct fill *f)
{
	fill_text(f, TAG_PIXEL_PRESENTATION, "MONOCHROME");
	fill_text(f, TAG_VOLUMETRIC_PROPERTIES, result_volumetric_properties(r));
	fill_text(f, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE, result_calculation_technique(r));
	fill_text(f, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	fill_int(f, TAG_NUMBER_OF_FRAMES, r->n_planes);
	fill_text(f, TAG_FRAME_OF_REFERENCE_UID, r->frame_of_reference);
	fill_empty(f, TAG_POSITION_REFERENCE_INDICATOR);
	fill_copy(f, TAG_POSITION_REFERENCE_INDICATOR, r->source);
}

void result_fill_header(const struct result *r, struct fill *root)
{
	fill_copies(root, r->source, copied, sizeof(copied) / sizeof(copied[0]));
	for (size_t i = 0; i < sizeof(copied_or_empty) / sizeof(copied_or_empty[0]); i++) {
		fill_empty(root, copied_or_empty[i]);
		fill_copy(root, copied_or_empty[i], r->source);
	}
	fill_age(r, root);
	fill_series(r, root);
	fill_equipment(root);
	fill_view(r, root);
	fill_image(r, root);
	if (r->kind == RESULT_SYNTHETIC)
		result_fill_view(r, root);
	else
		fill_volume(r, root);
}
