/* SPDX-License-Identifier: Apache-2.0 */
/* case_facts.c - call recognise() of every kind for an instance. Three results: an instance of this kind; a known encoding that
 * is not supported (refused, with the reason); anything else (ignored). */
#include "node/reconstruct/case_facts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/sinogram/pet_source.h"

#define STANDARD_ROOT "1.2.840.10008."

static int read_uids(const struct dicom_item *root, struct case_facts *f, struct err *err)
{
	struct {
		uint32_t tag;
		const char *name;
		char *uid;
		bool needed;
	} uids[] = {
		{TAG_SOP_CLASS_UID, "SOP Class UID", f->sop_class, true},
		{TAG_SOP_INSTANCE_UID, "SOP Instance UID", f->sop_instance, true},
		{TAG_STUDY_INSTANCE_UID, "Study Instance UID", f->study, true},
		{TAG_SERIES_INSTANCE_UID, "Series Instance UID", f->series, true},
		{TAG_FRAME_OF_REFERENCE_UID, "Frame of Reference UID", f->frame_of_reference, false},
	};

	for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		int found = dicom_get_text(root, uids[i].tag, uids[i].uid, DICOM_UID_SIZE, err);

		if (found < 0)
			return found;
		if (!found && uids[i].needed)
			return err_set(err, EBADMSG, "%s %s is missing", uids[i].name, tag_text(uids[i].tag));
		if (uids[i].uid[strspn(uids[i].uid, "0123456789.")])
			return err_set(err, EBADMSG, "%s %s is '%s', which is not a UID", uids[i].name, tag_text(uids[i].tag),
				       uids[i].uid);
	}
	return 0;
}

int case_is_not(struct case_facts *f, bool refused, const char *reason)
{
	if (!f->reason[0] && reason[0]) {
		f->refused = refused;
		snprintf(f->reason, sizeof(f->reason), "%s", reason);
	}
	return 0;
}

int case_recognise_sinogram(const struct dicom_file *file, enum interfile_kind header, struct case_facts *f, struct err *err)
{
	const struct dicom_item *root = dicom_root((struct dicom_file *)file);
	char reason[sizeof(f->reason)];
	struct pet_object o;
	int rc = pet_source_of_object(root)->describe(file, &o, err);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return sinogram_unsupported(root, reason, sizeof(reason)) ? case_is_not(f, true, reason) : 0;
	if (o.header != header)
		return 0;
	f->expected = o.expected;
	f->whole_study = o.whole_study;
	f->attenuation = o.attenuation;
	snprintf(f->lacks, sizeof(f->lacks), "%s", o.lacks);
	return 1;
}

/* Read the start of the acquisition, or of the series. */
static double read_acquired(const struct dicom_item *root)
{
	static const uint32_t tags[][2] = {{TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME}, {TAG_SERIES_DATE, TAG_SERIES_TIME}};
	char date[40], time[40];
	double seconds;

	if (dicom_get_text(root, TAG_ACQUISITION_DATE_TIME, date, sizeof(date), NULL) == 1 && strlen(date) > 8) {
		snprintf(time, sizeof(time), "%.*s", (int)strcspn(date + 8, "+-& "), date + 8);
		date[8] = '\0';
		if (pet_facts_moment(date, time, &seconds))
			return seconds;
	}
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (dicom_get_text(root, tags[i][0], date, sizeof(date), NULL) == 1 &&
		    dicom_get_text(root, tags[i][1], time, sizeof(time), NULL) == 1 && pet_facts_moment(date, time, &seconds))
			return seconds;
	return 0;
}

/* Write the reason for an object that no kind recognises. */
static void unknown_class(struct case_facts *f)
{
	f->refused = strncmp(f->sop_class, STANDARD_ROOT, strlen(STANDARD_ROOT)) != 0;
	if (f->refused)
		snprintf(f->reason, sizeof(f->reason), "private SOP class %s: a vendor's raw data, whose format is closed",
			 f->sop_class);
	else
		snprintf(f->reason, sizeof(f->reason), "%s (%s): no projections to reconstruct", dicom_uid_name(f->sop_class),
			 f->sop_class);
}

static int recognise_kind(const struct dicom_file *file, struct case_facts *f, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < KIND_COUNT; i++) {
		rc = reconstruct_kind_of((enum case_kind)i)->recognise(file, f, err);
		if (rc > 0)
			f->kind = kind_of((enum case_kind)i);
	}
	if (rc < 0)
		return rc;
	if (f->kind) {
		f->refused = false;
		f->reason[0] = '\0';
	} else if (!f->reason[0]) {
		unknown_class(f);
	}
	return 0;
}

/* Copy a text without blanks at its ends, and with one ? for each letter (a UTF-8 sequence) that is not printable ASCII: so that
 * a pattern can be written for it in any character set. What is longer than `size` is cut. */
static void copy_text(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	text += strspn(text, " ");
	for (; *text && n + 1 < size; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			ret[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
}

/* Read what routes are chosen by. A value that is invalid or very long counts as missing. */
static void read_route_facts(const struct dicom_item *root, struct case_facts *f)
{
	static const uint32_t tags[ROUTE_FACTS] = {[ROUTE_STUDY_DESCRIPTION] = TAG_STUDY_DESCRIPTION,
						   [ROUTE_PROTOCOL_NAME] = TAG_PROTOCOL_NAME,
						   [ROUTE_BODY_PART] = TAG_BODY_PART_EXAMINED,
						   [ROUTE_VIEW] = TAG_PATIENT_POSITION,
						   [ROUTE_STATION] = TAG_STATION_NAME,
						   [ROUTE_INSTITUTION] = TAG_INSTITUTION_NAME};
	char text[1024];

	if (!f->kind)
		return;
	snprintf(f->route.kind, sizeof(f->route.kind), "%s", f->kind->name);
	for (int i = 0; i < ROUTE_FACTS; i++)
		if (dicom_get_utf8(root, tags[i], text, sizeof(text), NULL) == 1 ||
		    dicom_get_text(root, tags[i], text, sizeof(text), NULL) == 1)
			copy_text(text, f->route.value[i], sizeof(f->route.value[i]));
	if (f->laterality[0] || f->view[0])
		snprintf(f->route.value[ROUTE_VIEW], sizeof(f->route.value[ROUTE_VIEW]), "%s%s", f->laterality, f->view);
}

int case_read_facts(const char *path, struct case_facts *ret_facts, struct err *err)
{
	struct case_facts f = {.frames = 1, .angle = NAN};
	struct dicom_file *file = NULL;
	int rc = dicom_open(path, &file, err);

	if (rc == 0)
		rc = read_uids(dicom_root(file), &f, err);
	if (rc == 0) {
		dicom_get_text(dicom_root(file), TAG_PATIENT_ID, f.patient, sizeof(f.patient),
			       NULL); /* an invalid Patient ID counts as missing */
		dicom_get_text(dicom_root(file), TAG_ACCESSION_NUMBER, f.accession, sizeof(f.accession), NULL);
		dicom_get_int(dicom_root(file), TAG_INSTANCE_NUMBER, 0, &f.number, NULL);
		patient_read(dicom_root(file), NULL, &f.identity);
		rc = recognise_kind(file, &f, err);
		f.acquired = read_acquired(dicom_root(file));
		f.ct = rc == 0 && !f.kind && !f.refused ? ct_object_of(dicom_root(file), f.ct_values) : CT_NO_SLICE;
		f.ct_part = ct_part_of(dicom_root(file));
		if (f.ct != CT_NO_SLICE)
			dicom_get_int(dicom_root(file), TAG_SERIES_RELATED_INSTANCES, 0, &f.expected, NULL);
		read_route_facts(dicom_root(file), &f);
	}
	dicom_close(file);
	if (rc == 0)
		*ret_facts = f;
	return rc;
}

long case_usual_number(const struct case_facts *f, const struct config *config)
{
	const struct profile_conf *profile =
		f->manufacturer[0] || f->model[0] ? config_profile(config, f->manufacturer, f->model, f->serial) : NULL;

	return profile ? profile->projections : 0;
}

void case_key(const struct case_facts *f, char *ret_key, size_t size)
{
	const char *const attributes[] = {[CASE_STUDY] = f->study,
					  [CASE_SERIES] = f->whole_study ? "" : f->series,
					  [CASE_LATERALITY] = f->laterality,
					  [CASE_VIEW] = f->view,
					  [CASE_FRAME_OF_REFERENCE] = f->whole_study ? "" : f->frame_of_reference};
	size_t n = 0;

	ret_key[0] = '\0';
	for (size_t i = 0; f->kind && f->kind->key[i] && n < size; i++)
		n += (size_t)snprintf(ret_key + n, size - n, "%s%s", i ? "|" : "", attributes[f->kind->key[i]]);
}
