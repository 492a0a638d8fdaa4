/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/html.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/utf8.h"
#include "node/base/sentence.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void html_clear(struct html *h)
{
	free(h->text);
	*h = (struct html){0};
}

static bool reserve_bytes(struct html *h, size_t more)
{
	size_t capacity = h->capacity ? h->capacity : 4096;
	char *text;

	if (h->failed || more > HTML_MAX || h->n + more + 1 > HTML_MAX) {
		h->failed = true;
		return false;
	}
	while (capacity < h->n + more + 1)
		capacity *= 2;
	if (capacity != h->capacity) {
		text = realloc(h->text, capacity);
		if (!text) {
			h->failed = true;
			return false;
		}
		h->text = text;
		h->capacity = capacity;
	}
	return true;
}

void html_bytes(struct html *h, const void *bytes, size_t n)
{
	if (!reserve_bytes(h, n))
		return;
	memcpy(h->text + h->n, bytes, n);
	h->n += n;
	h->text[h->n] = '\0';
}

void html_put(struct html *h, const char *text)
{
	html_bytes(h, text, strlen(text));
}

/* Return true for control characters and for characters with which a text can look like a different one. */
static bool is_misleading(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

/* Return how a character is escaped; NULL: it is not. */
static const char *escape_of(const struct html *h, uint32_t code)
{
	if (h->metrics)
		return code == '\\'	     ? "\\\\"
		       : code == '"'	     ? "\\\""
		       : code == '\n'	     ? "\\n"
		       : is_misleading(code) ? REPLACEMENT
					     : NULL;
	switch (code) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '\n':
	case '\t':
		return " ";
	default:
		return is_misleading(code) ? REPLACEMENT : NULL;
	}
}

void html_text(struct html *h, const char *text)
{
	const char *s = text, *escape;
	uint32_t code;

	while (*s) {
		size_t n = utf8_decode(s, &code);

		escape = n ? escape_of(h, code) : REPLACEMENT;
		if (escape)
			html_put(h, escape);
		else
			html_bytes(h, s, n);
		s += n ? n : 1;
	}
}

void html_sentences(struct html *h, const char *text)
{
	char one[2048];
	size_t n;

	for (; (text = sentence_next(text, &n)); text += n) {
		snprintf(one, sizeof(one), "%.*s", (int)n, text);
		html_printf(h, "<li>%s</li>\n", one);
	}
}

/* Write the argument of a conversion of printf(), of this type: a character or a number, in decimal. */
static void put_argument(struct html *h, char type, int width, int precision, bool wide, va_list *ap)
{
	char text[400]; /* the largest double has 309 digits */
	int n = -1;

	if (type == 'd')
		n = snprintf(text, sizeof(text), "%*lld", width, wide ? va_arg(*ap, long long) : va_arg(*ap, int));
	else if (type == 'u')
		n = snprintf(text, sizeof(text), "%*llu", width, wide ? va_arg(*ap, unsigned long long) : va_arg(*ap, unsigned));
	else if (type == 'c')
		n = snprintf(text, sizeof(text), "%c", va_arg(*ap, int));
	else if (type == 'f')
		n = snprintf(text, sizeof(text), "%*.*f", width, precision, va_arg(*ap, double));
	else if (type == 'g')
		n = snprintf(text, sizeof(text), "%*.*g", width, precision, va_arg(*ap, double));
	if (n < 0 || n >= (int)sizeof(text))
		h->failed = true;
	else
		html_bytes(h, text, (size_t)n);
}

void html_printf(struct html *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	while (*fmt) {
		size_t n = strcspn(fmt, "%");
		int width, precision = -1;
		char *end;

		html_bytes(h, fmt, n);
		fmt += n;
		if (!*fmt)
			break;
		width = (int)strtol(fmt + 1, &end, 10);
		if (*end == '.')
			precision = (int)strtol(end + 1, &end, 10);
		fmt = end + strspn(end, "lz"); /* of 64 bits each */
		if (*fmt == 's')
			html_text(h, va_arg(ap, const char *));
		else if (*fmt == '%')
			html_put(h, "%");
		else
			put_argument(h, *fmt, width, precision, fmt > end, &ap);
		fmt += *fmt != '\0';
	}
	va_end(ap);
}
