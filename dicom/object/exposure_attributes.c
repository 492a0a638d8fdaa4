/* SPDX-License-Identifier: Apache-2.0 */
/* exposure_attributes.c - which attributes tell exposures apart, how they are read from a header, and what number a text is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/object/exposure_internal.h"

#define PAUSE 60.0     /* s: no sweep stops for as long */
#define DOSE_RATIO 4.0 /* systems give some projections of a sweep up to 3 times the dose of others; a scout has a tenth */

/* The attributes that tell exposures apart. Cases in the journal have their values in this order: add new ones at the end. */
const struct exposure_attribute exposure_attributes[EXPOSURE_ATTRIBUTES] = {
	{TAG_ACQUISITION_NUMBER, -1, "Acquisition Number", MAY_LACK, TEXT, 0},
	{TAG_IRRADIATION_EVENT_UID, -1, "Irradiation Event UID", MAY_LACK, TEXT, 0},
	{TAG_IMAGE_TYPE, 2, "Image Type, value 3", 0, TEXT, 0},
	{TAG_IMAGE_TYPE, 3, "Image Type, value 4", 0, TEXT, 0},
	{TAG_ANODE_TARGET_MATERIAL, -1, "Anode Target Material", MAY_LACK, TEXT, 0},
	{TAG_FILTER_MATERIAL, -1, "Filter Material", MAY_LACK, TEXT, 0},
	{TAG_ACQUISITION_TIME, -1, "Acquisition Time", MAY_LACK, TIME, PAUSE},
	{TAG_ACQUISITION_DATE_TIME, -1, "Acquisition DateTime", MAY_LACK, DATE_TIME, PAUSE},
	{TAG_FRAME_ACQUISITION_DATE_TIME, -1, "Frame Acquisition DateTime", MAY_LACK, DATE_TIME, PAUSE},
	{TAG_FRAME_ACQUISITION_NUMBER, -1, "Frame Acquisition Number", MAY_LACK, TEXT, 0},
	{TAG_KVP, -1, "KVP", MAY_LACK, DIFFERENCE, 1.0},
	{TAG_PADDLE_DESCRIPTION, -1, "Paddle Description", MAY_LACK, TEXT, 0},
	{TAG_COMPRESSION_FORCE, -1, "Compression Force", MAY_LACK, DIFFERENCE, 20.0,
	 10.0},										 /* N; measured during the sweep, too */
	{TAG_BODY_PART_THICKNESS, -1, "Body Part Thickness", MAY_LACK, DIFFERENCE, 1.0}, /* mm */
	{TAG_EXPOSURE_IN_UAS, -1, "Exposure in uAs", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_EXPOSURE_IN_MAS, -1, "Exposure in mAs", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_EXPOSURE, -1, "Exposure", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_CONTENT_TIME, -1, "Content Time", NAMES_ONLY | MAY_LACK, TIME, PAUSE}, /* of the image, not of the exposure */
	{TAG_DETECTOR_ID, -1, "Detector ID", MAY_LACK, TEXT, 0},
	{TAG_GRID, -1, "Grid", NAMES_ONLY | MAY_LACK, TEXT, 0}, /* it may be retracted during a sweep */
};

bool exposure_is_time(const struct exposure_attribute *a)
{
	return a->how == TIME || a->how == DATE_TIME;
}

static void read_number(const struct header *h, const struct exposure_attribute *a, char *ret_text, size_t size)
{
	double value;

	ret_text[0] = '\0';
	if (header_double(h, a->tag, 0, &value, NULL) == 1 && value > 0)
		snprintf(ret_text, size, "%.10g", value);
}

/* Write the time of day behind the date, if there is one, so that two sweeps at one time of two days are two. */
static void add_date(const struct header *h, char *text, size_t size)
{
	char date[17], time[64];

	if (!text[0] || strchr(text, ':') || header_text(h, TAG_ACQUISITION_DATE, date, sizeof(date), NULL) != 1 ||
	    strlen(date) != EXPOSURE_DATE || strspn(date, "0123456789") != EXPOSURE_DATE)
		return;
	snprintf(time, sizeof(time), "%.50s", text);
	snprintf(text, size, "%s%s", date, time);
}

void exposure_read(const struct header *h, struct exposure_facts *ret_facts)
{
	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		const struct exposure_attribute *a = &exposure_attributes[k];
		char text[512], *from = text;

		if (a->how == DIFFERENCE || a->how == RATIO)
			read_number(h, a, text, sizeof(text));
		else if (header_text(h, a->tag, text, sizeof(text), NULL) != 1)
			text[0] = '\0';
		if (a->tag == TAG_ACQUISITION_TIME)
			add_date(h, text, sizeof(text));
		for (int i = 0; i < a->value && from; i++) {
			from = strchr(from, '\\');
			from = from ? from + 1 : NULL;
		}
		if (a->value >= 0 && from)
			from[strcspn(from, "\\")] = '\0';
		snprintf(ret_facts->value[k], DICOM_UID_SIZE, "%s", from ? from : "");
	}
}

/* Return the seconds of HHMM[SS[.FFFFFF]], or with colons; NAN: it is none. */
static double time_of(const char *text)
{
	int h, m;
	double s = 0;
	int n = strchr(text, ':') ? sscanf(text, "%2d:%2d:%lf", &h, &m, &s) : sscanf(text, "%2d%2d%lf", &h, &m, &s);

	return n >= 2 && h >= 0 && h < 24 && m >= 0 && m < 60 && s >= 0 && s < 61 ? 3600.0 * h + 60.0 * m + s : NAN;
}

/* Return the seconds of YYYYMMDDHHMMSS.FFFFFF, whatever its offset from UTC, which is that of all; NAN: it has no time. */
static double date_time_of(const char *text)
{
	struct tm day = {0};

	if (strspn(text, "0123456789") < 12 || sscanf(text, "%4d%2d%2d", &day.tm_year, &day.tm_mon, &day.tm_mday) != 3)
		return NAN;
	day.tm_year -= 1900;
	day.tm_mon--;
	return (double)timegm(&day) + time_of(text + 8);
}

bool exposure_has_date(const char *text)
{
	return strspn(text, "0123456789") >= EXPOSURE_DATE + 4;
}

double exposure_number(const struct exposure_attribute *a, const char *text, bool dated)
{
	bool has_date = exposure_has_date(text);

	if (!exposure_is_time(a))
		return text[0] ? strtod(text, NULL) : NAN;
	if (a->how == DATE_TIME && !has_date)
		return NAN;
	return dated && has_date ? date_time_of(text) : time_of(has_date ? text + EXPOSURE_DATE : text);
}

bool exposure_has_seconds(const char *text)
{
	const char *time = exposure_has_date(text) ? text + EXPOSURE_DATE : text, *colon = strchr(time, ':');

	return colon ? strchr(colon + 1, ':') != NULL : strspn(time, "0123456789") > 4;
}
