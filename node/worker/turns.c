/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sender {
	char calling[17], host[64];
	double used;	  /* s */
	int64_t *waiting; /* instances[first..n) */
	size_t first, n, room;
};

struct turns {
	struct sender *senders;
	size_t n, room;
	size_t current; /* index of the sender that turns_next() has chosen */
	double level;	/* time used by that sender before its instance */
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
	if (t)
		free(t->senders);
	free(t);
	return NULL;
}

/* Return the entry of a sender, a new one if it has none; NULL: no memory. */
static struct sender *sender_of(struct turns *t, const char *calling, const char *host)
{
	struct sender *grown;

	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->senders[i].calling, calling) && !strcmp(t->senders[i].host, host))
			return &t->senders[i];
	if (t->n == t->room) {
		grown = realloc(t->senders, (2 * t->room + 8) * sizeof(*grown));
		if (!grown)
			return NULL;
		t->senders = grown;
		t->room = 2 * t->room + 8;
	}
	t->senders[t->n] = (struct sender){.used = t->level};
	snprintf(t->senders[t->n].calling, sizeof(t->senders->calling), "%s", calling);
	snprintf(t->senders[t->n].host, sizeof(t->senders->host), "%s", host);
	return &t->senders[t->n++];
}

int turns_add(struct turns *t, const char *calling, const char *host, int64_t instance, struct err *err)
{
	struct sender *s = sender_of(t, calling, host);
	int64_t *grown;

	if (!s)
		return err_set(err, ENOMEM, "turns: no memory for a sender");
	if (s->first == s->n) {
		s->first = s->n = 0;
		s->used = s->used > t->level ? s->used : t->level;
	}
	if (s->n == s->room) {
		grown = realloc(s->waiting, (2 * s->room + 64) * sizeof(*grown));
		if (!grown)
			return err_set(err, ENOMEM, "turns: no memory for %zu instances", 2 * s->room + 64);
		s->waiting = grown;
		s->room = 2 * s->room + 64;
	}
	s->waiting[s->n++] = instance;
	return 0;
}

int64_t turns_next(struct turns *t)
{
	const struct sender *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct sender *s = &t->senders[i];

		if (s->first == s->n)
			continue;
		if (!best || s->used < best->used || (s->used == best->used && s->waiting[s->first] < best->waiting[best->first]))
			best = s;
	}
	if (!best)
		return 0;
	t->current = (size_t)(best - t->senders);
	t->level = best->used;
	return best->waiting[best->first];
}

void turns_done(struct turns *t, double seconds)
{
	struct sender *s = &t->senders[t->current];

	s->first++;
	s->used += seconds;
}

int turns_charge(struct turns *t, const char *calling, const char *host, double seconds, struct err *err)
{
	struct sender *s = sender_of(t, calling, host);

	if (!s)
		return err_set(err, ENOMEM, "turns: no memory for a sender");
	s->used += seconds;
	return 0;
}
