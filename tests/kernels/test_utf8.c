/* SPDX-License-Identifier: Apache-2.0 */
/* The UTF-8 decoder compared with an encoder, for every code point, and with a count, for every sequence of bytes. */
#include "kernels/utf8.h"
#include "tests/test.h"

static size_t encode(uint32_t c, char ret_text[5])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	memset(ret_text, 0, 5);
	for (size_t i = n; i-- > 1; c >>= 6)
		ret_text[i] = (char)(0x80 | (c & 0x3f));
	ret_text[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
	return n;
}

TEST(test_every_code_point)
{
	for (uint32_t c = 0; c <= 0x1fffff; c++) {
		char text[5];
		uint32_t code = UINT32_MAX;
		size_t n = encode(c, text), got = utf8_decode(text, &code);
		int exists = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);

		assert_int_equal(got, exists ? n : 0);
		assert_int_equal(code, exists ? c : UINT32_MAX);
	}
}

/* There are as many well-formed sequences of two and three bytes as code points, so no overlong form is accepted. */
TEST(test_every_sequence)
{
	size_t count[5] = {0};
	uint32_t code;

	for (uint32_t i = 0x800000; i <= 0xffffff; i++) {
		const char text[] = {(char)(i >> 16), (char)(i >> 8), (char)i, 0};

		count[utf8_decode(text, &code)]++;
	}
	assert_int_equal(count[1], 0);
	assert_int_equal(count[2], (0x800 - 0x80) * 256);
	assert_int_equal(count[3], 0x10000 - 0x800 - 0x800);
	assert_int_equal(count[4], 0); /* the fourth byte is the terminator */
}

TEST(test_refused)
{
	static const char *const texts[] = {"\xfc\x80\x80\x80\x80\x80", "\xff",	    "\x80", "\xf0\x80\x80\xaf",
					    "\xf4\x90\x80\x80",		"\xe2\x82", "\xc3"};
	uint32_t code;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(utf8_decode(texts[i], &code), 0);
}
