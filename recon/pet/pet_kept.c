/* pet_kept.c - sensitivity images that outlive their session.
 *
 * They lie in host memory, so that no plan for a device has to know of them; bringing one takes a millisecond, making it half an
 * iteration. What is used least recently goes when all are more than KEPT_BYTES. A key names everything the images depend on, the
 * device and its name included, and the factors by a hash of 64 bits.
 */
#include <stdlib.h>
#include <string.h>

#include "recon/pet/pet_internal.h"

#define KEPT_BYTES ((size_t)1 << 30)

struct pet_kept {
	struct pet_kept *next;
	struct pet_key key;
	size_t floats;
	int users;
	bool made;
	uint64_t used; /* when, counted in look-ups */
	float images[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pet_kept *list;
static uint64_t look_ups;

struct pet_key pet_key_of(const struct pet_session *s)
{
	const struct pet_protocol *p = s->p;
	const struct michelogram *m = s->m;
	const struct pet_scanner *c = &m->scanner;
	const struct pet_plan *plan = s->plan;
	double numbers[] = {c->ring_spacing,  c->radius,	c->interaction_depth, c->bin,	       m->angle_offset,
			    plan->fov_radius, p->psf,		plan->grid.h[0],      plan->grid.h[1], plan->grid.h[2],
			    plan->grid.lo[0], plan->grid.lo[1], plan->grid.lo[2]};
	int counts[] = {c->rings,	   c->detectors,      m->n_radial,	m->n_angles,	    m->arc_corrected,
			m->n_segments,	   plan->grid.n[0],   plan->grid.n[1],	plan->grid.n[2],    s->layout.n_subsets,
			plan->group_views, (int)p->projector, p->deterministic, s->has[PET_FACTORS]};
	struct pet_key key = {.dev = s->dev};

	key.geometry = pet_hash(1, numbers, sizeof(numbers));
	key.geometry = pet_hash(key.geometry, counts, sizeof(counts));
	for (int i = 0; i < m->n_segments; i++) {
		int segment[] = {m->segments[i].first, m->segments[i].last, m->segments[i].n_planes};

		key.geometry = pet_hash(key.geometry, segment, sizeof(segment));
	}
	key.geometry = pet_hash(key.geometry, s->dev->name, strlen(s->dev->name));
	for (int i = 0; s->has[PET_FACTORS] && i < s->n_planes; i++)
		key.factors += s->plane[PET_FACTORS][i].hash;
	return key;
}

static bool same(const struct pet_key *a, const struct pet_key *b)
{
	return a->dev == b->dev && a->geometry == b->geometry && a->factors == b->factors;
}

struct pet_kept *pet_kept_find(const struct pet_key *key, size_t floats)
{
	struct pet_kept *k;

	pthread_mutex_lock(&lock);
	for (k = list; k; k = k->next)
		if (k->floats == floats && same(&k->key, key))
			break;
	if (k) {
		k->users++;
		k->used = ++look_ups;
	}
	pthread_mutex_unlock(&lock);
	return k;
}

struct pet_kept *pet_kept_new(const struct pet_key *key, size_t floats)
{
	struct pet_kept *k = floats <= SIZE_MAX / 2 / sizeof(float) ? malloc(sizeof(*k) + floats * sizeof(float)) : NULL;

	if (k)
		*k = (struct pet_kept){.key = *key, .floats = floats, .users = 1};
	return k;
}

/* Frees the least recently used of those that nobody uses, of one device or (`any`) of all. False: there is none. */
static bool drop(const struct device *dev, bool any)
{
	struct pet_kept **from = NULL, *k;

	for (struct pet_kept **at = &list; *at; at = &(*at)->next)
		if ((*at)->users == 0 && (any || (*at)->key.dev == dev) && (!from || (*at)->used < (*from)->used))
			from = at;
	if (!from)
		return false;
	k = *from;
	*from = k->next;
	free(k);
	return true;
}

static size_t bytes_kept(void)
{
	size_t bytes = 0;

	for (const struct pet_kept *k = list; k; k = k->next)
		bytes += k->floats * sizeof(float);
	return bytes;
}

void pet_kept_made(struct pet_kept *k)
{
	pthread_mutex_lock(&lock);
	k->made = true;
	k->used = ++look_ups;
	k->next = list;
	list = k;
	while (bytes_kept() > KEPT_BYTES && drop(NULL, true))
		;
	pthread_mutex_unlock(&lock);
}

struct pet_kept *pet_kept_release(struct pet_kept *k)
{
	if (!k)
		return NULL;
	pthread_mutex_lock(&lock);
	k->users--;
	if (!k->made)
		free(k);
	while (bytes_kept() > KEPT_BYTES && drop(NULL, true))
		;
	pthread_mutex_unlock(&lock);
	return NULL;
}

float *pet_kept_images(struct pet_kept *k)
{
	return k->images;
}

void pet_forget(struct device *dev)
{
	pthread_mutex_lock(&lock);
	while (drop(dev, false))
		;
	pthread_mutex_unlock(&lock);
}
