/* SPDX-License-Identifier: Apache-2.0 */
/* Results of an earlier benchmark: what is read, what is no result. */
#include "node/tools/bench_compare.h"
#include "tests/test.h"

static const char *write_text(const char *text)
{
	static char folder[64];
	const char *path;

	if (!folder[0])
		test_folder(folder, sizeof(folder));
	path = test_path(folder, "earlier.json");
	test_put_file(path, text, strlen(text));
	return path;
}

#define LINE(work, device, sizes, seconds, more)                                                                                 \
	"{\"work\": \"" work "\", \"device\": \"" device "\", \"sizes\": \"" sizes "\", \"seconds\": " seconds more "}\n"

struct row {
	REFUSED;
	const char *text;
};

static const struct row refused[] = {
	{{"nothing", EBADMSG, "none of its 0"}, ""},
	{{"no JSON", EBADMSG, "JSON object 1"}, "hello"},
	{{"a list", EBADMSG, "JSON object 1"}, "[1]"},
	{{"a second line that is damaged", EBADMSG, "JSON object 2"}, LINE("a", "cpu", "s", "1", "") "{"},
	{{"no work", EBADMSG, "none of its 1"}, "{\"device\": \"cpu\", \"sizes\": \"s\", \"seconds\": 1}"},
	{{"no device", EBADMSG, "none of its 1"}, "{\"work\": \"a\", \"sizes\": \"s\", \"seconds\": 1}"},
	{{"no sizes", EBADMSG, "none of its 1"}, "{\"work\": \"a\", \"device\": \"cpu\", \"seconds\": 1}"},
	{{"no seconds", EBADMSG, "none of its 1"}, "{\"work\": \"a\", \"device\": \"cpu\", \"sizes\": \"s\"}"},
	{{"0 seconds", EBADMSG, "none of its 1"}, LINE("a", "cpu", "s", "0", "")},
	{{"seconds as text", EBADMSG, "none of its 1"}, LINE("a", "cpu", "s", "\"1\"", "")},
};

static int try_row(const void *row, struct err *err)
{
	struct bench_earlier *e = NULL;
	int rc = bench_earlier_read(write_text(((const struct row *)row)->text), &e, err);

	bench_earlier_free(e);
	return rc;
}

REFUSES(no_results, refused, try_row)

TEST(results)
{
	struct bench_earlier *e = NULL;
	struct err err = {0};

	assert_int_equal(
		bench_earlier_read(write_text(LINE("a", "cpu", "s", "1", "") LINE("a", "cpu", "s", "2", "") LINE(
					   "a", "cpu", "t", "3",
					   ", \"processor\": \"P\"") "{\"results\": [1, " LINE("b", "cuda:0", "s", "4", "") "]}"),
				   &e, &err),
		0);
	assert_near(bench_earlier_seconds(e, "a", "cpu", "s", NULL), 2, 0); /* the last one */
	assert_near(bench_earlier_seconds(e, "a", "cpu", "s", "P"), 2, 0);  /* it does not say which processor */
	assert_near(bench_earlier_seconds(e, "a", "cpu", "t", "P"), 3, 0);
	assert_near(bench_earlier_seconds(e, "a", "cpu", "t", "Q"), 0, 0);
	assert_near(bench_earlier_seconds(e, "b", "cuda:0", "s", NULL), 4, 0);
	assert_near(bench_earlier_seconds(e, "a", "cuda:0", "s", NULL), 0, 0);
	assert_near(bench_earlier_seconds(e, "b", "cpu", "s", NULL), 0, 0);
	assert_null(bench_earlier_free(e));
	assert_int_equal(bench_earlier_read("/none/earlier.json", &e, &err), -ENOENT);
	assert_null(bench_earlier_free(NULL));
}
