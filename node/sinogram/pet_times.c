/* SPDX-License-Identifier: Apache-2.0 */
/* pet_times.c - moments of an acquisition: dates and times of DICOM and of Interfile headers as seconds. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/sinogram/sinogram.h"

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
static double fraction_of(const char *text)
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
	*ret_seconds = 3600.0 * h + 60.0 * m + s + fraction_of(text + n);
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
