/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of files: which of them are one result, how they are read, and the name of a report. */
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

#include "node/report/report_files.h"

static void find(struct series_files *g)
{
	struct err err = {0};

	assert_done(series_files_find((char *const[]){folder, NULL}, false, g, &err), &err);
}

/* A report is the same if the slices of the series are read only when they are needed. */
TEST(test_lazy)
{
	struct series_files groups GOES(series_files_clear) = {0};
	struct html h[2] = {{0}};
	struct err err = {0};
	struct input in;

	input_make(&in);
	write_series(&in);
	find(&groups);
	assert_int_equal(groups.n, 1);
	assert_int_equal(groups.list[0].n, NZ);
	for (int i = 0; i < 2; i++) {
		const struct report_conf conf = {.lazy = i};

		if (report_volume_make(&groups.list[0], &conf, &h[i], &err) < 0)
			fail_msg("%s", err.msg);
	}
	assert_true(h[0].n > 1000);
	assert_string_equal(h[0].text, h[1].text);
	for (int i = 0; i < 2; i++)
		html_clear(&h[i]);
}

/* The report of the same result has the same name, and replaces that before. */
TEST(test_name)
{
	const struct report_conf conf = {0};
	struct series_files groups GOES(series_files_clear) = {0};
	char *paths[2] = {NULL};
	struct err err = {0};
	struct input in;

	clean();
	input_make(&in);
	write_series(&in);
	find(&groups);
	for (int i = 0; i < 2; i++)
		assert_done(report_volume_write(&groups.list[0], &conf, folder, &paths[i], &err), &err);
	assert_string_equal(paths[0], paths[1]);
	assert_non_null(strstr(paths[0], "/report-PT_"));
	assert_int_equal(entries(), NZ + 1);
	for (int i = 0; i < 2; i++)
		free(paths[i]);
	series_files_clear(&groups);
	find(&groups); /* a report is no result */
	assert_int_equal(groups.n, 1);
	assert_int_equal(groups.n_passed, 1);
}

TESTS_SETUP(start, stop);
