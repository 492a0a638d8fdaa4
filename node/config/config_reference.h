/* SPDX-License-Identifier: Apache-2.0 */
/* Write the table of all keys as documents: `tomonode check --describe`, and `tomonode check --defaults`. */
#ifndef TOMONODE_NODE_CONFIG_REFERENCE_H
#define TOMONODE_NODE_CONFIG_REFERENCE_H

#include <stdio.h>

#include "node/config/config.h"

void config_reference(FILE *to); /* writes Markdown */
/* Write a configuration file with every key, its default and its meaning, and the embedded entries: the same as no file. */
void config_defaults(FILE *to);

/* Callbacks of config_visit(). Values are in the syntax of --set. */
struct config_visitor {
	void *ctx;
	void (*entry)(void *ctx, const char *section); /* called before the values of a section or of an entry of a list */
	void (*value)(void *ctx, const char *key, const char *value, int is_number); /* is_number: also true and false */
	void (*names)(void *ctx, const char *key, const char *const *names, size_t n);
};
/* Call the functions of v for every section, entry and key of the configuration in effect. */
void config_visit(const struct config *c, const struct config_visitor *v);

#endif
