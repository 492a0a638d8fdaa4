/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/sentence.h"

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
