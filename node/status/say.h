/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the status page in its languages. The English text stands where it is used, and is its name in the table of
 * say.c: a text that is not in the table stays English. Texts with values of the journal (reasons, warnings) are not in it.
 *
 * - A translation has the same %s, {names} and tags as the English text, in the same order (tests/node/status/test_say.c).
 * - Every text that is written say(language, "...") is in the table, and every row is used (tests/lint/texts.py).
 */
#ifndef TOMONODE_NODE_STATUS_SAY_H
#define TOMONODE_NODE_STATUS_SAY_H

#include <stddef.h>

#include "node/base/language.h"

/* Return the text in a language. English, or not in the table: the argument itself. The result lives as long as the program, or
 * as the argument. */
const char *say(enum language in, const char *english) __attribute__((format_arg(2)));

/* The rows of the table, in the order of strcmp() of their English texts. Returns NULL behind the last one; else the texts by enum
 * language. A row without translations is the same in all languages, and has NULL there. */
const char *const *say_row(size_t i);

#endif
