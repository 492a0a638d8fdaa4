/* SPDX-License-Identifier: Apache-2.0 */
/* The languages of the status page, and which of them a browser gets. Pure functions of untrusted bytes. */
#ifndef TOMONODE_NODE_LANGUAGE_H
#define TOMONODE_NODE_LANGUAGE_H

#include <stdbool.h>

enum language {
	LANGUAGE_EN,
	LANGUAGE_DE,
	LANGUAGE_ES,
	LANGUAGE_PT,
	LANGUAGE_AUTO, /* of the configuration: what the browser asks for */
};
#define LANGUAGES 4 /* without LANGUAGE_AUTO */

const char *language_code(enum language l); /* "de": RFC 5646, as HTML writes it */
const char *language_name(enum language l); /* in the language itself: "Deutsch" */
/* Return true for one of the codes, in small letters; NULL: false. */
bool language_parse(const char *code, enum language *ret_language);
/* Choose: what the address asks for, else what the browser has kept from an earlier choice, else the configured language, and
 * with LANGUAGE_AUTO the one of highest weight in Accept-Language (RFC 9110 section 12.5.4), of which the first
 * LANGUAGE_RANGES ranges count; else English. NULL: not given. Any text is harmless: what is not understood is passed over. */
#define LANGUAGE_RANGES 32
enum language language_choose(enum language configured, const char *asked, const char *kept, const char *accepted);

#endif
