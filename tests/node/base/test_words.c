/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and names as people and files write them: each unit and each form on both sides of its limit, and what is no such
 * text. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "node/base/bytes_text.h"
#include "node/base/html.h"
#include "node/base/json_get.h"
#include "node/base/network.h"
#include "node/base/nuclides.h"
#include "node/base/own_files.h"
#include "node/base/process_state.h"
#include "node/base/sentence.h"
#include "node/base/time_text.h"
#include "tests/kernels/draw.h"
#include "tests/test.h"

TEST(numbers_of_bytes)
{
	static const struct {
		double bytes;
		const char *text;
	} rows[] = {{0, "0 bytes"},	{9.4, "9 bytes"},   {999.4, "999 bytes"}, {999.5, "1.0 kB"},
		    {9949, "9.9 kB"},	{9950, "10 kB"},    {999499, "999 kB"},	  {999500, "1.0 MB"},
		    {1.25e9, "1.2 GB"}, {123e12, "123 TB"}, {2e15, "2.0 PB"},	  {1e18, "1000 PB"}};
	char text[12];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bytes_text(rows[i].bytes, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

TEST(times)
{
	static const struct {
		double seconds;
		const char *text;
	} rows[] = {{-1, "0.0 s"},     {9.94, "9.9 s"}, {10, "10 s"},	    {119.4, "119 s"},	{120, "2 min"},
		    {7199, "120 min"}, {7200, "2.0 h"}, {172799, "48.0 h"}, {172800, "2 days"}, {864000, "10 days"}};
	char text[TIME_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(time_text_span(rows[i].seconds, text), rows[i].text);
	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_string_equal(time_text(0, "never", text), "never");
	assert_string_equal(time_text(86400 * 365.0 + 1, "never", text), "1971-01-01 02:00:01");
}

TEST(sentences)
{
	char text[12] = "", none[1] = "";

	sentence_add(text, sizeof(text), "One.");
	assert_string_equal(text, "One.");
	sentence_add(text, sizeof(text), "%d.", 2);
	assert_string_equal(text, "One. 2.");
	sentence_add(text, sizeof(text), "Three.");
	assert_string_equal(text, "One. 2. Thr");
	sentence_add(text, sizeof(text), "Four.");
	assert_string_equal(text, "One. 2. Thr");
	sentence_add(none, sizeof(none), "One.");
	assert_string_equal(none, "");
}

TEST(members_of_json)
{
	json_t *o = json_pack("{s:s, s:f, s:i, s:b}", "text", "words", "number", 2.5, "whole", 7, "bool", 1);
	char some[4];

	assert_string_equal(json_get_text(o, "text"), "words");
	assert_string_equal(json_get_text(o, "number"), "");
	assert_near(json_get_number(o, "number"), 2.5, 0);
	assert_near(json_get_number(o, "whole"), 7, 0);
	assert_near(json_get_number(NULL, "number"), 0, 0);
	assert_int_equal(json_get_integer(o, "whole"), 7);
	assert_int_equal(json_get_integer(o, "number"), 0);
	assert_true(json_get_bool(o, "bool"));
	assert_false(json_get_bool(o, "whole"));
	json_get_copy(o, "text", some, sizeof(some));
	assert_string_equal(some, "wor");
	json_decref(o);
}

/* ---- pages ---- */

static void check_escaped(bool metrics, const char *text, const char *escaped)
{
	struct html h GOES(html_clear) = {.metrics = metrics};

	html_text(&h, text);
	assert_string_equal(h.text, escaped);
	assert_int_equal(h.n, strlen(escaped));
}

TEST(texts_of_others)
{
#define HIDDEN "\xef\xbf\xbd"
	/* the first and the last character of each range that is hidden, and their neighbours, which are not */
	static const struct {
		uint32_t first, last;
	} hidden[] = {{0x0b, 0x1f},	{0x7f, 0x9f},	  {0xad, 0xad},	    {0x61c, 0x61c},   {0x200b, 0x200f},
		      {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

	check_escaped(false, "a<b>&\"c'\n\td", "a&lt;b&gt;&amp;&quot;c&#39;  d");
	check_escaped(true, "a<b>&\"c'\n\\d", "a<b>&\\\"c'\\n\\\\d");
	check_escaped(false, "J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x98\x80", "J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x98\x80");
	check_escaped(false, "\xc0\xaf\xed\xa0\x80", HIDDEN HIDDEN HIDDEN HIDDEN HIDDEN); /* overlong, a surrogate */
	check_escaped(false, "J\xf6rg\xc3(\xff", "J" HIDDEN "rg" HIDDEN "(" HIDDEN);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t c = k < 2 ? hidden[i].first - k : hidden[i].last + k - 2;
			bool is_hidden = c >= hidden[i].first && c <= hidden[i].last;
			char text[5] = "";
			int n = 0;

			if (c == '\n')
				continue;
			if (c < 0x80)
				text[n++] = (char)c;
			else if (c < 0x800)
				text[n++] = (char)(0xc0 | c >> 6);
			else if (c < 0x10000)
				text[n++] = (char)(0xe0 | c >> 12);
			else
				text[n++] = (char)(0xf0 | c >> 18);
			for (int shift = c < 0x80 ? 0 : c < 0x800 ? 6 : c < 0x10000 ? 12 : 18; shift > 0; shift -= 6)
				text[n++] = (char)(0x80 | (c >> (shift - 6) & 0x3f));
			check_escaped(false, text, is_hidden ? HIDDEN : text);
			check_escaped(true, text, is_hidden ? HIDDEN : text);
		}
}

TEST(formats_of_pages)
{
	struct html h GOES(html_clear) = {0};

	html_printf(&h, "%d %u %lld %zu %c %s %%|%5d|%.2f|%7.1f|%g|%.3g", -3, 4u, -5000000000LL, (size_t)6000000000, 'x', "<", 42,
		    1.005, 2.25, 1e-7, 12345.0);
	assert_string_equal(h.text, "-3 4 -5000000000 6000000000 x &lt; %|   42|1.00|    2.2|1e-07|1.23e+04");
	html_clear(&h);
	assert_null(h.text);
	assert_int_equal(h.n, 0);
	html_printf(&h, "%300f", 1e308);
	assert_false(h.failed);
	html_printf(&h, "%401d", 1);
	assert_true(h.failed);
}

TEST(sentences_of_pages)
{
	struct html h GOES(html_clear) = {0};

	html_sentences(&h, " A <b> of 1.5 mm. 2 more. Last");
	assert_string_equal(h.text, "<li>A &lt;b&gt; of 1.5 mm.</li>\n<li>2 more.</li>\n<li>Last</li>\n");
	html_clear(&h);
	html_sentences(&h, "");
	assert_true(h.n == 0);
}

TEST(largest_page)
{
	struct html h GOES(html_clear) = {0};
	char *much = calloc(1, HTML_MAX);

	assert_non_null(much);
	html_bytes(&h, much, HTML_MAX / 2);
	html_bytes(&h, much, HTML_MAX / 2 - 1);
	assert_false(h.failed);
	assert_int_equal(h.n, HTML_MAX - 1);
	html_bytes(&h, much, 1);
	assert_true(h.failed);
	assert_int_equal(h.n, HTML_MAX - 1);
	html_put(&h, "");
	assert_true(h.failed);
	html_clear(&h);
	html_bytes(&h, much, HTML_MAX);
	assert_true(h.failed);
	free(much);
}

/* ---- names ---- */

TEST(files_of_this_program)
{
	assert_true(own_file("a/truth.json"));
	assert_true(own_file("a/corrections-2.25.1.json"));
	assert_true(own_file("corrections-1.json"));
	assert_false(own_file("corrections-.json"));
	assert_false(own_file("corrections-1a.json"));
	assert_false(own_file("corrections-1.jso"));
	assert_false(own_file("corrections-1.json.part"));
	assert_false(own_file("truth.json/other"));
	assert_false(own_file("other-truth.json"));
}

/* Every nuclide is found by every spelling, by its codes, within a text, and by half-lives up to 2.5 % from its own. */
TEST(nuclides)
{
	static const struct {
		bool mass_first;
		const char *before, *between, *after;
	} forms[] = {{false, "", "", ""},  {false, "", "-", ""}, {true, "", "", ""},   {true, "[", "", "]"},
		     {true, "(", ")", ""}, {true, "", " ", ""},	 {true, "^", "^", ""}, {false, "", "(", ")"}};
	char list[400], word[60], symbol[8];
	int n = 0;

	nuclide_list(list, sizeof(list));
	for (char *rest, *name = strtok_r(list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest), n++) {
		const struct nuclide *found = nuclide_find(name);
		const char *at = word, *mass = name + strcspn(name, "0123456789");

		assert_non_null(found);
		assert_string_equal(found->name, name);
		assert_ptr_equal(nuclide_find(found->meaning), found);
		assert_ptr_equal(nuclide_of_code(found->code), found);
		assert_ptr_equal(found->srt[0] ? nuclide_of_code(found->srt) : found, found);
		snprintf(symbol, sizeof(symbol), "%.*s", (int)(mass - name), name);
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			snprintf(word, sizeof(word), "%s%s%s%s%s", forms[i].before, forms[i].mass_first ? mass : symbol,
				 forms[i].between, forms[i].mass_first ? symbol : mass, forms[i].after);
			assert_ptr_equal(nuclide_find(word), found);
			at = word;
			assert_ptr_equal(nuclide_in_name(word, &at), found);
			assert_null(nuclide_in_name(word, &at));
		}
		assert_true(nuclide_same_half_life(found->half_life, 1.024 * found->half_life));
		assert_true(nuclide_same_half_life(1.024 * found->half_life, found->half_life));
		assert_false(nuclide_same_half_life(found->half_life, 1.027 * found->half_life));
		assert_false(nuclide_is_generated(found->half_life, found->half_life));
	}
	assert_int_equal(n, 36);
	nuclide_list(list, 6);
	assert_string_equal(list, "C11, ");
}

/* A network contains an address if its first bits are those of the network, and no other. */
TEST(networks)
{
	uint64_t seed = test_seed();
	struct network net, one;
	char text[80];

	for (int k = 0; k < 200; k++) {
		bool v4 = k % 2;
		int whole = v4 ? 32 : 128, bits = draw_int(&seed, 0, whole), flipped = draw_int(&seed, 0, whole - 1);
		uint8_t bytes[16];

		for (int i = 0; i < 16; i++)
			bytes[i] = (uint8_t)draw_int(&seed, 0, 255);
		bytes[0] = v4 ? bytes[0] : 0x20; /* not ::ffff:a.b.c.d */
		inet_ntop(v4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
		assert_true(network_parse(text, &one));
		assert_int_equal(one.bits, 128);
		network_print(&one.address, text, sizeof(text));
		snprintf(text + strlen(text), 10, "/%d", bits);
		assert_true(network_parse(text, &net));
		assert_int_equal(net.bits, bits + 128 - whole);
		assert_true(network_contains(&net, &one));
		one.address.s6_addr[16 - whole / 8 + flipped / 8] ^= (uint8_t)(0x80 >> flipped % 8);
		assert_int_equal(network_contains(&net, &one), flipped >= bits);
	}
	assert_false(network_address(&(struct sockaddr){.sa_family = AF_UNIX}, &one.address));
}

TEST(stopped_processes)
{
	int pid = fork(), status;

	if (pid == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(process_is_stopped(pid));
	assert_false(process_is_stopped(getpid()));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_false(process_is_stopped(pid));
}
