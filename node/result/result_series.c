/* result_series.c - a series of slices beside the one that its source is, marked as made for research. */
#include "node/result/result_series.h"

#include <stdio.h>

#include "dicom/object/dicom_tags.h"

#define SERIES_NUMBER_MOST 10000000 /* of a source; IS holds ten times that */

void result_series_fill(const struct result_series *s, struct fill *f)
{
	const char *text = s->protocol->description;
	char description[128];
	long number = 0;

	if (dicom_get_int(s->source, TAG_SERIES_NUMBER, 0, &number, NULL) != 1 || number < 0 || number > SERIES_NUMBER_MOST)
		number = 0;
	fill_int(f, TAG_SERIES_NUMBER, number * 10 + 1001);
	if (text[0])
		snprintf(description, sizeof(description), "%.64s", text);
	else
		snprintf(description, sizeof(description), "%s reconstruction %.40s", s->name, s->protocol->name);
	fill_text(f, TAG_SERIES_DESCRIPTION, description);
	fill_text(f, TAG_SERIES_INSTANCE_UID, s->uid);
	fill_text(f, TAG_MODALITY, s->modality);
	if (f->rc >= 0 && !dicom_has(f->item, TAG_BODY_PART_EXAMINED)) {
		fill_empty(f, TAG_LATERALITY); /* type 2C */
		fill_copy(f, TAG_LATERALITY, s->source);
	}
	provenance_fill_frame(s->source, f);
}

void result_series_fill_image(const char *image_type, const struct provenance_time *now, struct fill *f)
{
	fill_text(f, TAG_IMAGE_TYPE, image_type);
	fill_text(f, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2");
	fill_text(f, TAG_BURNED_IN_ANNOTATION, "NO");
	fill_text(f, TAG_LOSSY_IMAGE_COMPRESSION, "00"); /* JPEG-LS is lossless, too */
	fill_text(f, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	fill_text(f, TAG_CONTENT_DATE, now->date);
	fill_text(f, TAG_CONTENT_TIME, now->time);
	fill_text(f, TAG_INSTANCE_CREATION_DATE, now->date);
	fill_text(f, TAG_INSTANCE_CREATION_TIME, now->time);
}

void result_series_fill_window(double lo, double hi, struct fill *f)
{
	if (!(hi > lo))
		return;
	fill_double(f, TAG_WINDOW_CENTER, (hi + lo) / 2);
	fill_double(f, TAG_WINDOW_WIDTH, hi - lo);
	fill_text(f, TAG_VOI_LUT_FUNCTION, "LINEAR_EXACT");
}
