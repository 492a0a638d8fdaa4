/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text buffer for pages, metrics and JSON responses. Add untrusted text with html_text() only.
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
};

#define HTML_MAX (8u << 20) /* bytes */

void html_clear(struct html *h);
/* Add text without escaping: only numbers and constant strings, never untrusted text. */
void html_put(struct html *h, const char *text);
void html_printf(struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_bytes(struct html *h, const void *bytes, size_t n);
/* Add text between tags or in a double-quoted attribute: escape & < > " ' and replace control characters, invalid UTF-8,
 * invisible characters and those that change the writing direction by U+FFFD. */
void html_text(struct html *h, const char *text);
/* Add the value of a label of a Prometheus metric: escape \ " and line feed, replace the same characters as html_text(). */
void html_label(struct html *h, const char *text);

#endif
