/* SPDX-License-Identifier: Apache-2.0 */
/* The search of the page: what a browser may ask for in the address, and which cases fit. */
#include <time.h>

#include "node/status/status_filter.h"
#include "tests/test.h"

static struct status_filter filter(enum status_field field, const char *value)
{
	struct status_filter f = {0};

	status_filter_set(&f, field, value);
	assert_true(status_filter_valid(&f));
	return f;
}

TEST(test_values)
{
	struct status_filter f;

	assert_string_equal(filter(FIELD_TEXT, "  ACC 17\t ").text, "ACC 17");
	assert_int_equal(filter(FIELD_FROM, "2026-11-23").from, 20261123);
	assert_int_equal(filter(FIELD_TO, "2028-02-29").to, 20280229);
	assert_int_equal(filter(FIELD_PAGE, "1").page, 0);
	assert_int_equal(filter(FIELD_PAGE, "1000000").page, 999999);
	assert_int_equal(filter(FIELD_STATE, "attention").state, GROUP_ATTENTION);
	assert_int_equal(filter(FIELD_STATE, "collecting").state, GROUP_WARNED + JOB_COLLECTING);
	assert_int_equal(filter(FIELD_STATE, "quarantined").state, GROUP_WARNED + JOB_IMPOSSIBLE);
	for (int field = 0; field < STATUS_FIELDS; field++) {
		static const struct status_filter none;

		f = filter((enum status_field)field, "");
		assert_memory_equal(&f, &none, sizeof(f));
		f = filter((enum status_field)field, NULL);
		assert_memory_equal(&f, &none, sizeof(f));
	}
}

/* A value that is not understood changes nothing but the mark that says so. */
TEST(test_hostile_values)
{
	static const struct {
		enum status_field field;
		const char *value;
	} cases[] = {
		{FIELD_FROM, "2026-02-29"}, {FIELD_FROM, "2100-02-29"},	 {FIELD_FROM, "2026-13-01"},
		{FIELD_FROM, "2026-00-10"}, {FIELD_FROM, "2026-11-00"},	 {FIELD_FROM, "2026-11-31"},
		{FIELD_TO, "1969-12-31"},   {FIELD_TO, "20261123"},	 {FIELD_TO, "2026-11-23 "},
		{FIELD_TO, "2026-11-2x"},   {FIELD_TO, "-026-11-23"},	 {FIELD_TO, "2026/11/23"},
		{FIELD_TO, "99999-01-01"},  {FIELD_PAGE, "0"},		 {FIELD_PAGE, "-1"},
		{FIELD_PAGE, "1000001"},    {FIELD_PAGE, "99999999999"}, {FIELD_PAGE, "1e3"},
		{FIELD_PAGE, " 1"},	    {FIELD_PAGE, "0x1"},	 {FIELD_STATE, "Held"},
		{FIELD_STATE, "held "},	    {FIELD_STATE, "none"},	 {FIELD_STATE, "held' OR 1=1 --"},
		{FIELD_STATE, "1"},	    {FIELD_STATE, "<script>"},
	};
	char longest[STATUS_FILTER_TEXT + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct status_filter f = filter(cases[i].field, cases[i].value);

		assert_int_equal(f.wrong, 1u << cases[i].field);
		f.wrong = 0;
		assert_true(f.state == 0 && f.from == 0 && f.to == 0 && f.page == 0 && !f.text[0]);
	}
	memset(longest, 'a', sizeof(longest));
	longest[STATUS_FILTER_TEXT] = '\0';
	assert_int_equal(filter(FIELD_TEXT, longest).wrong, 1u << FIELD_TEXT);
	longest[STATUS_FILTER_TEXT - 1] = '\0';
	assert_string_equal(filter(FIELD_TEXT, longest).text, longest);
}

TEST(test_structures_of_an_attacker)
{
	struct status_filter f = {0};

	memset(f.text, 'a', sizeof(f.text));
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.state = -1};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.state = 1000};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.from = 20260230};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.to = -20260220};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.page = -1};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.page = STATUS_FILTER_PAGE_MAX};
	assert_false(status_filter_valid(&f));
	f = (struct status_filter){.wrong = 1u << STATUS_FIELDS};
	assert_false(status_filter_valid(&f));
}

/* The query of a link gives the same search when it is read; nothing in it ends an attribute or a parameter. */
TEST(test_queries)
{
	struct status_filter f = {0};
	char query[STATUS_FILTER_QUERY];

	status_filter_query(&f, 0, query, sizeof(query));
	assert_string_equal(query, "");
	status_filter_set(&f, FIELD_TEXT, "a b&page=9\"<\xc3\xb6");
	status_filter_set(&f, FIELD_STATE, "held");
	status_filter_set(&f, FIELD_TO, "2026-11-23");
	status_filter_query(&f, 4, query, sizeof(query));
	assert_string_equal(query, "?q=a%20b%26page%3D9%22%3C%C3%B6&state=held&to=2026-11-23&page=5");
	memset(f.text, '"', STATUS_FILTER_TEXT - 1);
	f.from = f.to;
	status_filter_query(&f, STATUS_FILTER_PAGE_MAX - 1, query, sizeof(query));
	assert_string_equal(query + strlen(query) - 13, "&page=1000000");
}

static double at(int year, int month, int day, int hour)
{
	struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_isdst = -1};

	return (double)mktime(&tm);
}

TEST(test_matches)
{
	struct job_view v = {.state = JOB_HELD, .opened = at(2026, 11, 23, 1)};
	struct status_filter f = {0};

	assert_true(status_filter_matches(&f, &v));
	f.from = f.to = 20261123;
	assert_true(status_filter_matches(&f, &v));
	v.opened = at(2026, 11, 23, 23);
	assert_true(status_filter_matches(&f, &v));
	f.to = 20261122;
	assert_false(status_filter_matches(&f, &v));
	f.from = 0;
	assert_false(status_filter_matches(&f, &v));
	f = filter(FIELD_FROM, "2026-11-24");
	assert_false(status_filter_matches(&f, &v));
	f = filter(FIELD_STATE, "held");
	assert_true(status_filter_matches(&f, &v));
	f = filter(FIELD_STATE, "attention");
	assert_true(status_filter_matches(&f, &v));
	f = filter(FIELD_STATE, "done");
	assert_false(status_filter_matches(&f, &v));
	v.state = JOB_CLEANED;
	assert_true(status_filter_matches(&f, &v));
	f = filter(FIELD_STATE, "delivered");
	assert_false(status_filter_matches(&f, &v));
}
