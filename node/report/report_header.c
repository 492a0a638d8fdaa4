/* SPDX-License-Identifier: Apache-2.0 */
/* report_header.c - what the header says about patient, exam and volume, and the warnings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/plural.h"
#include "node/report/report_internal.h"

#define TEXT 512 /* bytes of a value that is shown */

void report_text(const struct dicom_item *root, uint32_t tag, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (dicom_get_utf8(root, tag, ret_text, size, NULL) != 1 && dicom_get_text(root, tag, ret_text, size, NULL) != 1)
		ret_text[0] = '\0';
	for (char *c = ret_text; *c; c++)
		if (*c == '\\')
			*c = ' ';
}

void report_put_row(struct html *h, const char *name, const char *value)
{
	if (!value[0])
		return;
	html_printf(h, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", name, value);
}

bool report_is_ours(const struct dicom_item *root)
{
	char maker[TEXT];

	report_text(root, TAG_MANUFACTURER, maker, sizeof(maker));
	return !strcmp(maker, "tomonode");
}

const char *report_kind(const struct report *r)
{
	char sop_class[DICOM_UID_SIZE] = "";

	if (r->s->tomo)
		return "Tomosynthesis";
	dicom_get_text(r->root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	return !strcmp(sop_class, CLASS_PET) ? "PET" : "CT";
}

void report_title(const struct report *r, char *ret_title, size_t size)
{
	report_text(r->root, TAG_SERIES_DESCRIPTION, ret_title, size);
	if (!ret_title[0])
		snprintf(ret_title, size, "%s", report_kind(r));
}

void report_unit(const struct image_series *s, char *ret_unit, size_t size)
{
	snprintf(ret_unit, size, "%s", image_series_unit(s->units));
}

/* ---- facts ---- */

/* Beginning of a sentence of node/sinogram/sinogram_assume.c. */
static const char no_start[] = "The start of the acquisition is not in the data";

static void put_date(struct html *h, const struct report *r, const char *name, uint32_t date_tag, uint32_t time_tag)
{
	char date[TEXT], time[TEXT], text[2 * TEXT];

	report_text(r->root, date_tag, date, sizeof(date));
	report_text(r->root, time_tag, time, sizeof(time));
	if (strlen(date) == 8 && strlen(time) >= 6)
		snprintf(text, sizeof(text), "%.4s-%.2s-%.2s %.2s:%.2s:%.2s%s", date, date + 4, date + 6, time, time + 2,
			 time + 4, date_tag == TAG_ACQUISITION_DATE && report_is_assumed(r, no_start) ? " (assumed)" : "");
	else if (strlen(date) == 8)
		snprintf(text, sizeof(text), "%.4s-%.2s-%.2s", date, date + 4, date + 6);
	else
		snprintf(text, sizeof(text), "%s", date);
	report_put_row(h, name, text);
}

static void put_attribute(struct html *h, const struct report *r, const char *name, uint32_t tag)
{
	char text[TEXT];

	report_text(r->root, tag, text, sizeof(text));
	report_put_row(h, name, text);
}

static void put_patient(const struct report *r, struct html *h)
{
	char name[TEXT];

	report_text(r->root, TAG_PATIENT_NAME, name, sizeof(name));
	for (char *c = name; *c; c++)
		if (*c == '^')
			*c = ' ';
	report_put_row(h, "Patient", name);
	put_attribute(h, r, "Patient ID", TAG_PATIENT_ID);
	put_date(h, r, "Birth date", TAG_PATIENT_BIRTH_DATE, 0);
	put_attribute(h, r, "Sex", TAG_PATIENT_SEX);
	put_attribute(h, r, "Age", TAG_PATIENT_AGE);
	put_attribute(h, r, "Accession number", TAG_ACCESSION_NUMBER);
}

static void put_volume(const struct report *r, struct html *h)
{
	const struct image_series *s = r->s;
	char text[TEXT];

	snprintf(text, sizeof(text), "%d x %d x %d voxels of %.4g x %.4g x %.4g mm (%.4g x %.4g x %.4g mm), in %zu object%s",
		 s->n[0], s->n[1], s->n[2], s->spacing[0], s->spacing[1], s->spacing[2], s->n[0] * s->spacing[0],
		 s->n[1] * s->spacing[1], s->n[2] * s->spacing[2], r->n_objects, plural(r->n_objects));
	report_put_row(h, "Volume", text);
	if (s->n_images > 1) {
		snprintf(text, sizeof(text), "%d %s; number %d, which has the largest mean, is displayed", s->n_images,
			 !strcmp(s->type, "GATED") ? "gates" : "time frames", r->survey.image + 1);
		report_put_row(h, "Images", text);
	}
	snprintf(text, sizeof(text), "%.4g to %.4g%s%s, mean %.4g, standard deviation %.4g", r->survey.lo, r->survey.hi,
		 r->unit[0] ? " " : "", r->unit, r->survey.mean, r->survey.sd);
	report_put_row(h, "Values", text);
	if (isfinite(r->suv)) {
		snprintf(text, sizeof(text), "value x %.4g (body weight); largest %.3g", r->suv, r->suv * r->survey.hi);
		report_put_row(h, "SUV", text);
	}
}

void report_put_facts(const struct report *r, struct html *h)
{
	struct header frame = {.root = r->root, .frame = r->s->tomo ? 0 : -1};
	char laterality[17] = "";
	const struct dicom_item *anatomy = header_find(&frame, TAG_FRAME_LATERALITY), *view;

	html_put(h, "<table class=\"facts\">\n");
	if (r->request->patient)
		put_patient(r, h);
	report_put_row(h, "Kind", report_kind(r));
	if (anatomy)
		dicom_get_text(anatomy, TAG_FRAME_LATERALITY, laterality, sizeof(laterality), NULL);
	report_put_row(h, "Side", laterality);
	view = dicom_item_at(r->root, TAG_VIEW_CODE_SEQUENCE, 0);
	if (view) {
		char meaning[TEXT];

		report_text(view, TAG_CODE_MEANING, meaning, sizeof(meaning));
		report_put_row(h, "View", meaning);
	}
	put_attribute(h, r, "Body part", TAG_BODY_PART_EXAMINED);
	report_put_position(r, h);
	put_date(h, r, "Study", TAG_STUDY_DATE, TAG_STUDY_TIME);
	if (!r->s->tomo)
		put_date(h, r, "Acquisition", TAG_ACQUISITION_DATE, TAG_ACQUISITION_TIME);
	put_date(h, r, "Reconstructed", TAG_CONTENT_DATE, TAG_CONTENT_TIME);
	put_volume(r, h);
	html_put(h, "</table>\n");
}

/* ---- warnings ---- */

static void put_sentence(struct html *h, const char *text)
{
	if (!text[0])
		return;
	html_printf(h, "<li>%s</li>\n", text);
}

void report_put_warnings(const struct report *r, struct html *h)
{
	char derivation[2048], lossy[17];
	const char *of_result = "";
	size_t before;

	report_derivation(r->root, derivation, sizeof(derivation));
	if (report_is_ours(r->root))
		of_result = report_derivation_warnings(derivation);
	html_put(h, "<section class=\"warnings\"><h2>Warnings</h2><ul>");
	before = h->n;
	html_sentences(h, of_result);
	html_sentences(h, r->request->notes);
	report_text(r->root, TAG_LOSSY_IMAGE_COMPRESSION, lossy, sizeof(lossy));
	if (!strcmp(lossy, "01"))
		put_sentence(h, "The pixels were compressed with loss (Lossy Image Compression is 01).");
	if (r->no_suv[0] && !strstr(of_result, "No SUV can be computed: ")) {
		char text[TEXT];

		snprintf(text, sizeof(text), "No SUV: %s.", r->no_suv);
		put_sentence(h, text);
	}
	if (!r->unit[0])
		put_sentence(h, "The objects do not have a unit of the values.");
	if (!strcmp(r->s->units, "CNTS"))
		put_sentence(h, "The values are counts, not an activity.");
	if (!strcmp(r->s->units, "1"))
		put_sentence(h, "The values are relative: the intensity without a breast is not known.");
	html_put(h, h->n == before ? "</ul><p>None in the objects.</p></section>\n" : "</ul></section>\n");
}
