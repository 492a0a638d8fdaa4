/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_index.c - a hash table of lists that are linked through their members, so that a link costs no memory of its own. */
#include "node/jobs/jobs_index.h"

#include <stdlib.h>
#include <string.h>

#define LISTS_MIN 64

uint64_t jobs_index_hash(const char *key, int part)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a, 64 bits */

	for (; part > 0 && key; part--)
		key = strchr(key, '|') ? strchr(key, '|') + 1 : NULL;
	for (; key && *key && *key != '|'; key++)
		hash = (hash ^ (unsigned char)*key) * 0x100000001b3;
	return hash;
}

static struct jobs_link **find_list(const struct jobs_index *index, uint64_t hash)
{
	return &index->lists[hash & (index->n_lists - 1)];
}

static void push_link(struct jobs_index *index, struct jobs_link *link)
{
	struct jobs_link **list = find_list(index, link->hash);

	while (*list && (*list)->id > link->id)
		list = &(*list)->before;
	link->before = *list;
	*list = link;
}

/* Move a list into a larger table, its oldest link first, so that the order stays. */
static void move_list(struct jobs_index *into, struct jobs_link *list)
{
	struct jobs_link *oldest = NULL;

	while (list) {
		struct jobs_link *before = list->before;

		list->before = oldest;
		oldest = list;
		list = before;
	}
	while (oldest) {
		struct jobs_link *newer = oldest->before;

		push_link(into, oldest);
		oldest = newer;
	}
}

static bool grow_table(struct jobs_index *index)
{
	struct jobs_index larger = {.n_lists = index->n_lists ? 2 * index->n_lists : LISTS_MIN, .n = index->n};

	larger.lists = calloc(larger.n_lists, sizeof(larger.lists[0]));
	if (!larger.lists)
		return false;
	for (size_t i = 0; i < index->n_lists; i++)
		move_list(&larger, index->lists[i]);
	free(index->lists);
	*index = larger;
	return true;
}

bool jobs_index_add(struct jobs_index *index, struct jobs_link *link)
{
	if (index->n == index->n_lists && !grow_table(index) && index->n_lists == 0)
		return false;
	push_link(index, link);
	index->n++;
	return true;
}

void jobs_index_remove(struct jobs_index *index, struct jobs_link *link)
{
	struct jobs_link **at = index->n_lists ? find_list(index, link->hash) : NULL;

	while (at && *at && *at != link)
		at = &(*at)->before;
	if (!at || !*at)
		return;
	*at = link->before;
	index->n--;
}

static struct jobs_link *skip_others(struct jobs_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->before;
	return link;
}

struct jobs_link *jobs_index_find(const struct jobs_index *index, uint64_t hash)
{
	return index->n_lists ? skip_others(*find_list(index, hash), hash) : NULL;
}

struct jobs_link *jobs_index_before(const struct jobs_link *link)
{
	return skip_others(link->before, link->hash);
}

void jobs_index_clear(struct jobs_index *index)
{
	free(index->lists);
	*index = (struct jobs_index){0};
}
