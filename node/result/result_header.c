/* SPDX-License-Identifier: Apache-2.0 */
/* result_header.c - write patient, study, series, equipment and image attributes at the root of the data set. Patient, study,
 * order and place are copied from the source byte for byte, with its character set. New are the series, the equipment (this
 * program, which made this object; the modality is in Contributing Equipment) and the image. */
#include <stdio.h>
#include <string.h>

#include "node/result/result_internal.h"

/* Attributes of mammographic images, copied in addition to those of every object. */
static const uint32_t copied[] = {TAG_PARTIAL_VIEW, TAG_PARTIAL_VIEW_DESCRIPTION, TAG_BREAST_IMPLANT_PRESENT};

const char *result_calculation_technique(const struct result *r)
{
	/* PS3.3 C.8.21.1.1.3, notes 1 and 2 */
	if (r->type->is_view)
		return "VOLUME_RENDER";
	return r->slabs.mode == SLABS_MAXIMUM ? "MAX_IP" : "TOMOSYNTHESIS";
}

/* Write the series. Its number is the source's, followed by a digit for the view: right and left CC, right and left MLO, right
 * and left of another view. Each kind of object has its own thousand. */
static void fill_series(const struct result *r, struct item_writer *w)
{
	const struct protocol_conf *p = r->info->protocol;
	char description[PROVENANCE_TITLE_SIZE], text[192];
	long number = 0;
	const char *of = r->exam->view;
	int view = (!strcmp(of, "CC") ? 1 : !strcmp(of, "MLO") ? 3 : 5) + (r->exam->laterality == 'L');

	if (dicom_get_int(r->source, TAG_SERIES_NUMBER, 0, &number, NULL) != 1 || number < 0 || number > 10000000)
		number = 0;
	item_put_int(w, TAG_SERIES_NUMBER, number * 10 + 1000 * (1 + (int)r->kind) + view + result_place_offset(&r->exam->place));
	if (p->description[0] && r->kind == RESULT_SLICES)
		snprintf(description, sizeof(description), "%.64s", p->description);
	else if (p->description[0])
		snprintf(description, sizeof(description), "%.48s %s", p->description, r->type->title);
	else
		snprintf(description, sizeof(description), "%c %s %s %.30s", r->exam->laterality, r->exam->view, r->type->title,
			 p->name);
	if (result_is_partial(r->exam)) { /* at the beginning, where it is never cut off */
		snprintf(text, sizeof(text), "%d of %ld projections: %s", r->exam->n_views, r->exam->announced, description);
		snprintf(description, sizeof(description), "%.64s", text);
	}
	provenance_place_title(&r->exam->place, description);
	if (r->exam->place.outside && r->kind != RESULT_SLICES) {
		snprintf(text, sizeof(text), "%s: %s", r->type->title, description);
		snprintf(description, sizeof(description), "%.64s", text);
	}
	item_put_text(w, TAG_SERIES_DESCRIPTION, description);
	item_put_text(w, TAG_SERIES_INSTANCE_UID, r->series);
	item_put_text(w, TAG_MODALITY, "MG");
	provenance_fill_place(&r->exam->place, r->source, w);
	item_put_text(w, TAG_BODY_PART_EXAMINED, "BREAST");
}

static void fill_view(const struct result *r, struct item_writer *w)
{
	const struct dicom_item *from = dicom_item_at(r->source, TAG_VIEW_CODE_SEQUENCE, 0);
	const struct exam_view_kind *view = exam_view_kind(r->exam->view);
	struct dicom_item *code;

	item_put_code(w, TAG_VIEW_CODE_SEQUENCE, view->sct ? view->sct : view->srt, view->sct ? "SCT" : "SRT", view->meaning);
	if (w->rc < 0)
		return;
	code = dicom_item_at(w->item, TAG_VIEW_CODE_SEQUENCE, 0);
	if (from && dicom_item_count(from, TAG_VIEW_MODIFIER_CODE_SEQUENCE) > 0)
		w->rc = dicom_copy(from, TAG_VIEW_MODIFIER_CODE_SEQUENCE, code, w->err);
	else if (view->modifier)
		w->rc = dicom_add_code(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE, view->modifier, "SCT", view->modifier_meaning,
				       w->err);
	else
		w->rc = dicom_put_empty(code, TAG_VIEW_MODIFIER_CODE_SEQUENCE, w->err);
}

/* Whether the stored value 0 is the background, and nothing else: voxels without attenuation, and no tissue that was clipped, or
 * padding
 * (PS3.3 C.7.5.1.1.2; viewers keep padding black when they invert or window the image). */
static bool has_background(const struct result *r)
{
	return r->scale.padded || (r->scale.offset == 0 && r->summary.below == 0);
}

/* Write the image attributes that slices, slabs and the synthetic view share. */
static void fill_image(const struct result *r, struct item_writer *w)
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
		{TAG_PIXEL_REPRESENTATION, 0},
		{TAG_SAMPLES_PER_PIXEL, 1},
		{TAG_BITS_ALLOCATED, 16},
		{TAG_INSTANCE_NUMBER, 1},
	};

	item_put_text(w, TAG_IMAGE_TYPE, r->type->image_type);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		item_put_text(w, texts[i].tag, texts[i].text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		item_put_int(w, numbers[i].tag, numbers[i].value);
	if (has_background(r))
		item_put_int(w, TAG_PIXEL_PADDING_VALUE, 0);
	item_put_int(w, TAG_BITS_STORED, r->scale.bits);
	item_put_int(w, TAG_HIGH_BIT, r->scale.bits - 1);
	item_put_int(w, TAG_ROWS, r->info->plan->grid.n[1]);
	item_put_int(w, TAG_COLUMNS, r->info->plan->grid.n[0]);
	item_put_text(w, TAG_CONTENT_DATE, r->now.date);
	item_put_text(w, TAG_CONTENT_TIME, r->now.time);
	item_put_text(w, TAG_INSTANCE_CREATION_DATE, r->now.date);
	item_put_text(w, TAG_INSTANCE_CREATION_TIME, r->now.time);
	item_put_empty(w, TAG_ACQUISITION_CONTEXT_SEQUENCE);
	item_put_text(w, TAG_FRAME_OF_REFERENCE_UID, r->frame_of_reference);
	item_copy_or_empty(w, TAG_POSITION_REFERENCE_INDICATOR, r->source);
}

static void fill_volume(const struct result *r, struct item_writer *w)
{
	item_put_text(w, TAG_PIXEL_PRESENTATION, "MONOCHROME");
	item_put_text(w, TAG_VOLUMETRIC_PROPERTIES, r->type->volumetric);
	item_put_text(w, TAG_VOLUME_BASED_CALCULATION_TECHNIQUE, result_calculation_technique(r));
	item_put_text(w, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	item_put_int(w, TAG_NUMBER_OF_FRAMES, r->n_planes);
}

void result_fill_header(const struct result *r, struct item_writer *root)
{
	provenance_fill_patient(r->source, root);
	item_copy_all(root, r->source, copied, sizeof(copied) / sizeof(copied[0]));
	fill_series(r, root);
	provenance_fill_equipment(root);
	fill_view(r, root);
	fill_image(r, root);
	if (r->type->is_mammogram)
		result_fill_view(r, root);
	else
		fill_volume(r, root);
}
