/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/refusal_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct minute {
	bool used;
	struct in6_addr sender;
	double since;
	unsigned logged;
	unsigned long count[REFUSAL_KINDS]; /* not yet logged */
};

struct refusal_log {
	double since;	 /* start of the minute for all senders together */
	unsigned logged; /* number of messages in that minute */
	struct minute others;
	struct minute minutes[REFUSAL_LOG_SENDERS];
};

int refusal_log_create(struct refusal_log **ret_log, struct err *err)
{
	struct refusal_log *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(err, ENOMEM, "refusal log: no memory");
	*ret_log = a;
	return 0;
}

struct refusal_log *refusal_log_free(struct refusal_log *a)
{
	free(a);
	return NULL;
}

/* Return the entry of a sender for the present minute. refusal_log_tick() ends a full minute. */
static struct minute *minute_of(struct refusal_log *a, const struct in6_addr *sender, double now)
{
	struct minute *free_one = NULL;

	for (size_t i = 0; i < REFUSAL_LOG_SENDERS; i++) {
		struct minute *m = &a->minutes[i];

		if (m->used && !memcmp(&m->sender, sender, sizeof(*sender)))
			return m;
		if (!m->used && !free_one)
			free_one = m;
	}
	if (!free_one)
		free_one = &a->others;
	if (!free_one->used)
		*free_one = (struct minute){.used = true, .sender = *sender, .since = now};
	return free_one;
}

bool refusal_log_take_quota(struct refusal_log *a, double now)
{
	if (now - a->since >= REFUSAL_LOG_SECONDS) {
		a->since = now;
		a->logged = 0;
	}
	if (a->logged >= REFUSAL_LOG_PER_MINUTE)
		return false;
	a->logged++;
	return true;
}

bool refusal_log_may_write(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now)
{
	struct minute *m = minute_of(a, sender, now);

	if (m->logged < REFUSAL_LOG_PER_SENDER && refusal_log_take_quota(a, now)) {
		m->logged++;
		return true;
	}
	m->count[kind]++;
	return false;
}

void refusal_log_count(struct refusal_log *a, const struct in6_addr *sender, enum refusal_kind kind, double now)
{
	minute_of(a, sender, now)->count[kind]++;
}

static bool has_counted(const struct minute *m)
{
	for (int i = 0; i < REFUSAL_KINDS; i++)
		if (m->count[i] > 0)
			return true;
	return false;
}

void refusal_log_tick(struct refusal_log *a, double now, bool last,
		      void (*write)(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS],
				    double seconds),
		      void *ctx)
{
	for (size_t i = 0; i <= REFUSAL_LOG_SENDERS; i++) {
		struct minute *m = i < REFUSAL_LOG_SENDERS ? &a->minutes[i] : &a->others;

		if (!m->used || (!last && now - m->since < REFUSAL_LOG_SECONDS))
			continue;
		if (has_counted(m))
			write(ctx, m == &a->others ? NULL : &m->sender, m->count, now - m->since);
		m->used = false;
	}
}
