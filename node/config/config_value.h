/* SPDX-License-Identifier: Apache-2.0 */
/* Convert one value of a key between text (--set, defaults), configuration file and structure field. No file is read. */
#ifndef TOMONODE_NODE_CONFIG_VALUE_H
#define TOMONODE_NODE_CONFIG_VALUE_H

#include <stddef.h>

#include "node/config/config_table.h"

struct config_value {
	enum { VALUE_INTEGER, VALUE_REAL, VALUE_BOOL, VALUE_TEXT, VALUE_OTHER } kind;
	long long integer; /* also VALUE_BOOL: 0 or 1 */
	double real;
	const char *text; /* VALUE_TEXT: the text; VALUE_OTHER: description of the type ("a list") */
};

/* Check `v` against the key and write it to its field in the structure `base`. Returns 0, or -1: not allowed, nothing written. */
int config_value_store(const struct config_key *key, const struct config_value *v, void *base);
/* Store a value in the syntax of --set, like config_value_store(). */
int config_value_store_text(const struct config_key *key, const char *text, void *base);
/* Join the words of a list to the text that its key takes: "a+b", with KEY_UNORDERED in the order of the choices (words is
 * sorted).
 */
#define CONFIG_WORDS_MAX 8
#define CONFIG_JOINED_SIZE 64
void config_words_join(const struct config_key *key, const char **words, int n, char *ret_text, size_t size);
/* Set every field of the section's structure that has a default. */
void config_value_defaults(const struct config_section *section, void *base);

/* Write the field in the syntax of --set: the shortest text that is read back as the same value. */
void config_value_format(const struct config_key *key, const void *base, char *ret_text, size_t size);
/* Describe the allowed values: "osem, mlem"; "1 to 1000; 0: one per projection"; ... */
void config_value_allowed(const struct config_key *key, char *ret_text, size_t size);
/* Return the allowed word most similar to the text; NULL: none, or the key has no words. */
const char *config_value_nearest(const struct config_key *key, const char *text);
/* Format a value for a message: text in quotes, shortened, without control characters. */
void config_value_show(const struct config_value *v, char *ret_text, size_t size);

#endif
