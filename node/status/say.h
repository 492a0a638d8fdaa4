/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the status page in its languages. The English text stands where it is used, and is its name in the table of
 * say.c: a text that is not in the table stays English. Sentences that other rooms make with values are in say_format.c, by their
 * formats; most reasons and all warnings of the journal are in neither.
 *
 * - A translation has the same %s, {names} and tags as the English text, in the same order (tests/node/status/test_say.c).
 * - Every text that is written say(language, "...") is in the table, and every row is used, also of say_format.c (tests/lint/texts.py).
 */
#ifndef TOMONODE_NODE_STATUS_SAY_H
#define TOMONODE_NODE_STATUS_SAY_H

#include <stddef.h>

#include "node/base/language.h"

/* Return the text in a language. English, or not in the table: the argument itself. The result lives as long as the program, or
 * as the argument. */
const char *say(enum language in, const char *english) __attribute__((format_arg(2)));

/* Return a sentence of the node (a problem, a remedy, a reason) in a language: as say(), or by the format that it was made with
 * (say_format.c), then in `ret`. English, or known by neither: `text` itself. */
const char *say_sentence(enum language in, const char *text, char *ret, size_t size);
/* Return what a protocol is for. English, or not what an embedded protocol says: `text` itself, for it is of the site. */
const char *say_purpose(enum language in, const char *text);

/* The rows of the table, in the order of strcmp() of their English texts. Returns NULL behind the last one; else the texts by enum
 * language. A row without translations is the same in all languages, and has NULL there. */
const char *const *say_row(size_t i);
const char *const *say_sentence_row(size_t i); /* of the tables of say_format.c, in no order */

#endif
