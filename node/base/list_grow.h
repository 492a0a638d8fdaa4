/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow by doubling. */
#ifndef TOMONODE_NODE_LIST_GROW_H
#define TOMONODE_NODE_LIST_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more element of `size` bytes. list: the address of the pointer to the n elements, NULL if none has been added;
 * *room: the number for which it has memory. false: no memory, and the list is as before. */
static inline bool list_grow(void *list, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 16;
	void *elements;

	if (n < *room)
		return true;
	memcpy(&elements, list, sizeof(elements));
	elements = realloc(elements, more * size);
	if (!elements)
		return false;
	memcpy(list, &elements, sizeof(elements));
	*room = more;
	return true;
}

#endif
