/* SPDX-License-Identifier: Apache-2.0 */
#include "node/alert/alerts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/backoff.h"
#include "node/base/list_grow.h"

#define AGAIN_FIRST 5.0
#define AGAIN_CAP 300.0

static int by_key(const void *a, const void *b)
{
	const struct alert_seen *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/* One that is over and whose end is in a message is finished: if it comes back, it is another trouble. */
static bool is_open(const struct alert_item *i)
{
	return !i->in_end && !i->end_told;
}

static bool has_untold_begin(const struct alert_item *i)
{
	return i->begun && !i->begin_told;
}

static bool has_untold_end(const struct alert_item *i)
{
	return i->begun && i->ended > 0 && !i->end_told;
}

/* Returns true if what is to be stored has changed. */
static bool is_present(struct alert_item *i, const struct alert_limits *limits, double clock)
{
	bool begins = !i->begun && clock - i->first >= limits->delay, again = i->ended > 0;

	i->missing = 0;
	i->ended = 0;
	i->begun = i->begun || begins;
	return begins || again;
}

static bool is_absent(struct alert_item *i, const struct alert_limits *limits, double wall, double clock)
{
	if (i->missing == 0) {
		i->missing = clock;
		i->missed = wall;
	}
	if (i->ended > 0 || clock - i->missing < limits->settle)
		return false;
	i->ended = i->missed > i->began ? i->missed : i->began; /* the clock may have been set back */
	return true;
}

static void remove_if(struct alerts *a, bool (*is_done)(const struct alert_item *))
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++)
		if (!is_done(&a->items[i])) {
			if (kept != i)
				a->items[kept] = a->items[i];
			kept++;
		}
	a->n = kept;
}

/* It ended before it had lasted for `delay`. */
static bool is_short(const struct alert_item *i)
{
	return !i->begun && i->missing > 0;
}

static bool is_over(const struct alert_item *i)
{
	return i->end_told;
}

static int add_item(struct alerts *a, const struct alert_seen *s, double wall, double clock, void (*new_id)(char *),
		    struct err *err)
{
	struct alert_item *i;

	if (!list_grow(&a->items, a->n, &a->capacity, sizeof(*a->items)))
		return err_set(err, ENOMEM, "no memory for %zu alerts", a->n + 1);
	i = &a->items[a->n++];
	*i = (struct alert_item){.job = s->job, .critical = s->critical, .began = wall, .first = clock};
	snprintf(i->key, sizeof(i->key), "%s", s->key);
	snprintf(i->id, sizeof(i->id), "%s", s->id);
	snprintf(i->text, sizeof(i->text), "%s", s->text ? s->text : s->own);
	snprintf(i->remedy, sizeof(i->remedy), "%s", s->remedy);
	new_id(i->alert);
	return 0;
}

/* Returns true if a message was made. */
static bool compose_message(struct alerts *a, double wall, double clock, void (*new_id)(char *))
{
	if (a->message.active || clock < a->next || alerts_untold(a) == 0)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		a->items[i].in_begin = has_untold_begin(&a->items[i]);
		a->items[i].in_end = has_untold_end(&a->items[i]);
	}
	a->message = (struct alert_message){.active = true, .made = wall, .at = clock};
	new_id(a->message.id);
	return true;
}

int alerts_step(struct alerts *a, struct alert_seen *seen, size_t n, const struct alert_limits *limits, double wall, double clock,
		void (*new_id)(char ret[ALERT_ID_SIZE]), struct err *err)
{
	bool changed = false;
	int ret = 0;

	if (n > 0)
		qsort(seen, n, sizeof(*seen), by_key);
	for (size_t i = 0; i < n; i++)
		seen[i].known = i > 0 && !strcmp(seen[i].key, seen[i - 1].key);
	for (size_t i = 0; i < a->n; i++) {
		struct alert_item *item = &a->items[i];
		struct alert_seen wanted, *found;

		if (!is_open(item))
			continue;
		snprintf(wanted.key, sizeof(wanted.key), "%s", item->key);
		found = n > 0 ? bsearch(&wanted, seen, n, sizeof(*seen), by_key) : NULL;
		for (; found && found > seen && !strcmp(found[-1].key, item->key); found--)
			; /* of several with one key the first counts */
		if (found)
			found->known = true;
		changed = (found ? is_present(item, limits, clock) : is_absent(item, limits, wall, clock)) || changed;
	}
	remove_if(a, is_short);
	for (size_t i = 0; ret == 0 && i < n; i++) {
		if (seen[i].known)
			continue;
		ret = add_item(a, &seen[i], wall, clock, new_id, err);
		if (ret == 0)
			changed = is_present(&a->items[a->n - 1], limits, clock) || changed;
	}
	changed = compose_message(a, wall, clock, new_id) || changed;
	return ret < 0 ? ret : changed;
}

bool alerts_is_due(const struct alerts *a, double clock)
{
	return a->message.active && a->message.at <= clock;
}

void alerts_told(struct alerts *a, const struct alert_limits *limits, double clock)
{
	for (size_t i = 0; i < a->n; i++) {
		struct alert_item *item = &a->items[i];

		item->begin_told = item->begin_told || item->in_begin;
		item->end_told = item->end_told || item->in_end;
		item->in_begin = item->in_end = false;
	}
	remove_if(a, is_over);
	a->message.active = false;
	a->next = clock + limits->interval;
}

void alerts_failed(struct alerts *a, double clock)
{
	a->message.tries++;
	a->message.at = clock + backoff_seconds(a->message.tries, AGAIN_FIRST, AGAIN_CAP);
}

size_t alerts_untold(const struct alerts *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += (size_t)has_untold_begin(&a->items[i]) + (size_t)has_untold_end(&a->items[i]);
	return n;
}

void alerts_clear(struct alerts *a)
{
	free(a->items);
	*a = (struct alerts){0};
}
