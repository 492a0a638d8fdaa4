/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/network.h"

/* Leaky bucket: its level falls by limit/window per second. */
struct bucket {
	double level, at;
};

struct sender {
	struct in6_addr address;
	double seen; /* time of the last attempt or bytes; 0: the entry is free */
	struct bucket bytes, refusals;
	double until;	      /* end of the block; 0: not blocked */
	unsigned long closed; /* connections closed during the block */
};

struct limits {
	const struct config *config; /* borrowed */
	double over_at;		     /* end of the block that ends first; 0: nobody is blocked */
	struct sender rest;	     /* shared entry of the senders without an entry */
	struct sender senders[LIMITS_ADDRESSES];
	struct bucket peers[]; /* bytes of each configured peer */
};

int limits_create(const struct config *config, struct limits **ret_limits, struct err *err)
{
	struct limits *l = calloc(1, sizeof(*l) + config->n_peers * sizeof(l->peers[0]));

	if (!l)
		return err_set(err, ENOMEM, "limits: no memory for %zu peers", config->n_peers);
	l->config = config;
	*ret_limits = l;
	return 0;
}

struct limits *limits_free(struct limits *l)
{
	free(l);
	return NULL;
}

struct in6_addr limits_sender_address(const struct in6_addr *address, bool peers_own)
{
	return peers_own ? *address : network_client_prefix(address);
}

static struct sender *find_sender(struct limits *l, const struct in6_addr *address)
{
	for (size_t i = 0; i < LIMITS_ADDRESSES; i++)
		if (l->senders[i].seen > 0 && !memcmp(&l->senders[i].address, address, sizeof(*address)))
			return &l->senders[i];
	return NULL;
}

/* Return the entry of a sender. If it has none, use a free entry, otherwise that of the unblocked sender that was seen least
 * recently. NULL: all entries belong to blocked senders. */
static struct sender *place_sender(struct limits *l, const struct in6_addr *address, double now)
{
	struct sender *s = find_sender(l, address);

	if (!s) {
		for (size_t i = 0; i < LIMITS_ADDRESSES; i++)
			if (l->senders[i].until <= 0 && (!s || l->senders[i].seen < s->seen))
				s = &l->senders[i];
		if (!s)
			return NULL;
		memset(s, 0, sizeof(*s));
		s->address = *address;
	}
	s->seen = now > 0 ? now : 1e-9;
	return s;
}

/* Let the bucket run out at `rate` per second until now, add n, and return its level. */
static double fill_bucket(struct bucket *b, double n, double rate, double now)
{
	double passed = now > b->at ? now - b->at : 0;

	b->level = b->level > passed * rate ? b->level - passed * rate : 0;
	b->level += n;
	b->at = now;
	return b->level;
}

bool limits_is_same_sender(const struct limits_key *a, const struct limits_key *b)
{
	return a->peer == b->peer && (a->peer >= 0 || !memcmp(&a->sender, &b->sender, sizeof(a->sender)));
}

int limits_max_associations(const struct limits *l, const struct limits_key *who)
{
	int own = who->peer >= 0 ? l->config->peers[who->peer].associations : 0;

	return own ? own : l->config->node.peer_associations;
}

static uint64_t bytes_limit(const struct limits *l, const struct limits_key *who)
{
	uint64_t own = who->peer >= 0 ? l->config->peers[who->peer].bytes : 0;

	return own ? own : l->config->node.peer_bytes;
}

bool limits_has_byte_limit(const struct limits *l, const struct limits_key *who)
{
	return bytes_limit(l, who) > 0;
}

double limits_count_bytes(struct limits *l, const struct limits_key *who, uint64_t n, double now)
{
	double limit = (double)bytes_limit(l, who), rate = limit / l->config->node.peer_window;
	struct bucket *bytes;
	struct sender *s;
	double level;

	if (!(limit > 0))
		return 0;
	if (who->peer >= 0) {
		bytes = &l->peers[who->peer];
	} else {
		s = place_sender(l, &who->sender, now);
		bytes = s ? &s->bytes : &l->rest.bytes;
	}
	level = fill_bucket(bytes, (double)n, rate, now);
	return level > limit ? (level - limit) / rate : 0;
}

bool limits_is_blocked(struct limits *l, const struct in6_addr *sender, double now)
{
	struct sender *s = l->over_at > 0 ? find_sender(l, sender) : NULL;

	if (!s || s->until <= now)
		return false;
	s->seen = now;
	s->closed++;
	return true;
}

bool limits_count_refusal(struct limits *l, const struct in6_addr *sender, double weight, double now)
{
	const struct node_conf *node = &l->config->node;
	struct sender *s;

	if (node->peer_refusals == 0)
		return false;
	s = place_sender(l, sender, now);
	if (!s || s->until > 0)
		return false;
	if (fill_bucket(&s->refusals, weight, node->peer_refusals / node->peer_window, now) <= node->peer_refusals)
		return false;
	s->until = now + node->peer_block_time;
	s->closed = 0;
	if (l->over_at <= 0 || s->until < l->over_at)
		l->over_at = s->until;
	return true;
}

void limits_tick(struct limits *l, double now,
		 void (*block_ended)(void *ctx, const struct in6_addr *sender, unsigned long closed), void *ctx)
{
	double next = 0;

	if (l->over_at <= 0 || l->over_at > now)
		return;
	for (size_t i = 0; i < LIMITS_ADDRESSES; i++) {
		struct sender *s = &l->senders[i];

		if (s->until > now && (next <= 0 || s->until < next))
			next = s->until;
		if (s->until <= 0 || s->until > now)
			continue;
		block_ended(ctx, &s->address, s->closed);
		s->until = 0;
		s->closed = 0;
		memset(&s->refusals, 0, sizeof(s->refusals));
	}
	l->over_at = next;
}
