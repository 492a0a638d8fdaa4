/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.c - divide images into groups, by one attribute (exposure_attributes.c) after the other. Texts differ or not. Numbers
 * and moments are sorted, and divided where a step between two neighbours is longer than within one exposure. A sweep may pass
 * midnight. */
#include "dicom/object/exposure_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MINUTE 60.0
#define DAY 86400.0
#define PAUSE_DOUBT 10.0 /* s: nor does that of any known system */
#define PAUSE_RATIO 3.0	 /* of the median step: where each image takes long, as at a bench, such a step is none of two sweeps */

static const char none[] = "none";

static const char *value_of(const struct exposure_facts *image, int attribute)
{
	return image->value[attribute][0] ? image->value[attribute] : none;
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

/* Dates count only if all images that have a value have one, and if they differ: the day may be that on which the exam began. */
static bool of_days(const struct exposure_facts *images, size_t n, int attribute)
{
	const char *first = NULL;
	bool differ = false;

	for (size_t i = 0; i < n; i++) {
		const char *value = images[i].value[attribute];

		if (value[0] && !exposure_has_date(value))
			return false;
		if (value[0] && !first)
			first = value;
		differ |= value[0] && strncmp(value, first, EXPOSURE_DATE) != 0;
	}
	return differ;
}

/* Write the value of each image; NAN: it has none. */
static void read_values(const struct exposure_facts *images, size_t n, int attribute, double *ret)
{
	const struct exposure_attribute *a = &exposure_attributes[attribute];
	bool dated = of_days(images, n, attribute);

	for (size_t i = 0; i < n; i++)
		ret[i] = exposure_number(a, images[i].value[attribute], dated);
	if (exposure_is_time(a) && !dated)
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

/* Is the step between two neighbours longer than within one exposure? */
static bool divides_exposures(const struct exposure_attribute *a, double limit, double before, double after)
{
	return a->how == RATIO ? after > limit * before : after - before > limit;
}

/* How much a sign must say. */
enum sign {
	PROOF,
	CHOICE, /* of too many images: one without the attribute is of another exposure, and so is one at another time */
	DOUBT,
};

/* Times without seconds are up to a minute earlier than the moment. */
static double time_resolution(const struct sample *s, long n)
{
	for (long i = 0; i < n; i++)
		if (!exposure_has_seconds(s[i].text))
			return MINUTE;
	return 0;
}

static double limit_of(const struct exposure_attribute *a, enum sign sign, const struct sample *s, long n)
{
	if (exposure_is_time(a))
		return sign == CHOICE ? 0 : fmax(a->limit, PAUSE_RATIO * median_step(s, n)) + time_resolution(s, n);
	return sign == DOUBT ? a->doubt : a->limit;
}

/* Group the images by a number. False: moments of more groups than EXPOSURES_MAX, or doses in mixed units. */
static bool group_samples(const struct sample *s, long n, enum sign sign, struct exposures *e)
{
	const struct exposure_attribute *a = &exposure_attributes[e->attribute];
	double limit = limit_of(a, sign, s, n);

	if (a->how == RATIO && n > 0 && s[n - 1].x > EXPOSURE_RATIO_MAX * s[0].x)
		return false;
	for (long i = 0; i < n; i++) {
		struct exposure *group = &e->list[e->n ? e->n - 1 : 0];

		if (e->n == 0 || divides_exposures(a, limit, s[i - 1].x, s[i].x)) {
			if (e->n == EXPOSURES_MAX && exposure_is_time(a))
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

static int group_numbers(const struct exposure_facts *images, size_t n, enum sign sign, struct exposures *e, int *ret_counted,
			 struct err *err)
{
	struct sample *s = NULL;
	long m = sort_values(images, n, e->attribute, &s, err);
	bool grouped = m > 0 && group_samples(s, m, sign, e);

	free(s);
	*ret_counted = (int)m;
	return m < 0 ? (int)m : grouped;
}

/* Group the images by one attribute. Returns 1: two groups or more; 0; negative: no memory. */
static int group_images(const struct exposure_facts *images, size_t n, int attribute, enum sign sign, struct exposures *ret,
			struct err *err)
{
	const struct exposure_attribute *a = &exposure_attributes[attribute];
	struct exposures e = {.attribute = attribute, .dated = of_days(images, n, attribute)};
	int counted = 0;
	int rc = a->how == TEXT ? group_texts(images, n, sign == CHOICE || !(a->flags & MAY_LACK), &e, &counted)
				: group_numbers(images, n, sign, &e, &counted, err);

	if (rc <= 0 || e.n < 2)
		return rc < 0 ? rc : 0;
	if (sign != CHOICE && e.n == counted &&
	    (a->how == TEXT || exposure_is_time(a))) /* a value for each image tells nothing */
		return 0;
	qsort(e.list, (size_t)e.n, sizeof(e.list[0]), by_size);
	*ret = e;
	return 1;
}

int exposures_prove(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < EXPOSURE_ATTRIBUTES; k++)
		if (!(exposure_attributes[k].flags & NAMES_ONLY))
			rc = group_images(images, n, k, PROOF, ret_exposures, err);
	return rc;
}

int exposures_find(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < EXPOSURE_ATTRIBUTES; k++)
		rc = group_images(images, n, k, CHOICE, ret_exposures, err);
	return rc;
}

int exposures_doubt(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err)
{
	int rc = 0;

	for (int k = 0; rc == 0 && k < EXPOSURE_ATTRIBUTES; k++)
		if (exposure_attributes[k].doubt > 0)
			rc = group_images(images, n, k, DOUBT, ret_exposures, err);
	/* few values may be measured at another moment, and more than two are no sign of two sweeps */
	if (rc > 0 && (ret_exposures->n != 2 || ret_exposures->list[1].images < 2 || ret_exposures->list[1].images * 4 < (int)n))
		rc = 0;
	return rc;
}

bool exposure_has(const struct exposures *of, int group, const struct exposure_facts *image)
{
	const struct exposure_attribute *a = &exposure_attributes[of->attribute];
	const struct exposure *e = &of->list[group];
	double x, first, last;

	if (a->how == TEXT)
		return !strcasecmp(value_of(image, of->attribute), e->value);
	x = exposure_number(a, image->value[of->attribute], of->dated);
	first = exposure_number(a, e->value, of->dated);
	last = exposure_number(a, e->last, of->dated);
	return first <= last ? x >= first && x <= last : x >= first || x <= last; /* over midnight */
}

/* Write "YYYY-MM-DD HH:MM:SS", or what a moment has of it. */
static void write_moment(const struct exposure_attribute *a, const char *text, char ret[EXPOSURE_MOMENT_SIZE])
{
	unsigned time = (unsigned)exposure_number(a, text, false);
	int n = exposure_has_date(text) ? snprintf(ret, EXPOSURE_MOMENT_SIZE, "%.4s-%.2s-%.2s ", text, text + 4, text + 6) : 0;

	n += snprintf(ret + n, (size_t)(EXPOSURE_MOMENT_SIZE - n), "%02u:%02u", time / 3600 % 24, time / 60 % 60);
	if (exposure_has_seconds(text))
		snprintf(ret + n, (size_t)(EXPOSURE_MOMENT_SIZE - n), ":%02u", time % 60);
}

int exposures_date(struct exposures *e, const struct exposure_facts *images, size_t n, struct err *err)
{
	double *seconds = calloc(n + 1, sizeof(*seconds));

	if (!seconds)
		return err_set(err, ENOMEM, "no memory for the times of %zu images", n);
	for (int k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		if (!exposure_is_time(&exposure_attributes[k]))
			continue;
		read_values(images, n, k, seconds);
		for (int g = 0; g < e->n; g++) {
			size_t first = n;

			for (size_t i = 0; i < n; i++)
				if (isfinite(seconds[i]) && exposure_has(e, g, &images[i]) &&
				    (first == n || seconds[i] < seconds[first]))
					first = i;
			if (first < n && !e->list[g].moment[0])
				write_moment(&exposure_attributes[k], images[first].value[k], e->list[g].moment);
		}
	}
	free(seconds);
	return 0;
}

/* ---- texts ---- */

const char *exposures_attribute(const struct exposures *of, uint32_t *ret_tag)
{
	*ret_tag = exposure_attributes[of->attribute].tag;
	return exposure_attributes[of->attribute].name;
}

void exposure_text(const struct exposure *e, char *ret_text, size_t size)
{
	bool range = e->last[0] && strcmp(e->last, e->value) != 0;

	snprintf(ret_text, size, "%s%s%s", e->value, range ? " to " : "", range ? e->last : "");
}

void exposures_text(const struct exposures *of, char *ret_text, size_t size)
{
	const struct exposure_attribute *a = &exposure_attributes[of->attribute];
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
			 "the projections are of more than one sweep: %s; they are frames of one object: send an object with "
			 "the frames of one sweep",
			 text);
	else
		snprintf(ret_text, size,
			 "the projections are of more than one sweep: %s; give recon those of one, or choose it with retry "
			 "--sweep",
			 text);
}

/* Find the longest step, if it is such a pause. */
static bool find_pause(int attribute, const struct sample *s, long n, struct exposure_pause *ret)
{
	const struct exposure_attribute *a = &exposure_attributes[attribute];
	long at = 0;

	for (long i = 1; i < n; i++)
		if (at == 0 || s[i].x - s[i - 1].x > s[at].x - s[at - 1].x)
			at = i;
	if (at == 0 || !(s[at].x - s[at - 1].x > fmax(PAUSE_DOUBT, PAUSE_RATIO * median_step(s, n)) + time_resolution(s, n)))
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
		long m = exposure_is_time(&exposure_attributes[k]) && !(known && exposure_attributes[k].flags & NAMES_ONLY)
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

		if (!exposure_is_time(&exposure_attributes[k]) || exposure_attributes[k].flags & NAMES_ONLY)
			continue;
		read_values(images, n, k, ret_seconds);
		for (size_t i = 0; i < n; i++) {
			all = all && isfinite(ret_seconds[i]);
			differ = differ || ret_seconds[i] != ret_seconds[0];
		}
		if (all && differ) {
			*ret_name = exposure_attributes[k].name;
			*ret_tag = exposure_attributes[k].tag;
			return true;
		}
	}
	return false;
}
