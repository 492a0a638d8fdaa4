/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_filter.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/base/url.h"
#include "node/jobs/node_facts.h"
#include "node/status/status_text.h"

#define BLANKS " \t\r\n"
#define YEAR_MIN 1970

static const char *const fields[STATUS_FIELDS] = {"q", "state", "from", "to", "page"};

const char *status_filter_field(enum status_field field)
{
	return fields[field];
}

/* Read n digits. Returns -1 if there are others. */
static int read_digits(const char *text, size_t n)
{
	int value = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + (text[i] - '0');
	}
	return value;
}

static bool day_valid(int year, int month, int day)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return year >= YEAR_MIN && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (month == 2 && leap);
}

/* Returns 0 if the text is not a day such as "2026-11-23". */
static int read_day(const char *text)
{
	int year, month, day;

	if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
		return 0;
	year = read_digits(text, 4);
	month = read_digits(text + 5, 2);
	day = read_digits(text + 8, 2);
	return day_valid(year, month, day) ? 10000 * year + 100 * month + day : 0;
}

static int read_page(const char *text)
{
	size_t n = strlen(text);
	int page = n >= 1 && n <= 7 ? read_digits(text, n) : -1;

	return page >= 1 && page <= STATUS_FILTER_PAGE_MAX ? page - 1 : -1;
}

bool status_filter_state(int choice, const char **ret_value, const char **ret_label)
{
	static const char *const groups[][2] = {{"", "All"},
						{"attention", "Needs attention"},
						{"work", "In work"},
						{"done", "Done"},
						{"warned", "Delivered, with warnings"}};
	struct job_view v = {.state = (enum job_state)(choice - GROUP_WARNED)};

	if (choice < 0 || choice > GROUP_WARNED + JOB_IMPOSSIBLE)
		return false;
	if (choice <= GROUP_WARNED) {
		*ret_value = groups[choice][0];
		*ret_label = groups[choice][1];
		return true;
	}
	*ret_value = job_state_name(v.state);
	status_text_state(&v, ret_label);
	return true;
}

/* Returns 0 if there is no such choice. */
static int read_state(const char *text)
{
	const char *value, *label;

	for (int choice = 1; status_filter_state(choice, &value, &label); choice++)
		if (!strcmp(value, text))
			return choice;
	return 0;
}

static bool read_text(const char *text, char ret[STATUS_FILTER_TEXT])
{
	size_t n;

	text += strspn(text, BLANKS);
	n = strlen(text);
	while (n > 0 && strchr(BLANKS, text[n - 1]))
		n--;
	if (n >= STATUS_FILTER_TEXT)
		return false;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return true;
}

void status_filter_set(struct status_filter *f, enum status_field field, const char *value)
{
	bool good = true;
	int number = 0;

	if (!value || !value[0])
		return;
	switch (field) {
	case FIELD_TEXT:
		good = read_text(value, f->text);
		break;
	case FIELD_STATE:
		good = (number = read_state(value)) > 0;
		f->state = good ? number : 0;
		break;
	case FIELD_FROM:
		good = (number = read_day(value)) > 0;
		f->from = good ? number : 0;
		break;
	case FIELD_TO:
		good = (number = read_day(value)) > 0;
		f->to = good ? number : 0;
		break;
	case FIELD_PAGE:
		good = (number = read_page(value)) >= 0;
		f->page = good ? number : 0;
		break;
	default:
		return;
	}
	if (!good)
		f->wrong |= 1u << field;
}

static bool stored_day_valid(int day)
{
	return day == 0 || day_valid(day / 10000, day / 100 % 100, day % 100);
}

bool status_filter_valid(const struct status_filter *f)
{
	const char *value, *label;

	return memchr(f->text, '\0', sizeof(f->text)) && status_filter_state(f->state, &value, &label) &&
	       stored_day_valid(f->from) && stored_day_valid(f->to) && f->page >= 0 && f->page < STATUS_FILTER_PAGE_MAX &&
	       f->wrong < 1u << STATUS_FIELDS;
}

void status_filter_day(int day, char *ret, size_t size)
{
	if (day == 0)
		snprintf(ret, size, "%s", "");
	else
		snprintf(ret, size, "%04d-%02d-%02d", day / 10000, day / 100 % 100, day % 100);
}

static void add_field(char *ret, size_t size, const char *field, const char *value)
{
	size_t n = strlen(ret);

	if (!value[0] || n + 12 > size)
		return;
	n += (size_t)snprintf(ret + n, size - n, "%c%s=", n ? '&' : '?', field);
	url_encode(value, ret + n, size - n);
}

void status_filter_query(const struct status_filter *f, int page, char *ret, size_t size)
{
	const char *state = "", *label;
	char day[32];

	ret[0] = '\0';
	add_field(ret, size, fields[FIELD_TEXT], f->text);
	status_filter_state(f->state, &state, &label);
	add_field(ret, size, fields[FIELD_STATE], state);
	status_filter_day(f->from, day, sizeof(day));
	add_field(ret, size, fields[FIELD_FROM], day);
	status_filter_day(f->to, day, sizeof(day));
	add_field(ret, size, fields[FIELD_TO], day);
	snprintf(day, sizeof(day), "%d", page + 1);
	add_field(ret, size, fields[FIELD_PAGE], page > 0 ? day : "");
}

enum status_group status_filter_group(const struct job_view *v)
{
	if (node_facts_job_needs_attention(v))
		return GROUP_ATTENTION;
	switch (v->state) {
	case JOB_DELIVERED:
	case JOB_CANCELLED:
	case JOB_CLEANED:
		return GROUP_DONE;
	default:
		return GROUP_WORK;
	}
}

/* A search asks for the day of every case, in the order of their times: those within a quarter of an hour are of one day, because each
 * offset from UTC is a multiple of it. */
static int day_of(double when)
{
	static time_t quarter = -1;
	static int day;
	time_t t = (time_t)when;
	struct tm at;

	if (quarter != t / 900) {
		day = localtime_r(&t, &at) ? 10000 * (at.tm_year + 1900) + 100 * (at.tm_mon + 1) + at.tm_mday : 0;
		quarter = t / 900;
	}
	return day;
}

bool status_filter_matches(const struct status_filter *f, const struct job_view *v)
{
	int day;

	if (f->state > GROUP_WARNED    ? (int)v->state != f->state - GROUP_WARNED
	    : f->state == GROUP_WARNED ? !job_view_is_warned(v)
				       : f->state > 0 && (int)status_filter_group(v) != f->state)
		return false;
	if (f->from == 0 && f->to == 0)
		return true;
	day = day_of(v->opened);
	return (f->from == 0 || day >= f->from) && (f->to == 0 || day <= f->to);
}
