/* Text that grows: pages, metrics, JSON answers. What comes from outside goes through html_text() alone.
 *
 * - Memory that runs out, or a text above its limit, makes it `failed`: it then takes nothing more, and whoever made it asks
 *   once, at the end.
 */
#ifndef TOMONODE_NODE_HTML_H
#define TOMONODE_NODE_HTML_H

#include <stdbool.h>
#include <stddef.h>

struct html {	    /* {0} to begin with */
	char *text; /* terminated */
	size_t n, capacity;
	bool failed;
};

#define HTML_MAX (8u << 20)

void html_clear(struct html *h);
/* As it is. Numbers and our own words only; "%s" must never be given what came from outside. */
void html_put(struct html *h, const char *text);
void html_printf(struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_bytes(struct html *h, const void *bytes, size_t n);
/* As text between tags or in an attribute in double quotes: & < > " ' are escaped; control characters, bytes that are no UTF-8
 * and characters that turn the direction of writing or are invisible come out as U+FFFD. */
void html_text(struct html *h, const char *text);
/* The same for a label's value of a Prometheus metric: \ " and line feed are escaped. */
void html_label(struct html *h, const char *text);

#endif
