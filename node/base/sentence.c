/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/sentence.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void sentence_add_list(char *text, size_t size, const char *fmt, va_list args)
{
	size_t n = strlen(text);

	if (n > 0 && n + 1 < size)
		text[n++] = ' ';
	vsnprintf(text + n, size - n, fmt, args);
}

void sentence_add(char *text, size_t size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	sentence_add_list(text, size, fmt, args);
	va_end(args);
}

bool sentence_is_standing(const char *sentence)
{
	static const char *const beginnings[] = {"Geometry from literature: ", "The matrix was chosen by the data: "};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(sentence, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

bool sentences_are_standing(const char *text)
{
	size_t n;

	for (; (text = sentence_next(text, &n)); text += n)
		if (!sentence_is_standing(text))
			return false;
	return true;
}

const char *sentence_next(const char *text, size_t *ret_length)
{
	const char *end;

	text += strspn(text, " ");
	for (end = text;
	     *end && !(end[0] == '.' && end[1] == ' ' && (isupper((unsigned char)end[2]) || isdigit((unsigned char)end[2])));
	     end++)
		;
	*ret_length = (size_t)(end - text) + (*end != '\0');
	return *text ? text : NULL;
}
