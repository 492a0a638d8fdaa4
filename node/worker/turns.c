/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"

struct host {
	char name[64];
	double used;	/* s, by its senders */
	double level;	/* time used by the sender that was chosen last, before its instance */
	size_t waiting; /* instances of its senders */
};

struct sender {
	char calling[17];
	size_t host;	  /* index */
	double used;	  /* s */
	int64_t *waiting; /* instances[first..n) */
	size_t first, n, room;
};

struct turns {
	struct host *hosts;
	size_t n_hosts, hosts_room;
	struct sender *senders;
	size_t n, room;
	size_t current; /* index of the sender that turns_next() has chosen */
	double level;	/* time used by its host before its instance */
};

int turns_create(struct turns **ret_turns, struct err *err)
{
	struct turns *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(err, ENOMEM, "turns: no memory");
	*ret_turns = t;
	return 0;
}

struct turns *turns_free(struct turns *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		free(t->senders[i].waiting);
	if (t) {
		free(t->senders);
		free(t->hosts);
	}
	free(t);
	return NULL;
}

/* Return the index of a host, a new one if it is unknown; SIZE_MAX: no memory. */
static size_t host_of(struct turns *t, const char *name)
{
	size_t i = 0;

	while (i < t->n_hosts && strcmp(t->hosts[i].name, name) != 0)
		i++;
	if (i < t->n_hosts)
		return i;
	if (!list_grow(&t->hosts, t->n_hosts, &t->hosts_room, sizeof(*t->hosts)))
		return SIZE_MAX;
	t->hosts[i] = (struct host){.used = t->level};
	snprintf(t->hosts[i].name, sizeof(t->hosts[i].name), "%s", name);
	t->n_hosts++;
	return i;
}

/* Return the entry of a sender, a new one if it has none; NULL: no memory. */
static struct sender *sender_of(struct turns *t, const char *calling, const char *name)
{
	size_t host = host_of(t, name);

	for (size_t i = 0; host < SIZE_MAX && i < t->n; i++)
		if (t->senders[i].host == host && !strcmp(t->senders[i].calling, calling))
			return &t->senders[i];
	if (host == SIZE_MAX || !list_grow(&t->senders, t->n, &t->room, sizeof(*t->senders)))
		return NULL;
	t->senders[t->n] = (struct sender){.host = host, .used = t->hosts[host].level};
	snprintf(t->senders[t->n].calling, sizeof(t->senders->calling), "%s", calling);
	return &t->senders[t->n++];
}

int turns_add(struct turns *t, const char *calling, const char *host, int64_t instance, struct err *err)
{
	struct sender *s = sender_of(t, calling, host);
	struct host *h = s ? &t->hosts[s->host] : NULL;

	if (!s)
		return err_set(err, ENOMEM, "turns: no memory for a sender");
	if (h->waiting == 0)
		h->used = h->used > t->level ? h->used : t->level;
	if (s->first == s->n) {
		s->first = s->n = 0;
		s->used = s->used > h->level ? s->used : h->level;
	}
	if (!list_grow(&s->waiting, s->n, &s->room, sizeof(*s->waiting)))
		return err_set(err, ENOMEM, "turns: no memory for %zu instances", s->n + 1);
	s->waiting[s->n++] = instance;
	h->waiting++;
	return 0;
}

/* Return true if the next instance of a is read before that of b: by time used by the host, then by the sender, then in the order
 * of arrival. Hosts that have used the same time come in the order in which they were first heard of. */
static bool comes_before(const struct turns *t, const struct sender *a, const struct sender *b)
{
	const struct host *g = &t->hosts[a->host], *h = &t->hosts[b->host];

	if (g != h)
		return g->used < h->used || (g->used <= h->used && g < h);
	return a->used < b->used || (a->used <= b->used && a->waiting[a->first] < b->waiting[b->first]);
}

int64_t turns_next(struct turns *t)
{
	const struct sender *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct sender *s = &t->senders[i];

		if (s->first < s->n && (!best || comes_before(t, s, best)))
			best = s;
	}
	if (!best)
		return 0;
	t->current = (size_t)(best - t->senders);
	t->level = t->hosts[best->host].used;
	t->hosts[best->host].level = best->used;
	return best->waiting[best->first];
}

void turns_done(struct turns *t, double seconds)
{
	struct sender *s = &t->senders[t->current];
	struct host *h = &t->hosts[s->host];

	s->first++;
	s->used += seconds;
	h->waiting--;
	h->used += seconds;
}

int turns_charge(struct turns *t, const char *calling, const char *host, double seconds, struct err *err)
{
	struct sender *s = sender_of(t, calling, host);

	if (!s)
		return err_set(err, ENOMEM, "turns: no memory for a sender");
	s->used += seconds;
	t->hosts[s->host].used += seconds;
	return 0;
}
