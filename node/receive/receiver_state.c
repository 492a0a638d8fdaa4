/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_state.c - a text is written before its flag is set and is not changed while the flag is set, so that the manager reads
 * a complete one. The table of associations may be written by two receivers, a new one and one that serves its last associations:
 * it has a lock, for which nobody waits longer than LOCK_NS, because its owner can be stopped or killed at any time. */
#include "node/receive/receiver_state.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOCK_NS 20000000
#define FULL_SECONDS 3.0     /* s; without a free place for so long, or connections that find none: a problem */
#define REFUSED_SECONDS 10.0 /* s; after the last of these connections the problem has ended */

struct receiver_state {
	_Atomic(double) alive;
	atomic_int has[RECEIVER_FAULTS];
	char reason[RECEIVER_FAULTS][300];
	pthread_mutex_t lock; /* of the members below */
	struct node_association associations[NODE_ASSOCIATIONS_MAX];
	size_t n_associations;
};

static void make_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

/* Take the lock; false: not in time. A table that its last writer left incomplete is emptied. */
static bool take_lock(struct receiver_state *s)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOCK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	rc = pthread_mutex_clocklock(&s->lock, CLOCK_MONOTONIC, &until);
	if (rc == EOWNERDEAD) {
		s->n_associations = 0;
		pthread_mutex_consistent(&s->lock);
	}
	return rc == 0 || rc == EOWNERDEAD;
}

struct receiver_state *receiver_state_create(struct err *err)
{
	struct receiver_state *page =
		mmap(NULL, sizeof(struct receiver_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		err_set(err, errno, "no memory for the state of the receiver: %s", strerror(errno));
		return NULL;
	}
	make_lock(&page->lock);
	return page;
}

void receiver_state_begin(struct receiver_state *s, double clock)
{
	if (!s)
		return;
	for (int i = 0; i < RECEIVER_FAULTS; i++)
		atomic_store(&s->has[i], 0);
	atomic_store(&s->alive, clock);
}

void receiver_state_keep(struct receiver_state *s)
{
	if (s)
		madvise(s, sizeof(*s), MADV_DONTFORK);
}

void receiver_state_beat(struct receiver_state *s, double clock)
{
	if (s)
		atomic_store(&s->alive, clock);
}

void receiver_state_fault(struct receiver_state *s, enum receiver_fault fault, const char *reason)
{
	if (!s)
		return;
	if (!reason[0]) {
		atomic_store(&s->has[fault], 0);
	} else if (!atomic_load(&s->has[fault])) {
		snprintf(s->reason[fault], sizeof(s->reason[fault]), "%s", reason);
		atomic_store(&s->has[fault], 1);
	}
}

double receiver_state_alive(const struct receiver_state *s)
{
	return s ? atomic_load(&s->alive) : 0;
}

void receiver_state_read_fault(const struct receiver_state *s, enum receiver_fault fault, char *ret_reason, size_t size)
{
	snprintf(ret_reason, size, "%s", s && atomic_load(&s->has[fault]) ? s->reason[fault] : "");
}

static bool is_same(const struct node_association *a, const struct node_association *b)
{
	return !strcmp(a->calling, b->calling) && !strcmp(a->host, b->host) && !strcmp(a->reason, b->reason);
}

void receiver_state_add_association(struct receiver_state *s, const struct node_association *ended, double now)
{
	struct node_association one = {.last = floor(now)};
	size_t i = 0;

	if (!s || !take_lock(s))
		return;
	memcpy(one.calling, ended->calling, sizeof(one.calling) - 1);
	memcpy(one.host, ended->host, sizeof(one.host) - 1);
	memcpy(one.reason, ended->reason, sizeof(one.reason) - 1);
	while (i < s->n_associations && !is_same(&s->associations[i], &one))
		i++;
	one.count = i < s->n_associations ? s->associations[i].count + 1 : 1;
	if (i == s->n_associations && i < NODE_ASSOCIATIONS_MAX)
		s->n_associations++;
	else if (i == s->n_associations)
		i--;
	memmove(s->associations + 1, s->associations, i * sizeof(one));
	s->associations[0] = one;
	pthread_mutex_unlock(&s->lock);
}

bool receiver_state_read_associations(struct receiver_state *s, struct node_association ret[NODE_ASSOCIATIONS_MAX], size_t *ret_n)
{
	if (!s || !take_lock(s))
		return false;
	*ret_n = s->n_associations < NODE_ASSOCIATIONS_MAX ? s->n_associations : NODE_ASSOCIATIONS_MAX;
	memcpy(ret, s->associations, *ret_n * sizeof(*ret));
	for (size_t i = 0; i < *ret_n; i++) /* other processes have the memory, too */
		ret[i].calling[sizeof(ret[i].calling) - 1] = ret[i].host[sizeof(ret[i].host) - 1] =
			ret[i].reason[sizeof(ret[i].reason) - 1] = '\0';
	pthread_mutex_unlock(&s->lock);
	return true;
}

bool receiver_places_look(struct receiver_places *p, bool full, double now)
{
	if (!full)
		p->full_since = 0;
	else if (p->full_since == 0)
		p->full_since = now;
	return !full && now - p->refused_at > REFUSED_SECONDS;
}

bool receiver_places_refuse(struct receiver_places *p, double now)
{
	if (now - p->refused_at > REFUSED_SECONDS)
		p->refused_since = now;
	p->refused_at = now;
	return now - p->refused_since >= FULL_SECONDS || (p->full_since != 0 && now - p->full_since >= FULL_SECONDS);
}
