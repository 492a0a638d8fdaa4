/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/language.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *code, *name;
} languages[LANGUAGES] = {
	[LANGUAGE_EN] = {"en", "English"},
	[LANGUAGE_DE] = {"de", "Deutsch"},
	[LANGUAGE_ES] = {"es", "Español"},
	[LANGUAGE_PT] = {"pt", "Português"},
};

const char *language_code(enum language l)
{
	return languages[l].code;
}

const char *language_name(enum language l)
{
	return languages[l].name;
}

bool language_parse(const char *code, enum language *ret_language)
{
	for (int l = 0; code && l < LANGUAGES; l++)
		if (!strcmp(code, languages[l].code)) {
			*ret_language = (enum language)l;
			return true;
		}
	return false;
}

/* Read a weight, such as "0.8", as 0 to 1000; -1: it is none. */
static int read_weight(const char *text, size_t n)
{
	int value = 0, unit = 1000;

	if (n == 0 || n > 5 || (text[0] != '0' && text[0] != '1') || (n > 1 && text[1] != '.'))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (i == 1)
			continue;
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value += unit * (text[i] - '0');
		unit /= 10;
	}
	return value <= 1000 ? value : -1;
}

/* Return the weight of a language range of n bytes, such as "de-AT;q=0.8", if it is of one of the languages; else 0. */
static int range_weight(const char *range, size_t n, enum language *ret_language)
{
	const char *semicolon = memchr(range, ';', n);
	size_t tag = semicolon ? (size_t)(semicolon - range) : n, from;
	int weight;

	while (tag > 0 && strchr(" \t", range[tag - 1]))
		tag--;
	for (int l = 0; l < LANGUAGES; l++) {
		size_t code = strlen(languages[l].code);

		if (tag < code || strncasecmp(range, languages[l].code, code) != 0 || (tag > code && range[code] != '-'))
			continue;
		*ret_language = (enum language)l;
		if (!semicolon)
			return 1000;
		from = (size_t)(semicolon - range) + 1;
		while (from < n && strchr(" \t", range[from]))
			from++;
		while (n > from && strchr(" \t", range[n - 1]))
			n--;
		if (n - from < 2 || strncasecmp(range + from, "q=", 2) != 0)
			return 0;
		weight = read_weight(range + from + 2, n - from - 2);
		return weight > 0 ? weight : 0;
	}
	return 0;
}

static enum language accepted_language(const char *accepted)
{
	enum language best = LANGUAGE_EN, one;
	int weight = 0;

	for (int i = 0; i < LANGUAGE_RANGES && *accepted; i++) {
		size_t n;
		int w;

		accepted += strspn(accepted, " \t,");
		n = strcspn(accepted, ",");
		w = range_weight(accepted, n, &one);
		if (w > weight) {
			weight = w;
			best = one;
		}
		accepted += n;
	}
	return best;
}

enum language language_choose(enum language configured, const char *asked, const char *kept, const char *accepted)
{
	enum language l;

	if (language_parse(asked, &l) || language_parse(kept, &l))
		return l;
	if (configured != LANGUAGE_AUTO)
		return configured;
	return accepted ? accepted_language(accepted) : LANGUAGE_EN;
}
