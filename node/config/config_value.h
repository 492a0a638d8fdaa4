/* SPDX-License-Identifier: Apache-2.0 */
/* Convert one value of a key between text (--set, defaults), configuration file and structure field, as recon/core/keys.h does, and
 * also those of the types that the node adds. No file is read. */
#ifndef TOMONODE_NODE_CONFIG_VALUE_H
#define TOMONODE_NODE_CONFIG_VALUE_H

#include <stddef.h>

#include "node/config/config_table.h"

/* Check `v` against the key and write it to its field in the structure `base`. Returns 0, or -1: not allowed, nothing written. */
int config_value_store(const struct key *key, const struct key_value *v, void *base);
/* Store a value in the syntax of --set, like config_value_store(). */
int config_value_store_text(const struct key *key, const char *text, void *base);
/* Set every field of the section's structure that has a default. */
void config_value_defaults(const struct config_section *section, void *base);

/* Write the field in the syntax of --set: the shortest text that is read back as the same value. */
void config_value_format(const struct key *key, const void *base, char *ret_text, size_t size);
/* Describe the allowed values: "osem, mlem"; "1 to 1000; 0: one per projection"; ... */
void config_value_allowed(const struct key *key, char *ret_text, size_t size);
/* Return the allowed word most similar to the text; NULL: none, or the key has no words. */
const char *config_value_nearest(const struct key *key, const char *text);

#endif
