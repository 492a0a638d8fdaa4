/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/viewer_url.h"

#include <ctype.h>
#include <string.h>

#include "node/base/url.h"

static const char *const names[] = {"{study}", "{series}", "{accession}"};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* Return the index of the name at the beginning of the text; NAMES: there is none. */
static size_t name_at(const char *text)
{
	size_t i = 0;

	while (i < NAMES && strncmp(text, names[i], strlen(names[i])) != 0)
		i++;
	return i;
}

bool viewer_pattern_valid(const char *pattern)
{
	const char *at = !strncmp(pattern, "https://", 8) ? pattern + 8 : !strncmp(pattern, "http://", 7) ? pattern + 7 : "";
	size_t host = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]");
	bool named = false;

	if (host == 0 || (at[host] != '/' && at[host] != '?'))
		return false;
	for (at += host; *at; at++) {
		size_t i = name_at(at);

		if (i < NAMES) {
			named = true;
			at += strlen(names[i]) - 1;
		} else if (!isalnum((unsigned char)*at) && !strchr("-._~:/?#[]@!$&'()*+,;=%", *at)) {
			return false;
		}
	}
	return named;
}

bool viewer_url_fill(const char *pattern, const char *study, const char *series, const char *accession, char *ret, size_t size)
{
	const char *const values[] = {study, series, accession};
	size_t n = 0;

	while (*pattern && n + 1 < size) {
		size_t i = name_at(pattern);

		if (i == NAMES) {
			ret[n++] = *pattern++;
			continue;
		}
		if (3 * strlen(values[i]) >= size - n)
			return false;
		n += url_encode(values[i], ret + n, size - n);
		pattern += strlen(names[i]);
	}
	ret[n] = '\0';
	return !*pattern;
}
