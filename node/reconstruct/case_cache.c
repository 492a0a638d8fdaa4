/* SPDX-License-Identifier: Apache-2.0 */
/* case_cache.c - see node/reconstruct/case_cache.h. */
#include "node/reconstruct/case_cache.h"

#include <string.h>

static void add_text(struct digest *d, const char *text)
{
	digest_add(d, text, strlen(text) + 1);
}

/* How the acquisition is divided, and which part of it is chosen; tables of gates are in the files. */
static void add_part(struct digest *d, const struct case_corrections *c)
{
	const struct pet_protocol *p = &c->work->protocol->pet;
	const struct pet_images *m = &c->s->images;
	int64_t numbers[] = {c->s->chosen,	m->of, m->n, m->gates.shortest, m->gates.longest, (int64_t)m->gates.signal,
			     c->s->list != NULL}; /* its bins have no prompts of dead detectors */

	add_text(d, p->frames);
	digest_add(d, numbers, sizeof(numbers));
}

struct case_cache_key case_cache_key(const struct case_corrections *c, const char *what, const void *settings, size_t n)
{
	const char *content = c->work->decision->content;
	struct digest *d = c->work->cache && content[0] ? digest_create() : NULL;
	uint64_t bins = pet_hash_michelogram(0, c->m);
	struct case_cache_key key = {.known = d};

	if (!d)
		return key;
	digest_begin(d);
	add_text(d, what);
	add_text(d, content);
	add_part(d, c);
	digest_add(d, &bins, sizeof(bins));
	digest_add(d, settings, n);
	digest_end_bytes(d, key.hash);
	digest_free(d);
	return key;
}

size_t case_cache_bytes(const struct case_corrections *c, size_t bytes)
{
	size_t n = (size_t)pet_images_count(&c->s->images);

	if (!c->work->cache || !c->work->decision->content[0] || bytes > PET_CACHE_BYTES / 2)
		return 0;
	return bytes > PET_CACHE_BYTES / n ? PET_CACHE_BYTES : n * bytes;
}

const void *case_cache_find(const struct case_corrections *c, const struct case_cache_key *key, size_t *ret_bytes)
{
	return key->known ? pet_cache_value(c->work->cache, key->hash, ret_bytes) : NULL;
}

void case_cache_keep(const struct case_corrections *c, const struct case_cache_key *key, const void *value, size_t bytes)
{
	if (key->known)
		pet_cache_keep(c->work->cache, key->hash, value, bytes);
}
