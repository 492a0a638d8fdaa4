/* exam_facts.c - what one instance is, from its header alone: the kind of case it belongs to, or why it belongs to none.
 *
 * Three answers: a projection that we read; an encoding that we know and do not read (refused: kept apart, with the reason);
 * anything else (ignored). The pixel data are not touched. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/sinogram/sinogram.h"
#include "node/tomo/exam_internal.h"

#define STANDARD_ROOT "1.2.840.10008."

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

/* Hologic's own formats wear standard classes: projections as Secondary Capture of modality MG with a private payload ("SCO"),
 * slices as CT images ("CTO"). Screen shots of other makers' mammograms and breasts in an ordinary CT are neither. */
static const char *hologic_format(const struct dicom_item *root, const char *sop_class)
{
	bool mammography = text_is(root, TAG_MODALITY, "MG");

	if (!strcmp(sop_class, CLASS_SECONDARY_CAPTURE) && mammography && from_hologic(root))
		return "Secondary Capture of modality MG (Hologic SCO): the projections lie in a closed private format";
	if (!strcmp(sop_class, CLASS_CT) &&
	    (mammography || from_hologic(root) || dicom_item_count(root, TAG_VIEW_CODE_SEQUENCE) > 0))
		return "CT Image Storage that carries breast slices (Hologic CTO): reconstructed elsewhere, in disguise";
	return NULL;
}

/* A mammogram whose Image Type (PS3.3 C.8.11.7.1.4) calls it something else than a tomosynthesis projection: an image of a
 * stereotactic pair (value 3; those that tomosynthesis biopsy knows, too, say nothing), or one that was computed (value 4). An
 * empty value 3 is that of conventional mammograms, and of projections that are older than the term TOMO_PROJ: it decides
 * nothing. */
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
					 "Image Type (0008,0008) is %s: a stereotactic image, no projection of a "
					 "tomosynthesis",
					 text);
				return;
			}
	if (dicom_get_text_at(root, TAG_IMAGE_TYPE, 3, text, sizeof(text), NULL) == 1 && !strcmp(text, "GENERATED_2D"))
		snprintf(ret_reason, size, "Image Type (0008,0008) is GENERATED_2D: computed, no projection of a tomosynthesis");
}

/* Raw Data Storage that is no sinogram object of ours. */
static void raw_data(const struct dicom_item *root, char *ret_reason, size_t size)
{
	char maker[65] = "", model[65] = "";

	dicom_get_text(root, TAG_MANUFACTURER, maker, sizeof(maker), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	snprintf(ret_reason, size,
		 "Raw Data Storage of %s%s%s without the private block of sinogram objects: a format that is not "
		 "known here",
		 maker[0] ? maker : "an unnamed maker", model[0] ? " " : "", model);
}

const char *exam_class(const struct dicom_item *root, enum exam_source *ret_source, bool *ret_refused, char *reason, size_t size)
{
	char sop_class[DICOM_UID_SIZE] = "";
	const char *hidden, *vendor;

	*ret_refused = false;
	reason[0] = '\0';
	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	hidden = hologic_format(root, sop_class);
	if (!strcmp(sop_class, CLASS_MG_PROCESSING)) {
		*ret_source = EXAM_MG_SERIES;
		other_mammogram(root, reason, size);
	} else if (!strcmp(sop_class, CLASS_PROJECTION_PROCESSING) || !strcmp(sop_class, CLASS_PROJECTION_PRESENTATION)) {
		*ret_source = EXAM_BREAST_PROJECTION;
	} else if (hidden) {
		*ret_refused = true;
		snprintf(reason, size, "%s", hidden);
	} else if (!strcmp(sop_class, CLASS_RAW_DATA)) {
		*ret_refused = true;
		raw_data(root, reason, size);
	} else if (sinogram_vendor(sop_class, &vendor)) {
		*ret_refused = true;
		snprintf(reason, size, "%s", vendor);
	} else if (sop_class[0] && strncmp(sop_class, STANDARD_ROOT, strlen(STANDARD_ROOT)) != 0) {
		*ret_refused = true;
		snprintf(reason, size, "private SOP class %s: a vendor's raw data, whose format is closed", sop_class);
	} else if (!strcmp(sop_class, CLASS_MG_PRESENTATION)) {
		snprintf(reason, size,
			 "Digital Mammography X-Ray Image For Presentation: processed for display, intensities cannot be "
			 "recovered");
	} else if (!strcmp(sop_class, CLASS_TOMOSYNTHESIS)) {
		snprintf(reason, size, "Breast Tomosynthesis Image: a volume that is reconstructed already");
	} else {
		snprintf(reason, size, "%s (%s): no projections to reconstruct", dicom_uid_name(sop_class), sop_class);
	}
	return reason;
}

/* (0020,1002) or (0018,1495); a count below 2 says nothing about a tomosynthesis. */
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

static int read_uids(const struct dicom_item *root, struct exam_facts *f, struct err *err)
{
	struct {
		uint32_t tag;
		char *uid;
		bool needed;
	} uids[] = {
		{TAG_SOP_CLASS_UID, f->sop_class, true},
		{TAG_SOP_INSTANCE_UID, f->sop_instance, true},
		{TAG_STUDY_INSTANCE_UID, f->study, true},
		{TAG_SERIES_INSTANCE_UID, f->series, true},
		{TAG_FRAME_OF_REFERENCE_UID, f->frame_of_reference, false},
	};

	for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		int found = dicom_get_text(root, uids[i].tag, uids[i].uid, DICOM_UID_SIZE, err);

		if (found < 0)
			return found;
		if (!found && uids[i].needed)
			return err_set(err, EBADMSG, "%s is missing", tag_text(uids[i].tag));
		if (uids[i].uid[strspn(uids[i].uid, "0123456789.")])
			return err_set(err, EBADMSG, "%s is '%s', which is no UID", tag_text(uids[i].tag), uids[i].uid);
	}
	return 0;
}

/* 1: a sinogram object; 0: none; negative: one that is broken. */
static int sinogram_case(const struct dicom_file *file, struct exam_facts *f, struct err *err)
{
	struct sinogram_facts s;
	int rc = strcmp(f->sop_class, CLASS_RAW_DATA) ? 0 : sinogram_facts_of(file, &s, err);

	if (rc <= 0)
		return rc;
	snprintf(f->kind, sizeof(f->kind), "%s", config_kind_name(s.role == SINOGRAM_LINES ? KIND_PARALLEL : KIND_PET));
	f->expected = s.instances;
	f->frames = 1;
	return 1;
}

int exam_read_facts(const char *path, struct exam_facts *ret_facts, struct err *err)
{
	struct exam_facts f = {.angle = NAN};
	struct dicom_file *file = NULL;
	enum exam_source source = 0;
	struct header h;
	char laterality;
	int rc;

	rc = dicom_open(path, &file, err);
	if (rc < 0)
		goto out;
	h = (struct header){.root = dicom_root(file), .frame = -1};
	rc = read_uids(h.root, &f, err);
	if (rc < 0)
		goto out;
	dicom_get_text(h.root, TAG_PATIENT_ID, f.patient, sizeof(f.patient), NULL); /* a bad one is none */
	rc = sinogram_case(file, &f, err);
	if (rc < 0)
		goto out;
	if (rc > 0) {
		*ret_facts = f;
		rc = 0;
		goto out;
	}
	exam_class(h.root, &source, &f.refused, f.reason, sizeof(f.reason));
	f.frames = 1;
	header_long(&h, TAG_NUMBER_OF_FRAMES, 0, &f.frames, NULL);
	if (!f.reason[0]) {
		snprintf(f.kind, sizeof(f.kind), "dbt");
		h.frame = source == EXAM_BREAST_PROJECTION ? 0 : -1;
		f.expected = source == EXAM_BREAST_PROJECTION ? 1 : expected_count(&h);
		f.angle = first_angle(&h);
		laterality = header_laterality(&h);
		snprintf(f.laterality, sizeof(f.laterality), "%c", laterality ? laterality : '-');
		if (!laterality)
			f.laterality[0] = '\0';
		header_view(&h, f.view, sizeof(f.view));
	}
	*ret_facts = f;
	rc = 0;
out:
	dicom_close(file);
	return rc;
}

void exam_case_key(const struct exam_facts *f, char *ret_key, size_t size)
{
	if (!strcmp(f->kind, "pet") || !strcmp(f->kind, "parallel"))
		snprintf(ret_key, size, "%s|%s|%s", f->study, f->series, f->frame_of_reference);
	else
		snprintf(ret_key, size, "%s|%s|%s|%s|%s", f->study, f->series, f->laterality, f->view, f->frame_of_reference);
}
