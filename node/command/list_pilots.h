/* SPDX-License-Identifier: Apache-2.0 */
/* How many pilots a running node has, for people. Any process that may read the spool can count them; nothing is changed. */
#ifndef TOMONODE_NODE_LIST_PILOTS_H
#define TOMONODE_NODE_LIST_PILOTS_H

#include <stddef.h>

#include <jansson.h>

struct list_pilots {
	int connected, working; /* working: of those connected */
	int blocked;		/* IDs whose pilot returned a result that was not of its case */
};

/* Count the pilots of the node with this spool. */
void list_pilots_count(const char *spool, struct list_pilots *ret);
/* A line for people, and the members as a new reference. */
void list_pilots_text(const struct list_pilots *p, char *ret, size_t size);
json_t *list_pilots_json(const struct list_pilots *p);

#endif
