/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence of a syntax error: what is missing, and where; and that libconfig and the walk agree about every text. */
#include "tests/test.h"

#include <ctype.h>
#include <libconfig.h>

#include "node/config/config.h"
#include "node/config/config_syntax.h"

TEST(each_mistake)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *said;
	} rows[] = {
		{"a = ( { b = 1; }\n  { b = 2; } );", 2,
		 "syntax error, column 3: ',' is missing between two entries:   <here>{ b = 2; } );"},
		{"a = { b 1; };", 1, "column 9: '=' is missing after 'b': a = { b <here>1; };"},
		{"a = { b = ; };", 1, "column 11: the value of 'b' is missing: a = { b = <here>; };"},
		{"a = { b = pacs; };", 1, "column 11: the value of 'b' is missing; a text needs quotation marks: "},
		{"a = ( b = 1 );", 1, "column 7: an entry with keys needs '{' before them: "},
		{"a = [ b ];", 1, "column 7: a text needs quotation marks: "},
		{"a = [ 1, ];", 1, "column 10: an entry is missing: "},
		{"\na = {\n b = 1;\n", 2, "column 5: '}' is missing for '{': a = <here>{"},
		{"a = ( { b = 1; );", 1, "column 16: '}' is missing for '{': a = ( { b = 1; <here>);"},
		{"a = { b = 1; } };", 1, "column 16: '}' closes nothing: "},
		{"a = [ 1, 2\nb = 3;", 2, "column 1: ',' or ']' is missing: <here>b"},
		{"a = ( { b = 1; }\nc = 1;", 2, "column 1: ',' or ')' is missing: <here>c"},
		{"a = [ { b = 1; } ];", 1, "column 7: an array in [ ] has no groups or lists"},
		{"\xef\xbb\xbf"
		 "a = 1;",
		 1, "column 1: a byte order mark is not allowed: "},
		{"/* a\n */ a = \"x\"\n \"y\";\n# )\n= 1;", 5, "column 1: a key is missing: <here>= 1;"},
		{"a = 1; b", 1, "column 9: '=' is missing after 'b': a = 1; b<here>"},
		{"a = { b = 1 c = 2, d = \"\\\"}\" }; e : ( ( 1, 2 ), [ 0x1F, 2L ], [], (), {} )", 0, ""},
	};
	struct config_text *text;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char said[CONFIG_SYNTAX_TEXT] = "";

		assert_int_equal(config_text_copy(rows[i].text, "t", &text, &err), 0);
		assert_int_equal(config_syntax_explain(text, said), rows[i].line);
		if (!strstr(said, rows[i].said))
			fail_msg("%s\n%s", rows[i].text, said);
		config_text_free(text);
	}
}

/* Both accept a text, or both refuse it, unless libconfig stops at something else: a name twice, another type in an array. Without
 * strings, which libconfig 1.5 leaks when it refuses what is behind them. */
static void compare(const char *bytes)
{
	struct config_text *text;
	char said[CONFIG_SYNTAX_TEXT];
	struct err err = {0};
	bool accepted;
	unsigned line;
	config_t tree;

	if (config_text_copy(bytes, "t", &text, &err) < 0)
		return; /* a string or a comment that is not closed */
	config_init(&tree);
	accepted = config_read_string(&tree, text->bytes) == CONFIG_TRUE;
	line = config_syntax_explain(text, said);
	if (accepted != (line == 0) && (accepted || !strcmp(config_error_text(&tree), "syntax error")))
		fail_msg("%s by libconfig, line %u of the walk: %s\n%s", accepted ? "accepted" : "refused", line,
			 line ? said : "", bytes);
	config_destroy(&tree);
	config_text_free(text);
}

TEST(walk_agrees_with_libconfig)
{
	static const char base[] = "a = { b = 1; c : 0x1F, d = [ 1, 2 ]; };\n"
				   "e = ( { f = true; }, # (\n ( 1.5, -2 ), 3L );\n/* } */ g = [ ];";
	static const char *pieces[] = {"{", "}", "(",	 ")", "[",     "]",    ",",  ";",
				       "=", ":", "name", "1", "false", "0x1F", "2L", "-1e3"};
	char text[sizeof(base) + 16];

	compare(config_embedded());
	for (size_t at = 0; at < sizeof(base) - 1; at++) {
		snprintf(text, sizeof(text), "%.*s%s", (int)at, base, base + at + 1); /* one character less */
		compare(text);
		snprintf(text, sizeof(text), "%.*s", (int)at, base); /* cut */
		compare(text);
		for (size_t k = 0; !isalnum((unsigned char)base[at]) && k < sizeof(pieces) / sizeof(pieces[0]); k++) {
			snprintf(text, sizeof(text), "%.*s %s %s", (int)at, base, pieces[k], base + at);
			compare(text);
		}
	}
}
