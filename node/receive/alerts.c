#include "node/receive/alerts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct minute {
	bool used;
	struct in6_addr sender;
	double since;
	unsigned told;
	unsigned long count[ALERTS_KINDS]; /* not told */
};

struct alerts {
	double since;  /* of the minute of all */
	unsigned told; /* in it */
	struct minute others;
	struct minute minutes[ALERTS_SENDERS];
};

int alerts_create(struct alerts **ret_alerts, struct err *err)
{
	struct alerts *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(err, ENOMEM, "alerts: no memory");
	*ret_alerts = a;
	return 0;
}

struct alerts *alerts_free(struct alerts *a)
{
	free(a);
	return NULL;
}

/* A minute that is over is alerts_tick()'s, which comes often enough. */
static struct minute *minute_of(struct alerts *a, const struct in6_addr *sender, double now)
{
	struct minute *free_one = NULL;

	for (size_t i = 0; i < ALERTS_SENDERS; i++) {
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

bool alerts_room(struct alerts *a, double now)
{
	if (now - a->since >= ALERTS_SECONDS) {
		a->since = now;
		a->told = 0;
	}
	if (a->told >= ALERTS_ALL)
		return false;
	a->told++;
	return true;
}

bool alerts_note(struct alerts *a, const struct in6_addr *sender, enum alerts_kind kind, double now)
{
	struct minute *m = minute_of(a, sender, now);

	if (m->told < ALERTS_EACH && alerts_room(a, now)) {
		m->told++;
		return true;
	}
	m->count[kind]++;
	return false;
}

void alerts_count(struct alerts *a, const struct in6_addr *sender, enum alerts_kind kind, double now)
{
	minute_of(a, sender, now)->count[kind]++;
}

static bool has_counted(const struct minute *m)
{
	for (int i = 0; i < ALERTS_KINDS; i++)
		if (m->count[i] > 0)
			return true;
	return false;
}

void alerts_tick(struct alerts *a, double now, bool last,
		 void (*tell)(void *ctx, const struct in6_addr *sender, const unsigned long count[ALERTS_KINDS], double seconds),
		 void *ctx)
{
	for (size_t i = 0; i <= ALERTS_SENDERS; i++) {
		struct minute *m = i < ALERTS_SENDERS ? &a->minutes[i] : &a->others;

		if (!m->used || (!last && now - m->since < ALERTS_SECONDS))
			continue;
		if (has_counted(m))
			tell(ctx, m == &a->others ? NULL : &m->sender, m->count, now - m->since);
		m->used = false;
	}
}
