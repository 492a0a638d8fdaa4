/* The reference of all keys, out of the table: what `tomonode check --describe` prints and docs/configuration.md holds. */
#ifndef TOMONODE_NODE_CONFIG_REFERENCE_H
#define TOMONODE_NODE_CONFIG_REFERENCE_H

#include <stdio.h>

#include "node/config/config.h"

void config_reference(FILE *to); /* Markdown */

/* The configuration in effect, entry by entry and key by key, with values as --set takes them. */
struct config_visitor {
	void *ctx;
	void (*entry)(void *ctx, const char *section);				     /* a new entry (or the node) begins */
	void (*value)(void *ctx, const char *key, const char *value, int is_number); /* is_number: also true and false */
	void (*names)(void *ctx, const char *key, const char *const *names, size_t n);
};
void config_visit(const struct config *c, const struct config_visitor *v);

#endif
