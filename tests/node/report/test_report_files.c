/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of files: which of them are one result, the memory that a report may need, and its name. */
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

#include "node/report/report_files.h"

static void find(struct series_files *g)
{
	struct err err = {0};

	assert_done(series_files_find((char *const[]){folder, NULL}, false, g, &err), &err);
}

static void make(const struct series_volume *g, size_t most, int expected, const char *sentence)
{
	const struct report_conf conf = {.most_bytes = most};
	struct err err = {0};
	struct html h = {0};

	if (report_volume_make(g, &conf, &h, &err) != expected)
		fail_msg("at most %zu bytes: %s", most, err.msg);
	assert_true((h.n > 0) == (expected == 0));
	if (sentence && !strstr(err.msg, sentence))
		fail_msg("\"%s\" is not in \"%s\"", sentence, err.msg);
	html_clear(&h);
}

/* A series whose values need more than allowed is refused before they are read. */
TEST(test_memory)
{
	const size_t bytes = (size_t)NX * NY * NZ * sizeof(float);
	struct series_files groups = {0};
	struct series_report report;
	struct input in;
	char sentence[64];

	input_make(&in);
	report = write_series(&in);
	find(&groups);
	assert_int_equal(groups.n, 1);
	assert_int_equal(groups.list[0].n, NZ);
	make(&groups.list[0], 0, 0, NULL);
	make(&groups.list[0], bytes, 0, NULL);
	snprintf(sentence, sizeof(sentence), "the series has %d objects of %d x %d pixels", NZ, NX, NY);
	make(&groups.list[0], bytes - 1, -EFBIG, sentence);
	series_files_clear(&groups);
	series_report_clear(&report);
	input_clear(&in);
}

/* The report of the same result has the same name, and replaces that before. */
TEST(test_name)
{
	const struct report_conf conf = {0};
	struct series_files groups = {0};
	struct series_report report;
	char *paths[2] = {NULL};
	struct err err = {0};
	struct input in;

	clean();
	input_make(&in);
	report = write_series(&in);
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
	series_files_clear(&groups);
	series_report_clear(&report);
	input_clear(&in);
}

TESTS_SETUP(start, stop);
