/* SPDX-License-Identifier: Apache-2.0 */
/* exam_facts.c - determine from the header of an instance whether it holds projections in a supported encoding. The pixel data
 * are not read. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/tomo/exam_internal.h"

static bool text_is(const struct dicom_item *root, uint32_t tag, const char *want)
{
	char text[65];

	return dicom_get_text(root, tag, text, sizeof(text), NULL) == 1 && !strcasecmp(text, want);
}

static bool from_hologic(const struct dicom_item *root)
{
	char text[65] = "";

	dicom_get_text(root, TAG_MANUFACTURER, text, sizeof(text), NULL);
	return !strncasecmp(text, "HOLOGIC", 7) || dicom_has(root, DICOM_TAG(0x7E01, 0x0010));
}

/* Return whether the model is a mammography system: such a system makes no CT images, only slices of tomosynthesis in their
 * class. */
static bool from_mammography(const struct dicom_item *root)
{
	static const char *const models[] = {"mammomat", "senograph", "senoclaire", "selenia"};
	char text[65] = "";

	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, text, sizeof(text), NULL);
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strcasestr(text, models[i]))
			return true;
	return from_hologic(root);
}

/* Describe objects of tomosynthesis in standard classes of something else: projections as Secondary Capture of modality MG with
 * private data (Hologic), slices as CT images (Hologic, Siemens). NULL for screen shots of other manufacturers' mammograms and
 * ordinary CT images of breasts. */
static const char *disguised_format(const struct dicom_item *root, const char *sop_class)
{
	bool mammography = text_is(root, TAG_MODALITY, "MG");

	if (!strcmp(sop_class, CLASS_SECONDARY_CAPTURE) && mammography && sco_content_of(root) == SCO_SLICES)
		return "Secondary Capture of modality MG (Hologic SCO) that contains slices: already reconstructed by the "
		       "modality; `tomonode export` converts them";
	if (!strcmp(sop_class, CLASS_SECONDARY_CAPTURE) && mammography && from_hologic(root))
		return "Secondary Capture of modality MG (Hologic SCO): the projections are stored in an undocumented private "
		       "format";
	if (!strcmp(sop_class, CLASS_CT) &&
	    (mammography || from_mammography(root) || dicom_item_count(root, TAG_VIEW_CODE_SEQUENCE) > 0))
		return "tomosynthesis slices stored as CT Image: the mammography system has already reconstructed them; send its "
		       "projections instead";
	return NULL;
}

/* Recognise a mammogram whose Image Type (PS3.3 C.8.11.7.1.4) shows that it is not a tomosynthesis projection: an image of a
 * stereotactic pair (value 3, without the values that tomosynthesis biopsy also uses), or a computed image (value 4). Value 3 is
 * empty in conventional mammograms and in projections older than the term TOMO_PROJ, so that an empty value is ignored. */
static void other_mammogram(const struct dicom_item *root, char *ret_reason, size_t size)
{
	static const char *const stereotactic[] = {"STEREO_SCOUT",    "STEREO_MINUS",	  "STEREO_PLUS",    "PREFIRE_MINUS",
						   "PREFIRE_PLUS",    "POSTFIRE_MINUS",	  "POSTFIRE_PLUS",  "POSTBIOPSY_MINUS",
						   "POSTBIOPSY_PLUS", "POSTMARKER_MINUS", "POSTMARKER_PLUS"};
	char text[65];

	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 2, text, sizeof(text), NULL) == 1)
		for (size_t i = 0; i < sizeof(stereotactic) / sizeof(stereotactic[0]); i++)
			if (!strcmp(text, stereotactic[i])) {
				snprintf(ret_reason, size,
					 "Image Type (0008,0008) is %s: a stereotactic image, not a tomosynthesis projection",
					 text);
				return;
			}
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 3, text, sizeof(text), NULL) == 1 && !strcmp(text, "GENERATED_2D"))
		snprintf(ret_reason, size, "Image Type (0008,0008) is GENERATED_2D: computed, not a tomosynthesis projection");
}

/* Describe mammograms of classes that are not raw projections; "": another class. */
static const char *describe_processed(const char *sop_class)
{
	if (!strcmp(sop_class, CLASS_MG_PRESENTATION))
		return "Digital Mammography X-Ray Image For Presentation: processed for display, intensities cannot be recovered";
	if (!strcmp(sop_class, CLASS_TOMOSYNTHESIS))
		return "Breast Tomosynthesis Image: a volume that is already reconstructed";
	return "";
}

bool exam_class(const struct dicom_item *root, enum exam_source *ret_source, bool *ret_refused, char *reason, size_t size)
{
	char sop_class[DICOM_UID_SIZE] = "";
	const char *hidden;

	*ret_refused = false;
	reason[0] = '\0';
	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	if (!strcmp(sop_class, CLASS_MG_PROCESSING)) {
		*ret_source = EXAM_MG_SERIES;
		other_mammogram(root, reason, size);
		return !reason[0];
	}
	if (!strcmp(sop_class, CLASS_PROJECTION_PROCESSING) || !strcmp(sop_class, CLASS_PROJECTION_PRESENTATION)) {
		*ret_source = EXAM_BREAST_PROJECTION;
		return true;
	}
	if (!strcmp(sop_class, CLASS_SECONDARY_CAPTURE) && text_is(root, TAG_MODALITY, "MG") &&
	    sco_content_of(root) == SCO_PROJECTIONS) {
		*ret_source = EXAM_SCO;
		return true;
	}
	hidden = disguised_format(root, sop_class);
	*ret_refused = hidden != NULL;
	snprintf(reason, size, "%s", hidden ? hidden : describe_processed(sop_class));
	return false;
}

/* Read (0020,1002) or (0018,1495); a number below 2 is ignored for tomosynthesis. */
static long expected_count(const struct header *h)
{
	static const uint32_t tags[] = {TAG_IMAGES_IN_ACQUISITION, TAG_NUMBER_OF_TOMOSYNTHESIS_SOURCE_IMAGES};
	long n;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (header_long(h, tags[i], 0, &n, NULL) == 1 && n >= 2)
			return n;
	return 0;
}

static double first_angle(const struct header *h)
{
	static const uint32_t tags[] = {TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, TAG_POSITIONER_PRIMARY_ANGLE,
					TAG_DETECTOR_SECONDARY_ANGLE};
	double angle;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (header_double(h, tags[i], 0, &angle, NULL) == 1)
			return angle;
	return NAN;
}

bool exam_facts_of(const struct dicom_file *file, struct exam_facts *ret_facts)
{
	struct header h = {.root = dicom_root((struct dicom_file *)file), .frame = -1};
	struct exam_facts f = {.frames = 1, .angle = NAN};
	enum exam_source source;
	bool ours = exam_class(h.root, &source, &f.refused, f.reason, sizeof(f.reason));

	if (ours) {
		header_long(&h, TAG_NUMBER_OF_FRAMES, 0, &f.frames, NULL);
		h.frame = source == EXAM_MG_SERIES ? -1 : 0;
		f.expected = source == EXAM_MG_SERIES ? expected_count(&h) : 1;
		f.angle = first_angle(&h);
		f.laterality[0] = header_laterality(&h);
		header_view(&h, f.view, sizeof(f.view));
		if (source == EXAM_MG_SERIES) {
			dicom_get_text(h.root, TAG_MANUFACTURER, f.manufacturer, sizeof(f.manufacturer), NULL);
			dicom_get_text(h.root, TAG_MANUFACTURER_MODEL_NAME, f.model, sizeof(f.model), NULL);
			dicom_get_text(h.root, TAG_DEVICE_SERIAL_NUMBER, f.serial, sizeof(f.serial), NULL);
			exposure_read(&h, &f.exposure);
		}
	}
	*ret_facts = f;
	return ours;
}
