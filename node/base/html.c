/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/html.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/utf8.h"

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

void html_printf(struct html *h, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(text))
		h->failed = true;
	else
		html_bytes(h, text, (size_t)n);
}

/* Return true for control characters and for characters with which a text can look like a different one. */
static bool is_misleading(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

void html_text(struct html *h, const char *text)
{
	const char *s = text;
	uint32_t code;

	while (*s) {
		size_t n = utf8_decode(s, &code);

		if (n == 0)
			html_put(h, REPLACEMENT);
		else if (code == '&')
			html_put(h, "&amp;");
		else if (code == '<')
			html_put(h, "&lt;");
		else if (code == '>')
			html_put(h, "&gt;");
		else if (code == '"')
			html_put(h, "&quot;");
		else if (code == '\'')
			html_put(h, "&#39;");
		else if (code == '\n' || code == '\t')
			html_put(h, " ");
		else if (is_misleading(code))
			html_put(h, REPLACEMENT);
		else
			html_bytes(h, s, n);
		s += n ? n : 1;
	}
}

void html_label(struct html *h, const char *text)
{
	const char *s = text;
	uint32_t code;

	while (*s) {
		size_t n = utf8_decode(s, &code);

		if (n == 1 && (*s == '\\' || *s == '"')) {
			html_put(h, "\\");
			html_bytes(h, s, 1);
		} else if (n == 1 && *s == '\n') {
			html_put(h, "\\n");
		} else if (n == 0 || is_misleading(code)) {
			html_put(h, REPLACEMENT);
		} else {
			html_bytes(h, s, n);
		}
		s += n ? n : 1;
	}
}
