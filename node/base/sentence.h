/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of several sentences: what a result says of its data. Page, report and JSON divide them in the same way. */
#ifndef TOMONODE_NODE_SENTENCE_H
#define TOMONODE_NODE_SENTENCE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Add a sentence behind a blank to those of `text`, which has room for `size` bytes; what does not fit is cut. */
void sentence_add(char *text, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sentence_add_list(char *text, size_t size, const char *fmt, va_list args) __attribute__((format(printf, 3, 0)));

/* Return the first sentence at or after `text`, and its length in bytes; NULL: there is none. A full stop and a blank before a
 * capital letter or a digit end one. */
const char *sentence_next(const char *text, size_t *ret_length);

/* Is each sentence a standing warning: true of all results of a device or scanner, whatever the exam, so that no case needs a look for it? */
bool sentences_are_standing(const char *text);
bool sentence_is_standing(const char *sentence);

#endif
