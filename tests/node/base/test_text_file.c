/* SPDX-License-Identifier: Apache-2.0 */
/* Small text files at their limit, and what is no file. */
#include "node/base/text_file.h"
#include "tests/test.h"

static char folder[64], path[100];

static int read_most(size_t most, char **ret_text, size_t *ret_n, struct err *err)
{
	return text_file_read(path, most, "kind of file", ret_text, ret_n, err);
}

TEST(written_and_read)
{
	static const char *const texts[] = {"", "a", "two\nlines\n"};
	char *text = NULL;
	size_t n;
	struct err err = {0};

	for (size_t i = 0; i < 3; i++) {
		size_t length = strlen(texts[i]);

		assert_int_equal(text_file_write(path, texts[i], length, &err), 0);
		assert_int_equal(read_most(length, &text, &n, &err), 0);
		assert_int_equal(n, length);
		assert_string_equal(text, texts[i]);
		free(text);
	}
	assert_error(read_most(9, &text, &n, &err), &err, EBADMSG, "more than 9 bytes");
	assert_int_equal(text_file_write(path, "a\0b", 3, &err), 0); /* shorter than before, and with a byte 0 */
	assert_int_equal(read_most(10, &text, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(text, "a\0b", 4);
	free(text);
}

struct row {
	REFUSED;
	int (*prepare)(const char *at);
	bool write;
};

static int make_folder(const char *at)
{
	return mkdir(at, 0700);
}

static int make_pipe(const char *at)
{
	return mkfifo(at, 0600);
}

static int make_link(const char *at)
{
	return symlink("/dev/null", at);
}

static int make_nothing(const char *at)
{
	return 0;
}

static const struct row refused[] = {
	{{"no file", ENOENT, "text"}, make_nothing},
	{{"a folder", EBADMSG, "but a folder"}, make_folder},
	{{"a pipe, which is not waited for", EBADMSG, "not a regular file"}, make_pipe},
	{{"a link to a device", EBADMSG, "not a regular file"}, make_link},
	{{"a folder to write", EISDIR, "text"}, make_folder, true},
	{{"a link to write to", ELOOP, "text"}, make_link, true},
};

static int try_row(const void *row, struct err *err)
{
	const struct row *r = row;
	char *text = NULL;
	size_t n;
	int rc;

	remove(path);
	assert_int_equal(r->prepare(path), 0);
	rc = r->write ? text_file_write(path, "a", 1, err) : read_most(10, &text, &n, err);
	assert_null(text);
	remove(path);
	return rc;
}

REFUSES(what_is_no_file, refused, try_row)

static int set_up(void **state)
{
	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/text", folder);
	return 0;
}

TESTS_SETUP(set_up, NULL);
