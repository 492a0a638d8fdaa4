/* SPDX-License-Identifier: Apache-2.0 */
/* The languages of the status page: the table of texts is whole, and which language a browser gets. */
#include <ctype.h>

#include "node/base/language.h"
#include "node/jobs/job_hint.h"
#include "node/status/say.h"
#include "node/status/status.h"
#include "node/status/status_text.h"
#include "tests/test.h"

/* Write what a translation must have in common with the English text: conversions (%w is a %s whose value is said), {names}, tags,
 * blanks at both ends. */
static void frame_of(const char *text, char *ret, size_t size)
{
	size_t n = strlen(text), used = 0;
	const char *end;

	used += (size_t)snprintf(ret, size, "%s%s:", text[0] == ' ' ? "_" : "", n && text[n - 1] == ' ' ? "_" : "");
	for (const char *c = text; *c; c++) {
		end = *c == '%'	  ? c + 1 + strspn(c + 1, "0123456789.lz") + 1
		      : *c == '<' ? strchr(c, '>') + 1
		      : *c == '{' ? strchr(c, '}') + 1
				  : c;
		if (end > c)
			used += (size_t)snprintf(ret + used, size - used, "%.*s ", (int)(end - c),
						 strncmp(c, "%w", 2) ? c : "%s");
		c = end > c ? end - 1 : c;
	}
	assert_true(used < size);
}

static void assert_whole(const char *const *row)
{
	bool none = !row[LANGUAGE_DE] && !row[LANGUAGE_ES] && !row[LANGUAGE_PT];
	char english[200], other[200];

	frame_of(row[LANGUAGE_EN], english, sizeof(english));
	for (int l = LANGUAGE_EN; l < LANGUAGES; l++) {
		const char *said = row[l] ? row[l] : row[LANGUAGE_EN];

		if (!row[l] && !none)
			fail_msg("\"%s\" has no text in %s", row[LANGUAGE_EN], language_name((enum language)l));
		frame_of(said, other, sizeof(other));
		if (!said[0] || strcmp(english, other) != 0 || strpbrk(said, "&\"\n"))
			fail_msg("\"%s\": %s in English, but %s in \"%s\"", row[LANGUAGE_EN], english, other, said);
	}
}

TEST(test_table)
{
	const char *const *row, *const *before = NULL;
	size_t i;

	for (i = 0; (row = say_row(i)); before = row, i++) {
		if (before && strcmp(before[LANGUAGE_EN], row[LANGUAGE_EN]) >= 0)
			fail_msg("\"%s\" is not in the order of strcmp() behind \"%s\"", row[LANGUAGE_EN], before[LANGUAGE_EN]);
		assert_whole(row);
		for (int l = LANGUAGE_EN; l < LANGUAGES; l++) /* it is found */
			assert_string_equal(say((enum language)l, row[LANGUAGE_EN]), row[l] ? row[l] : row[LANGUAGE_EN]);
	}
	assert_true(i > 300);
	assert_null(say_row(i + 1));
	for (i = 0; (row = say_sentence_row(i)); i++)
		assert_whole(row);
	assert_true(i > 80);
	assert_null(say_sentence_row(i + 1));
}

/* Sentences with values: as a format makes them, with clauses and words inside; reasons and names stay as they are. */
TEST(test_sentences_with_values)
{
	static const struct {
		const char *english, *german;
	} rows[] = {
		{"Results cannot be sent to pacs: it refused: a. 2 b: c. 11 cases wait for it; the node tries again automatically.",
		 "Ergebnisse können nicht an pacs gesendet werden: it refused: a. 2 b: c. 11 Fälle warten darauf; der Knoten "
		 "versucht es von selbst noch einmal."},
		{"Results cannot be sent to pacs: no answer. 1 case waits for it; the node tries again automatically.",
		 "Ergebnisse können nicht an pacs gesendet werden: keine Antwort. 1 Fall wartet darauf; der Knoten versucht es "
		 "von selbst noch einmal."},
		{"Results cannot be sent to study: x. 1 case waits for it; the node tries again automatically.",
		 "Ergebnisse können nicht an study gesendet werden: x. 1 Fall wartet darauf; der Knoten versucht es von selbst noch "
		 "einmal."}, /* the name of a site, which is also a word of the node */
		{"Results cannot be sent to pacs: x. many cases wait for it; the node tries again automatically.", NULL},
		{"Results cannot be sent to pacs", NULL},
		{"the headers name different patients: Patient ID (0010,0020) differs between this case and case 3 of the same study",
		 "die Kopfdaten nennen verschiedene Patienten: Patient ID (0010,0020) unterscheidet sich zwischen diesem Fall und "
		 "Fall 3 derselben Studie"},
		{"the headers name different patients: Patient ID (0010,0020), Patient's Name (0010,0010) differ between a.dcm and b",
		 "die Kopfdaten nennen verschiedene Patienten: Patient ID (0010,0020), Patient's Name (0010,0010) unterscheiden sich "
		 "zwischen a.dcm und b"},
		{"The receiver process (12) is stopped by a signal: the node accepts no images.",
		 "Der Prozess receiver (12) ist durch ein Signal angehalten: Der Knoten nimmt keine Bilder an."},
		{"The indexer process (12) has given no sign of life for 31 s.",
		 "Der Prozess indexer (12) hat seit 31 s kein Lebenszeichen gegeben."},
		{"2 images are in /s/orphans but not in the journal: a crash left them, or this is an older journal.",
		 "2 Bilder sind in /s/orphans, aber nicht im Journal: Ein Absturz hat sie hinterlassen, oder dies ist ein älteres "
		 "Journal."},
		{"waits for the CT series for the attenuation correction, which is arriving; CT series 1: x",
		 "wartet auf die CT-Serie für die Schwächungskorrektur, die gerade eintrifft; CT series 1: x"},
		{"No device can reconstruct: cases wait.", "Kein Gerät kann rekonstruieren: Fälle warten."},
		{"", NULL},
		{"%s", NULL},
	};
	char text[400], small[24];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *said = say_sentence(LANGUAGE_DE, rows[i].english, text, sizeof(text));

		assert_string_equal(said, rows[i].german ? rows[i].german : rows[i].english);
		assert_ptr_equal(say_sentence(LANGUAGE_EN, rows[i].english, text, sizeof(text)), rows[i].english);
	}
	assert_string_equal(say_sentence(LANGUAGE_PT, rows[0].english, small, sizeof(small)), "Os resultados não pode");
}

/* What an embedded protocol is for has a text in each language; what a site writes stays as it is. */
TEST(test_purposes)
{
	struct config *config = NULL;

	assert_int_equal(config_load(NULL, NULL, NULL, &config, NULL), 0);
	for (size_t i = 0; i < config->n_protocols; i++)
		for (int l = LANGUAGE_EN; l < LANGUAGES; l++)
			if ((say_purpose((enum language)l, config->protocols[i].purpose) == config->protocols[i].purpose) !=
			    (l == LANGUAGE_EN))
				fail_msg("\"%s\" in %s", config->protocols[i].purpose, language_name((enum language)l));
	config_free(config);
	assert_string_equal(say_purpose(LANGUAGE_DE, "Held"), "Held");
}

TEST(test_texts_that_are_absent)
{
	const char *text = "the journal's own words";

	assert_ptr_equal(say(LANGUAGE_DE, text), text);
	assert_ptr_equal(say(LANGUAGE_EN, "Held"), "Held");
	assert_ptr_equal(say(LANGUAGE_AUTO, text), text);
	assert_string_equal(say(LANGUAGE_DE, "Held"), "Angehalten");
	assert_string_equal(say(LANGUAGE_PT, "Committed"), "Confirmado");
}

static void assert_said(const char *english)
{
	if (english && english[0] && say(LANGUAGE_DE, english) == english && strcmp(english, "Name") != 0)
		fail_msg("\"%s\" has no row in node/status/say.c", english);
}

/* Words that are not written in a call of say(): states, events, choices of the search, hints, labels. */
TEST(test_words)
{
	struct job_send sends[] = {{.state = SEND_DUE, .failures = 1}, {.state = SEND_STORED}};
	struct job_view v = {.members = {.instances = 3, .expected = 4}};
	const char *word, *value;

	for (int i = 0; status_filter_state(i, &value, &word); i++)
		assert_said(word);
	for (int e = 0; e <= EVENT_CLEANED; e++)
		if (isupper((unsigned char)status_text_event((enum job_event)e)[0]))
			assert_said(status_text_event((enum job_event)e));
	for (int held = 0; held < 2; held++)
		for (int at = JOB_COLLECTING; at <= JOB_IMPOSSIBLE; at++) {
			v.state = (enum job_state)at;
			v.members.expected = held ? 4 : 0;
			v.sends = sends;
			v.n_sends = at == JOB_RECONSTRUCTED || at == JOB_STORED ? 2 : 0;
			assert_said(job_hint(&v, 0));
			assert_said(job_hint_retry(&v));
			assert_said(job_hint_as_is(&v));
			assert_said(job_hint_cancel(&v));
			status_text_state(&v, &word);
			assert_said(word);
		}
	for (int stage = 0; stage < 6; stage++) {
		static const char *const stages[] = {"open", "read", "upload", "reconstruct", "step", "write"};

		assert_true(status_text_stage(stages[stage], &word) > 0);
		assert_said(word);
	}
	for (int role = STATUS_ROLE_LOOK; role <= STATUS_ROLE_ADMINISTER; role++)
		assert_said(status_role_text((enum status_role)role));
}

TEST(test_sentences)
{
	struct config config = {0};
	struct job_view v = {.kind = "dbt", .key = "", .state = JOB_COLLECTING, .members = {.instances = 3, .expected = 15}};
	char text[600];

	status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_DE, text, sizeof(text));
	assert_string_equal(text,
			    "3 von 15 Bildern sind eingetroffen. Die Rekonstruktion beginnt, wenn der Fall vollständig ist.");
	status_text_title(&v, LANGUAGE_ES, text, sizeof(text));
	assert_string_equal(text, "Tomosíntesis");
	v.state = JOB_READY;
	status_text_sentence(&config, &v, 2, 1e9, LANGUAGE_PT, text, sizeof(text));
	assert_string_equal(text, "Completo. Aguarda um dispositivo livre; há 2 casos antes.");
}

TEST(test_choice)
{
	static const struct {
		enum language configured;
		const char *asked, *kept, *accepted;
		enum language expected;
	} cases[] = {
		{LANGUAGE_AUTO, NULL, NULL, NULL, LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "de", LANGUAGE_DE},
		{LANGUAGE_AUTO, NULL, NULL, "DE-at,en;q=0.5", LANGUAGE_DE},
		{LANGUAGE_AUTO, NULL, NULL, "fr, en;q=0.5, pt-BR;q=0.7", LANGUAGE_PT},
		{LANGUAGE_AUTO, NULL, NULL, "en;q=0.9,es ; q=1.000 ", LANGUAGE_ES},
		{LANGUAGE_AUTO, NULL, NULL, "es;q=0.7,de;q=0.7", LANGUAGE_ES}, /* the first of equal ones */
		{LANGUAGE_AUTO, NULL, NULL, "de;q=0,es;q=0.001", LANGUAGE_ES},
		{LANGUAGE_AUTO, NULL, NULL, "fr,it;q=0.5,*;q=0.1", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "deutsch, esperanto, p, d", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "de;q=2,es;q=0.5", LANGUAGE_ES}, /* weights that are none */
		{LANGUAGE_AUTO, NULL, NULL, "de;q=,es;q=x,pt;level=1,de;q=0.1234", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "de;q=1.5,de;q=-1,de;q=1e9", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, ",,;;==, ,\t;q", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, NULL, "\xff\xfe<script>,de\x7f,%s%n%n", LANGUAGE_EN},
		{LANGUAGE_AUTO, NULL, "es", "de", LANGUAGE_ES},
		{LANGUAGE_AUTO, NULL, "xx", "de", LANGUAGE_DE},
		{LANGUAGE_AUTO, "pt", "es", "de", LANGUAGE_PT},
		{LANGUAGE_AUTO, "../de", "ES", "de", LANGUAGE_DE},
		{LANGUAGE_PT, NULL, NULL, "de", LANGUAGE_PT},
		{LANGUAGE_PT, NULL, "de", "es", LANGUAGE_DE}, /* a person's own choice */
		{LANGUAGE_EN, "", "", "de", LANGUAGE_EN},
	};
	char many[4 * (LANGUAGE_RANGES + 2)] = "", *at = many;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (language_choose(cases[i].configured, cases[i].asked, cases[i].kept, cases[i].accepted) != cases[i].expected)
			fail_msg("choice %zu: not %s", i, language_name(cases[i].expected));
	for (int i = 0; i < LANGUAGE_RANGES; i++)
		at += snprintf(at, 4, "fr,");
	snprintf(at, 4, "de");
	assert_int_equal(language_choose(LANGUAGE_AUTO, NULL, NULL, many), LANGUAGE_EN); /* so many are not looked at */
	assert_int_equal(language_choose(LANGUAGE_AUTO, NULL, NULL, many + 3), LANGUAGE_DE);
}
