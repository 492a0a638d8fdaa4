/* SPDX-License-Identifier: Apache-2.0 */
/* pet_times.c - moments of an acquisition: dates and times of DICOM and of Interfile headers as seconds. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dicom/object/dicom_tags.h"
#include "node/sinogram/sinogram.h"

#define DAY 86400.0
#define SAME_TIME 60.0	     /* s: two attributes of one injection; clocks */
#define DECAY_ROUNDED 1.05   /* factors of other half-lives and approximations */
#define USUAL_FACTORS_MOST 4 /* of a correction to the start: two half-lives later */

static int two_digits(const char *c)
{
	return 10 * (c[0] - '0') + c[1] - '0';
}

/* Does the text begin with a day of the calendar, YYYYMMDD? */
static bool is_date(const char *text, struct tm *ret_day)
{
	struct tm day = {0}, same;

	if (strspn(text, "0123456789") < 8)
		return false;
	day.tm_year = 100 * two_digits(text) + two_digits(text + 2) - 1900;
	day.tm_mon = two_digits(text + 4) - 1;
	day.tm_mday = two_digits(text + 6);
	same = day;
	timegm(&same); /* makes 1 March of 29 February */
	*ret_day = day;
	return same.tm_mon == day.tm_mon && same.tm_mday == day.tm_mday;
}

/* Return the value of a point and decimals; 0: the text is empty. */
static double parse_fraction(const char *text)
{
	double value = 0, digit = 0.1;

	for (const char *c = text; *c && *++c; digit /= 10)
		value += digit * (*c - '0');
	return value;
}

/* Is it a time of day: HH, HHMM, HHMMSS or HHMMSS.FFFFFF? */
static bool is_time(const char *text, double *ret_seconds)
{
	size_t n = strspn(text, "0123456789");
	int h, m, s;

	if ((n != 2 && n != 4 && n != 6) || (text[n] && (n != 6 || text[n] != '.' || text[7 + strspn(text + 7, "0123456789")])))
		return false;
	h = two_digits(text);
	m = n > 2 ? two_digits(text + 2) : 0;
	s = n > 4 ? two_digits(text + 4) : 0;
	*ret_seconds = 3600.0 * h + 60.0 * m + s + parse_fraction(text + n);
	return h < 24 && m < 60 && s <= 60;
}

bool pet_facts_moment(const char *date, const char *time, double *ret_seconds)
{
	struct tm day;
	double seconds;

	if (!is_date(date, &day) || !is_time(time, &seconds))
		return false;
	*ret_seconds = (double)timegm(&day) + seconds;
	return true;
}

void pet_facts_format(double seconds, char ret_date[9], char ret_time[17])
{
	double whole = floor(seconds), fraction = round(1000 * (seconds - whole));
	time_t when = (time_t)whole + (fraction >= 1000);
	struct tm tm;

	gmtime_r(&when, &tm);
	strftime(ret_date, 9, "%Y%m%d", &tm);
	strftime(ret_time, 17, "%H%M%S", &tm);
	if (fraction > 0 && fraction < 1000)
		snprintf(ret_time + 6, 11, ".%03d", (int)fraction);
}

bool sinogram_begin(const struct interfile *h, double *ret_seconds)
{
	if (!pet_facts_moment(h->date, h->time, ret_seconds))
		return false;
	*ret_seconds += isfinite(h->start) ? h->start : 0;
	return true;
}

bool pet_facts_offset(const char *zone, double *ret_seconds)
{
	double seconds;

	if ((zone[0] != '+' && zone[0] != '-') || strlen(zone) != 5 || strspn(zone + 1, "0123456789") != 4)
		return false;
	seconds = 3600.0 * two_digits(zone + 1) + 60.0 * two_digits(zone + 3);
	*ret_seconds = zone[0] == '-' ? -seconds : seconds;
	return two_digits(zone + 3) < 60 && seconds <= (zone[0] == '-' ? 12 : 14) * 3600.0;
}

/* Read a DT; ret_zone: its offset, "" if it has none. False: it is none with an hour. */
static bool read_date_time(const char *text, double *ret_seconds, char ret_zone[6])
{
	size_t n = strcspn(text, "+-");
	char date[9], time[27];

	if (n < 10)
		return false;
	snprintf(date, sizeof(date), "%.8s", text);
	snprintf(time, sizeof(time), "%.*s", (int)n - 8, text + 8);
	snprintf(ret_zone, 6, "%.5s", text + n);
	return pet_facts_moment(date, time, ret_seconds);
}

/* Find the day of a time alone. */
static enum pet_injection find_day(double injected, double start, double end, double *ret)
{
	*ret = injected;
	if (injected <= start && injected + DAY <= end)
		*ret += DAY;
	return *ret <= end ? PET_INJECTION_KNOWN : PET_INJECTION_NO_DAY;
}

enum pet_injection pet_facts_injection(const struct pet_facts *f, double start, double end, double *ret_seconds)
{
	double injected, offset, own;
	char date[9], time[17], zone[6];

	if (!f->injected[0])
		return PET_INJECTION_NONE;
	pet_facts_format(start, date, time);
	if (pet_facts_moment(date, f->injected, &injected)) /* a time alone ("081500.000000") */
		return find_day(injected, start, fmax(start, end), ret_seconds);
	if (!read_date_time(f->injected, &injected, zone))
		return PET_INJECTION_INVALID;
	if (zone[0] && (!f->zone[0] || !pet_facts_offset(f->zone, &own)))
		return PET_INJECTION_NO_ZONE;
	if (zone[0] && !pet_facts_offset(zone, &offset))
		return PET_INJECTION_INVALID;
	*ret_seconds = zone[0] ? injected - offset + own : injected;
	return PET_INJECTION_KNOWN;
}

bool pet_facts_says_injection(const char *text)
{
	struct pet_facts f = {.zone = "+0000"};
	enum pet_injection found;
	double seconds;

	snprintf(f.injected, sizeof(f.injected), "%s", text);
	found = pet_facts_injection(&f, 0, 0, &seconds);
	return found != PET_INJECTION_NONE && found != PET_INJECTION_INVALID;
}

/* ---- decay ---- */

bool pet_facts_decay_range(const struct pet_facts *f, bool admin, double ret_range[2])
{
	double start, from = NAN, lambda = M_LN2 / f->half_life, delay, rounded;
	bool known = f->half_life > 0 && f->duration > 0 && pet_facts_moment(f->acquisition_date, f->acquisition_time, &start);

	ret_range[0] = 1 / DECAY_ROUNDED;
	ret_range[1] = admin ? exp2(PET_HALF_LIVES_MOST) : USUAL_FACTORS_MOST;
	if (known && admin)
		known = !pet_facts_day_assumed(f) &&
			pet_facts_injection(f, start, start + f->duration, &from) == PET_INJECTION_KNOWN;
	else if (known)
		known = pet_facts_moment(f->series_date, f->series_time, &from);
	if (!known || from > start + SAME_TIME)
		return false;
	delay = fmax(start - from, 0);
	rounded = DECAY_ROUNDED * exp(lambda * SAME_TIME);
	ret_range[0] = exp(lambda * (admin ? delay : 0)) / rounded;
	ret_range[1] = exp(lambda * delay) * lambda * f->duration / -expm1(-lambda * f->duration) * rounded;
	return true;
}

/* ---- both attributes ---- */

/* Find start and end of the acquisition of an object. */
static bool find_acquisition(const struct pet_facts *f, double *ret_start, double *ret_end)
{
	if (!pet_facts_moment(f->acquisition_date, f->acquisition_time, ret_start) &&
	    !pet_facts_moment(f->series_date, f->series_time, ret_start))
		return false;
	*ret_end = *ret_start + (f->duration > 0 ? f->duration : 0);
	return true;
}

/* Would the day before be as possible? */
static bool is_day_known(const struct pet_facts *f)
{
	return f->half_life > 0 && DAY > PET_HALF_LIVES_MOST * f->half_life;
}

bool pet_facts_day_assumed(const struct pet_facts *f)
{
	double seconds;

	return pet_facts_moment("20000101", f->injected, &seconds) && !is_day_known(f);
}

bool pet_facts_injection_differs(const struct pet_facts *f, double injected)
{
	char date[9], time[17];
	double other;

	pet_facts_format(injected, date, time);
	return pet_facts_moment(date, f->injected_time, &other) && fabs(remainder(injected - other, DAY)) > SAME_TIME;
}

void pet_facts_complete_injection(struct item_writer *root)
{
	struct item_writer item = {.item = dicom_item_at(root->item, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0),
				   .err = root->err,
				   .rc = root->rc};
	double start = 0, end = 0, injected;
	char date[9], time[17], moment[27];
	struct pet_facts f;
	bool started, alone;

	if (!item.item || root->rc < 0)
		return;
	pet_facts_read(root->item, &f);
	started = find_acquisition(&f, &start, &end);
	alone = pet_facts_moment("20000101", f.injected, &injected);
	if ((alone && (!started || !is_day_known(&f))) || pet_facts_injection(&f, start, end, &injected) != PET_INJECTION_KNOWN)
		return;
	pet_facts_format(injected, date, time);
	snprintf(moment, sizeof(moment), "%s%s", date, time);
	if (alone || strpbrk(f.injected, "+-"))
		item_put_text(&item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, moment);
	if (!alone && !f.injected_time[0])
		item_put_text(&item, TAG_RADIOPHARMACEUTICAL_START_TIME, time);
	item_end(root, &item);
}
