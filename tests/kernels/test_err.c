/* SPDX-License-Identifier: Apache-2.0 */
/* The error record: codes, places, and messages that are one line of UTF-8 for any input. */
#include "tests/test.h"

TEST(test_codes)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, EBADMSG, "value %d", 7), -EBADMSG);
	assert_int_equal(err.code, EBADMSG);
	assert_string_equal(err.msg, "value 7");
	assert_int_equal(err_prefix(&err, "file %s", "a"), -EBADMSG);
	assert_string_equal(err.msg, "file a: value 7");
	assert_int_equal(err_set(NULL, EBADMSG, "x"), -EBADMSG);
	assert_int_equal(err_set(&err, 0, "no code"), -EIO);
	assert_int_equal(err_prefix(NULL, "x"), -EIO);
}

TEST(test_clean)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{"plain", "plain"},
		{"M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x98\x80", "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"M\xfcller", "M?ller"}, /* ISO_IR 100 */
		{"two\nlines\t\x1b[2J\x7f", "two?lines??[2J?"},
		{"cut \xe2\x82", "cut ??"},
		{"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "?? ??? ????"}, /* overlong */
		{"\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"},		   /* a surrogate, above U+10FFFF */
	};
	struct err err = {0};
	char text[64], longest[600];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(text, cases[i].text);
		err_clean(text);
		assert_string_equal(text, cases[i].clean);
	}
	err_set(&err, EIO, "of '%s'", "M\xfcller\n");
	assert_string_equal(err.msg, "of 'M?ller?'");
	err_prefix(&err, "in \xff");
	assert_string_equal(err.msg, "in ?: of 'M?ller?'");
	/* a character that the box cuts in two */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + sizeof(err.msg) - 2, "\xc3\xbc", 2);
	longest[sizeof(longest) - 1] = '\0';
	err_set(&err, EIO, "%s", longest);
	assert_string_equal(err.msg + sizeof(err.msg) - 3, "x?");
}
