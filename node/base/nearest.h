/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that a mistyped one is most similar to, for messages. */
#ifndef TOMONODE_NODE_NEAREST_H
#define TOMONODE_NODE_NEAREST_H

#include <stddef.h>

#define NEAREST_HINT 96 /* bytes for nearest_hint() */

/* Return the most similar known word, among equally similar ones the first of the same length, else the first; NULL if none is
 * similar. name(ctx, i) returns the i-th known word, NULL after the last. */
const char *nearest_word(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx);
/* The same of a list that NULL ends. */
const char *nearest_in_list(const char *word, const char *const *list);
/* The same of a list, for words that are not all known: at most one difference, two from 12 letters on, three from 18 on. */
const char *nearest_typo(const char *word, const char *const *list);
/* The same of n arrays of characters, `stride` bytes apart, such as the names in an array of structures. */
const char *nearest_in_array(const char *word, const char *first, size_t n, size_t stride);
/* Write ", did you mean 'NEAR'?", or "" for NULL; return ret_text. It follows the sentence about the mistyped word. */
const char *nearest_hint(const char *near, char ret_text[NEAREST_HINT]);

#endif
