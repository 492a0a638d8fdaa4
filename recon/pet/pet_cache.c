/* SPDX-License-Identifier: Apache-2.0 */
/* pet_cache.c - keep sensitivity images for later sessions.
 *
 * The images are stored in host memory, so that they are not part of the plan's device memory: an upload takes a millisecond,
 * computing an image takes half an iteration. The key identifies all inputs of the images except the device, which is the same
 * for the whole cache; factors are identified by a 64-bit hash. Factors of attenuation (attenuation.c) are entries, too, and so
 * are values of other kinds (pet_cache_keep()). An entry whose content has changed since it was stored is not used again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/pet_internal.h"

struct pet_sensitivity {
	struct pet_sensitivity *next;
	struct pet_key key;
	size_t floats;
	int users;
	bool cached;
	uint64_t used;	   /* the cache's clock at the last use */
	uint64_t checksum; /* of the images, when they were stored */
	float images[];
};

#define PIECE ((size_t)1 << 20) /* floats of a checksum that one thread computes */

struct pet_cache {
	const struct device *dev;
	size_t max_bytes;
	struct pet_sensitivity *list;
	uint64_t clock; /* counts uses */
	int damaged;	/* entries that were dropped since pet_cache_damaged() */
};

uint64_t pet_hash_michelogram(uint64_t hash, const struct michelogram *m)
{
	const struct pet_scanner *c = &m->scanner;
	double numbers[] = {c->ring_spacing, c->radius,	   c->interaction_depth, c->bin,
			    m->angle_offset, m->tof.width, m->tof.sigma};
	int counts[] = {c->rings, c->detectors, m->n_radial, m->n_angles, m->arc_corrected, m->n_segments, m->tof.n};

	hash = pet_hash(hash, numbers, sizeof(numbers));
	hash = pet_hash(hash, counts, sizeof(counts));
	for (int i = 0; i < m->n_segments; i++) {
		int segment[] = {m->segments[i].first, m->segments[i].last, m->segments[i].n_planes};

		hash = pet_hash(hash, segment, sizeof(segment));
	}
	return hash;
}

struct pet_key pet_key_of(const struct pet_session *s)
{
	const struct pet_protocol *p = s->p;
	const struct pet_plan *plan = s->plan;
	double numbers[] = {plan->fov_radius, p->psf,		plan->grid.h[0],  plan->grid.h[1],
			    plan->grid.h[2],  plan->grid.lo[0], plan->grid.lo[1], plan->grid.lo[2]};
	int counts[] = {plan->grid.n[0],   plan->grid.n[1],   plan->grid.n[2],	s->layout.views.n_subsets,
			plan->group_views, (int)p->projector, p->deterministic, (int)s->factors};
	struct pet_key key = {.geometry = pet_hash_michelogram(1, s->m)};

	key.geometry = pet_hash(key.geometry, numbers, sizeof(numbers));
	key.geometry = pet_hash(key.geometry, counts, sizeof(counts));
	for (int i = 0; s->has[PET_FACTORS] && i < s->expected[PET_FACTORS]; i++)
		key.factors += s->plane[PET_FACTORS][i].hash;
	return key;
}

struct pet_cache *pet_cache_create(const struct device *dev, size_t max_bytes)
{
	struct pet_cache *c = malloc(sizeof(*c));

	if (c)
		*c = (struct pet_cache){.dev = dev, .max_bytes = max_bytes};
	return c;
}

struct pet_cache *pet_cache_free(struct pet_cache *c)
{
	while (c && c->list) {
		struct pet_sensitivity *next = c->list->next;

		free(c->list);
		c->list = next;
	}
	free(c);
	return NULL;
}

int pet_cache_check(const struct pet_cache *c, const struct device *dev, struct err *err)
{
	if (c && c->dev != dev)
		return err_set(err, EINVAL, "reconstruction: the sensitivity images are of device %s, not of %s", c->dev->name,
			       dev->name);
	return 0;
}

static uint64_t checksum_of(const struct pet_sensitivity *s)
{
	size_t pieces = (s->floats + PIECE - 1) / PIECE;
	uint64_t sum = 0;

#pragma omp parallel for schedule(static) reduction(+ : sum)
	for (size_t p = 0; p < pieces; p++) {
		size_t n = s->floats - p * PIECE < PIECE ? s->floats - p * PIECE : PIECE;

		sum += pet_hash_row(s->images + p * PIECE, (int)n, p * PIECE);
	}
	return sum;
}

/* Take an entry out of the list; it is freed when its last user releases it. */
static void unlink_entry(struct pet_cache *c, struct pet_sensitivity *s)
{
	struct pet_sensitivity **at = &c->list;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->cached = false;
	if (s->users == 0)
		free(s);
}

/* Return the entry with this key, checked, and mark it as used; floats 0: of any size. */
static struct pet_sensitivity *find_entry(struct pet_cache *c, const struct pet_key *key, size_t floats)
{
	struct pet_sensitivity *s = c ? c->list : NULL;

	while (s && ((floats > 0 && s->floats != floats) || s->key.geometry != key->geometry || s->key.factors != key->factors))
		s = s->next;
	if (!s)
		return NULL;
	if (checksum_of(s) != s->checksum) {
		c->damaged++;
		unlink_entry(c, s);
		return NULL;
	}
	s->used = ++c->clock;
	return s;
}

struct pet_sensitivity *pet_cache_find(struct pet_cache *c, const struct pet_key *key, size_t floats)
{
	struct pet_sensitivity *s = find_entry(c, key, floats);

	if (s)
		s->users++;
	return s;
}

int pet_cache_damaged(struct pet_cache *c)
{
	int n = c ? c->damaged : 0;

	if (c)
		c->damaged = 0;
	return n;
}

struct pet_sensitivity *pet_sensitivity_new(const struct pet_key *key, size_t floats)
{
	struct pet_sensitivity *s = floats <= SIZE_MAX / 2 / sizeof(float) ? malloc(sizeof(*s) + floats * sizeof(float)) : NULL;

	if (s)
		*s = (struct pet_sensitivity){.key = *key, .floats = floats, .users = 1};
	return s;
}

static size_t bytes_cached(const struct pet_cache *c)
{
	size_t bytes = 0;

	for (const struct pet_sensitivity *s = c->list; s; s = s->next)
		bytes += s->floats * sizeof(float);
	return bytes;
}

/* Free the least recently used images among those that no session uses. Return false if a session uses all of them. */
static bool drop_oldest(struct pet_cache *c)
{
	struct pet_sensitivity **from = NULL, *s;

	for (struct pet_sensitivity **at = &c->list; *at; at = &(*at)->next)
		if ((*at)->users == 0 && (!from || (*at)->used < (*from)->used))
			from = at;
	if (!from)
		return false;
	s = *from;
	*from = s->next;
	free(s);
	return true;
}

static void shrink_cache(struct pet_cache *c)
{
	while (bytes_cached(c) > c->max_bytes && drop_oldest(c))
		;
}

/* Take out all entries with this key: a newer one replaces them. */
static void drop_key(struct pet_cache *c, const struct pet_key *key)
{
	struct pet_sensitivity *next;

	for (struct pet_sensitivity *s = c->list; s; s = next) {
		next = s->next;
		if (s->key.geometry == key->geometry && s->key.factors == key->factors)
			unlink_entry(c, s);
	}
}

void pet_cache_add(struct pet_cache *c, struct pet_sensitivity *s)
{
	if (!c)
		return;
	drop_key(c, &s->key);
	s->cached = true;
	s->used = ++c->clock;
	s->checksum = checksum_of(s);
	s->next = c->list;
	c->list = s;
	shrink_cache(c);
}

struct pet_sensitivity *pet_sensitivity_release(struct pet_sensitivity *s, struct pet_cache *c)
{
	if (!s)
		return NULL;
	s->users--;
	if (s->cached)
		shrink_cache(c);
	else if (s->users == 0)
		free(s);
	return NULL;
}

float *pet_sensitivity_images(struct pet_sensitivity *s)
{
	return s->images;
}

/* ---- values of other kinds ---- */

static struct pet_key key_of(const unsigned char key[PET_CACHE_KEY])
{
	struct pet_key ret;

	memcpy(&ret.geometry, key, sizeof(ret.geometry));
	memcpy(&ret.factors, key + sizeof(ret.geometry), sizeof(ret.factors));
	return ret;
}

void pet_cache_keep(struct pet_cache *c, const unsigned char key[PET_CACHE_KEY], const void *value, size_t bytes)
{
	struct pet_key k = key_of(key);
	struct pet_sensitivity *s;

	if (!c || bytes == 0 || bytes % sizeof(float) != 0 || bytes > c->max_bytes / 2)
		return;
	s = pet_sensitivity_new(&k, bytes / sizeof(float));
	if (!s)
		return;
	memcpy(s->images, value, bytes);
	pet_cache_add(c, s);
	pet_sensitivity_release(s, c);
}

const void *pet_cache_value(struct pet_cache *c, const unsigned char key[PET_CACHE_KEY], size_t *ret_bytes)
{
	struct pet_key k = key_of(key);
	const struct pet_sensitivity *s = find_entry(c, &k, 0);

	*ret_bytes = s ? s->floats * sizeof(float) : 0;
	return s ? s->images : NULL;
}
