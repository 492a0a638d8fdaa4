/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text buffer for pages, metrics and JSON responses. Add untrusted text with html_text() or html_printf() only.
 *
 * - If memory runs out or the text exceeds HTML_MAX, `failed` is set and further text is ignored: check it once, at the end.
 */
#ifndef TOMONODE_NODE_HTML_H
#define TOMONODE_NODE_HTML_H

#include <stdbool.h>
#include <stddef.h>

struct html {	    /* starts as {0} */
	char *text; /* terminated */
	size_t n, capacity;
	bool failed;
	bool metrics; /* texts are values of labels of Prometheus metrics, or a line of plain text; false: of HTML */
};

#define HTML_MAX (8u << 20) /* bytes */

void html_clear(struct html *h);
/* Add text without escaping: only constant strings, never untrusted text. */
void html_put(struct html *h, const char *text);
void html_bytes(struct html *h, const void *bytes, size_t n);
/* Add text between tags or in a double-quoted attribute: escape & < > " ' and replace control characters, invalid UTF-8,
 * invisible characters and those that change the writing direction by U+FFFD. In metrics: escape \ " and line feed instead. */
void html_text(struct html *h, const char *text);
/* Add each sentence of a text (node/base/sentence.h) as an item of a list. */
void html_sentences(struct html *h, const char *text);
/* Add a constant format with numbers as printf() writes them (%d, %u, %f, %g, %c, without flags); each %s, without width, is
 * written by html_text(). */
void html_printf(struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
