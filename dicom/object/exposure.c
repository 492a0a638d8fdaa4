/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.c - divide images into groups, by one attribute after the other. Texts differ or not. Numbers and moments are sorted,
 * and divided where a step between two neighbours is longer than within one exposure. A sweep may pass midnight. */
#include "dicom/object/exposure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "dicom/object/dicom_tags.h"

#define DAY 86400.0
#define PAUSE 60.0	 /* s: no sweep stops for as long */
#define PAUSE_DOUBT 10.0 /* s: nor does that of any known system */
#define PAUSE_RATIO 3.0	 /* of the median step: where each image takes long, as at a bench, such a step is none of two sweeps */
#define DOSE_RATIO 4.0	 /* systems give some projections of a sweep up to 3 times the dose of others; a scout has a tenth */

#define DATE 8 /* YYYYMMDD */

static const char none[] = "none";

enum how { TEXT, DIFFERENCE, RATIO, TIME, DATE_TIME };

/* The attributes that tell exposures apart. Cases in the journal have their values in this order: add new ones at the end. */
static const struct attribute {
	uint32_t tag;
	int value; /* index of the value; -1: all of them */
	const char *name;
	enum { MAY_LACK = 1, NAMES_ONLY = 2 } flags; /* an image without it may be of any exposure; it proves nothing */
	enum how how;
	double limit; /* largest step within an exposure */
} attributes[EXPOSURE_ATTRIBUTES] = {
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
	{TAG_COMPRESSION_FORCE, -1, "Compression Force", MAY_LACK, DIFFERENCE, 20.0},	 /* N; measured during the sweep, too */
	{TAG_BODY_PART_THICKNESS, -1, "Body Part Thickness", MAY_LACK, DIFFERENCE, 1.0}, /* mm */
	{TAG_EXPOSURE_IN_UAS, -1, "Exposure in uAs", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_EXPOSURE_IN_MAS, -1, "Exposure in mAs", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_EXPOSURE, -1, "Exposure", MAY_LACK, RATIO, DOSE_RATIO},
	{TAG_CONTENT_TIME, -1, "Content Time", NAMES_ONLY | MAY_LACK, TIME, PAUSE}, /* of the image, not of the exposure */
};

static bool is_time(const struct attribute *a)
{
	return a->how == TIME || a->how == DATE_TIME;
}

static void read_number(const struct header *h, const struct attribute *a, char *ret_text, size_t size)
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
	    strlen(date) != DATE || strspn(date, "0123456789") != DATE)
		return;
	snprintf(time, sizeof(time), "%.50s", text);
	snprintf(text, size, "%s%s", date, time);
}

void exposure_read(const struct header *h, struct exposure_facts *ret_facts)
{
	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		const struct attribute *a = &attributes[k];
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

static const char *value_of(const struct exposure_facts *image, int attribute)
{
	return image->value[attribute][0] ? image->value[attribute] : none;
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

static bool has_date(const char *text)
{
	return strspn(text, "0123456789") >= DATE + 4;
}

static double number_of(const struct attribute *a, const char *text)
{
	if (!text[0])
		return NAN;
	return a->how == TIME && !has_date(text) ? time_of(text) : is_time(a) ? date_time_of(text) : strtod(text, NULL);
}

static int by_size(const void *a, const void *b)
{
	const struct exposure *x = a, *y = b;

	return x->images != y->images ? y->images - x->images : strcasecmp(x->value, y->value);
}

/* Group the images by a text. False: there are more groups than EXPOSURES_MAX. ret_counted: the images of the groups. */
static bool group_texts(const struct exposure_facts *images, size_t n, bool with_none, struct exposures *e, int *ret_counted)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = value_of(&images[i], e->attribute);
		int k = 0;

		if (value == none && !with_none)
			continue;
		while (k < e->n && strcasecmp(e->list[k].value, value))
			k++;
		if (k == EXPOSURES_MAX)
			return false;
		if (k == e->n)
			e->n++;
		if (e->list[k].images++ == 0 || strcmp(value, e->list[k].value) < 0) /* of two spellings always the same */
			snprintf(e->list[k].value, DICOM_UID_SIZE, "%s", value);
		++*ret_counted;
	}
	return true;
}

/* ---- numbers and moments ---- */

struct sample {
	double x;
	const char *text;
};

static int by_number(const void *a, const void *b)
{
	const struct sample *p = a, *q = b;

	return (p->x > q->x) - (p->x < q->x);
}

static int by_length(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

/* Of times of a day that are more than half a day apart, those before noon are of the next day. NAN is none. */
static void turn_day(double *times, size_t n)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		least = fmin(least, times[i]);
		most = fmax(most, times[i]);
	}
	for (size_t i = 0; i < n && most - least > DAY / 2; i++)
		times[i] += times[i] < DAY / 2 ? DAY : 0;
}

/* Write the value of each image; NAN: it has none. */
static void read_values(const struct exposure_facts *images, size_t n, int attribute, double *ret)
{
	const struct attribute *a = &attributes[attribute];

	bool dated = true; /* dates count only if all images have one */

	for (size_t i = 0; i < n; i++)
		dated = dated && (!images[i].value[attribute][0] || has_date(images[i].value[attribute]));
	for (size_t i = 0; i < n; i++) {
		const char *text = images[i].value[attribute];

		ret[i] = number_of(a, a->how == TIME && !dated && has_date(text) ? text + DATE : text);
	}
	if (a->how == TIME)
		turn_day(ret, n);
}

/* List the images' values in ascending order. Returns their number, or a negative errno value. */
static long sort_values(const struct exposure_facts *images, size_t n, int attribute, struct sample **ret, struct err *err)
{
	struct sample *s = calloc(n + 1, sizeof(*s));
	double *values = calloc(n + 1, sizeof(*values));
	long m = 0;

	if (!s || !values) {
		free(s);
		free(values);
		return err_set(err, ENOMEM, "no memory for the exposures of %zu images", n);
	}
	read_values(images, n, attribute, values);
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]))
			s[m++] = (struct sample){values[i], images[i].value[attribute]};
	free(values);
	qsort(s, (size_t)m, sizeof(s[0]), by_number);
	*ret = s;
	return m;
}

/* Return the median step; 0: there is none, or no memory. */
static double median_step(const struct sample *s, long n)
{
	double *steps = n > 1 ? calloc((size_t)n, sizeof(*steps)) : NULL, median = 0;

	for (long i = 1; steps && i < n; i++)
		steps[i - 1] = s[i].x - s[i - 1].x;
	if (steps) {
		qsort(steps, (size_t)n - 1, sizeof(*steps), by_length);
		median = steps[(n - 2) / 2];
	}
	free(steps);
	return median;
}

/* weak: every difference of times counts. */
static bool divides(const struct attribute *a, double limit, double before, double after)
{
	return a->how == RATIO ? after > limit * before : after - before > limit;
}

/* Group the images by a number. False: moments of more groups than EXPOSURES_MAX, or doses in mixed units. */
static bool group_samples(const struct sample *s, long n, bool weak, struct exposures *e)
{
	const struct attribute *a = &attributes[e->attribute];
	double limit = is_time(a) ? (weak ? 0 : fmax(a->limit, PAUSE_RATIO * median_step(s, n))) : a->limit;

	if (a->how == RATIO && n > 0 && s[n - 1].x > EXPOSURE_RATIO_MAX * s[0].x)
		return false;
	for (long i = 0; i < n; i++) {
		struct exposure *group = &e->list[e->n ? e->n - 1 : 0];

		if (e->n == 0 || divides(a, limit, s[i - 1].x, s[i].x)) {
			if (e->n == EXPOSURES_MAX && is_time(a))
				return false;
			if (e->n < EXPOSURES_MAX) { /* the last group of numbers has the rest */
				group = &e->list[e->n++];
				snprintf(group->value, DICOM_UID_SIZE, "%s", s[i].text);
			}
		}
		group->images++;
		snprintf(group->last, DICOM_UID_SIZE, "%s", s[i].text);
	}
	return true;
}

static int group_numbers(const struct exposure_facts *images, size_t n, bool weak, struct exposures *e, int *ret_counted,
			 struct err *err)
{
	struct sample *s = NULL;
	long m = sort_values(images, n, e->attribute, &s, err);
	bool grouped = m > 0 && group_samples(s, m, weak, e);

	free(s);
	*ret_counted = (int)m;
	return m < 0 ? (int)m : grouped;
}

/* Group the images by one attribute. weak: an image without it is of another exposure, and so is one at another time. Returns 1:
 * two groups or more; 0; negative: no memory. */
static int group_images(const struct exposure_facts *images, size_t n, int attribute, bool weak, struct exposures *ret,
			struct err *err)
{
	const struct attribute *a = &attributes[attribute];
	struct exposures e = {.attribute = attribute};
	int counted = 0;
	int rc = a->how == TEXT ? group_texts(images, n, weak || !(a->flags & MAY_LACK), &e, &counted)
				: group_numbers(images, n, weak, &e, &counted, err);

	if (rc <= 0 || e.n < 2)
		return rc < 0 ? rc : 0;
	if (!weak && e.n == counted && (a->how == TEXT || is_time(a))) /* a value for each image tells nothing */
		return 0;
	qsort(e.list, (size_t)e.n, sizeof(e.list[0]), by_size);
	*ret = e;
	return 1;
}

int exposures_prove(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < EXPOSURE_ATTRIBUTES; k++)
		if (!(attributes[k].flags & NAMES_ONLY))
			rc = group_images(images, n, k, false, ret_exposures, err);
	return rc;
}

int exposures_find(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < EXPOSURE_ATTRIBUTES; k++)
		rc = group_images(images, n, k, true, ret_exposures, err);
	return rc;
}

bool exposure_has(const struct exposures *of, int group, const struct exposure_facts *image)
{
	const struct attribute *a = &attributes[of->attribute];
	const struct exposure *e = &of->list[group];
	double x, first, last;

	if (a->how == TEXT)
		return !strcasecmp(value_of(image, of->attribute), e->value);
	x = number_of(a, image->value[of->attribute]);
	first = number_of(a, e->value);
	last = number_of(a, e->last);
	return first <= last ? x >= first && x <= last : x >= first || x <= last; /* over midnight */
}

/* ---- texts ---- */

const char *exposures_attribute(const struct exposures *of, uint32_t *ret_tag)
{
	*ret_tag = attributes[of->attribute].tag;
	return attributes[of->attribute].name;
}

void exposure_text(const struct exposure *e, char *ret_text, size_t size)
{
	bool range = e->last[0] && strcmp(e->last, e->value) != 0;

	snprintf(ret_text, size, "%s%s%s", e->value, range ? " to " : "", range ? e->last : "");
}

void exposures_text(const struct exposures *of, char *ret_text, size_t size)
{
	const struct attribute *a = &attributes[of->attribute];
	size_t at = (size_t)snprintf(ret_text, size, "%s %s:", a->name, tag_text(a->tag));
	char value[2 * DICOM_UID_SIZE + 4];

	for (int i = 0; i < of->n && at < size; i++) {
		exposure_text(&of->list[i], value, sizeof(value));
		at += (size_t)snprintf(ret_text + at, size - at, "%s %d %s %s", i ? "," : "", of->list[i].images,
				       of->list[i].images == 1 ? "has" : "have", value);
	}
}

void exposures_refusal(const struct exposures *of, bool frames, char *ret_text, size_t size)
{
	char text[480];

	exposures_text(of, text, sizeof(text));
	if (frames)
		snprintf(ret_text, size,
			 "the projections are of more than one exposure: %s; they are frames of one object: send an object with "
			 "the frames of one exposure",
			 text);
	else
		snprintf(ret_text, size,
			 "the projections are of more than one exposure: %s; give recon those of one, or choose it with retry "
			 "--sweep",
			 text);
}

/* Find the longest step, if it is such a pause. */
static bool find_pause(int attribute, const struct sample *s, long n, struct exposure_pause *ret)
{
	const struct attribute *a = &attributes[attribute];
	long at = 0;

	for (long i = 1; i < n; i++)
		if (at == 0 || s[i].x - s[i - 1].x > s[at].x - s[at - 1].x)
			at = i;
	if (at == 0 || !(s[at].x - s[at - 1].x > fmax(PAUSE_DOUBT, PAUSE_RATIO * median_step(s, n))))
		return false;
	*ret = (struct exposure_pause){.name = a->name, .tag = a->tag, .seconds = s[at].x - s[at - 1].x, .before = at, .of = n};
	snprintf(ret->from, sizeof(ret->from), "%s", s[at - 1].text);
	snprintf(ret->to, sizeof(ret->to), "%s", s[at].text);
	return true;
}

int exposures_pause(const struct exposure_facts *images, size_t n, struct exposure_pause *ret_pause, struct err *err)
{
	int found = 0;

	bool known = false; /* from times of acquisition that differ: those of the images prove nothing beside them */

	for (int k = 0; found == 0 && k < EXPOSURE_ATTRIBUTES; k++) {
		struct sample *s = NULL;
		long m = is_time(&attributes[k]) && !(known && attributes[k].flags & NAMES_ONLY)
				 ? sort_values(images, n, k, &s, err)
				 : 0;

		if (m < 0)
			return (int)m;
		known = known || ((size_t)m == n && s[0].x < s[m - 1].x);
		found = m > 1 && find_pause(k, s, m, ret_pause);
		free(s);
	}
	return found;
}

bool exposures_moments(const struct exposure_facts *images, size_t n, double *ret_seconds, const char **ret_name,
		       uint32_t *ret_tag)
{
	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		bool differ = false, all = true;

		if (!is_time(&attributes[k]) || attributes[k].flags & NAMES_ONLY)
			continue;
		read_values(images, n, k, ret_seconds);
		for (size_t i = 0; i < n; i++) {
			all = all && isfinite(ret_seconds[i]);
			differ = differ || ret_seconds[i] != ret_seconds[0];
		}
		if (all && differ) {
			*ret_name = attributes[k].name;
			*ret_tag = attributes[k].tag;
			return true;
		}
	}
	return false;
}
