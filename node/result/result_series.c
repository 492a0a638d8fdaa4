/* result_series.c - attributes of a series of slices; its number differs from that of the source, and it is marked as made for
 * research. */
#include "node/result/result_series.h"

#include <stdio.h>

#include "dicom/object/dicom_tags.h"

#define SERIES_NUMBER_MOST 10000000 /* largest series number of a source; IS can hold ten times as much */

void result_series_fill(const struct result_series *s, struct item_writer *w)
{
	const char *text = s->protocol->description;
	char description[128];
	long number = 0;

	if (dicom_get_int(s->source, TAG_SERIES_NUMBER, 0, &number, NULL) != 1 || number < 0 || number > SERIES_NUMBER_MOST)
		number = 0;
	item_put_int(w, TAG_SERIES_NUMBER, number * 10 + 1001);
	if (text[0])
		snprintf(description, sizeof(description), "%.64s", text);
	else
		snprintf(description, sizeof(description), "%s reconstruction %.40s", s->name, s->protocol->name);
	item_put_text(w, TAG_SERIES_DESCRIPTION, description);
	item_put_text(w, TAG_SERIES_INSTANCE_UID, s->uid);
	item_put_text(w, TAG_MODALITY, s->modality);
	if (w->rc >= 0 && !dicom_has(w->item, TAG_BODY_PART_EXAMINED)) {
		item_put_empty(w, TAG_LATERALITY); /* type 2C */
		item_copy(w, TAG_LATERALITY, s->source);
	}
	provenance_fill_frame(s->source, w);
}

void result_series_fill_image(const char *image_type, const struct provenance_time *now, struct item_writer *w)
{
	item_put_text(w, TAG_IMAGE_TYPE, image_type);
	item_put_text(w, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2");
	item_put_text(w, TAG_BURNED_IN_ANNOTATION, "NO");
	item_put_text(w, TAG_LOSSY_IMAGE_COMPRESSION, "00"); /* JPEG-LS is lossless, too */
	item_put_text(w, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	item_put_text(w, TAG_CONTENT_DATE, now->date);
	item_put_text(w, TAG_CONTENT_TIME, now->time);
	item_put_text(w, TAG_INSTANCE_CREATION_DATE, now->date);
	item_put_text(w, TAG_INSTANCE_CREATION_TIME, now->time);
}

void result_series_fill_window(double lo, double hi, struct item_writer *w)
{
	if (!(hi > lo))
		return;
	item_put_double(w, TAG_WINDOW_CENTER, (hi + lo) / 2);
	item_put_double(w, TAG_WINDOW_WIDTH, hi - lo);
	item_put_text(w, TAG_VOI_LUT_FUNCTION, "LINEAR_EXACT");
}
