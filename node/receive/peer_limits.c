/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/peer_limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/audit/audit.h"
#include "node/base/log.h"
#include "node/base/network.h"

struct peer_limits {
	const struct config *config; /* borrowed */
	struct limits *limits;
	struct refusal_log *log;
	double now; /* during peer_limits_tick(): its argument */
};

int peer_limits_create(const struct config *config, struct peer_limits **ret_limits, struct err *err)
{
	struct peer_limits *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, ENOMEM, "peer limits: no memory");
	s->config = config;
	rc = limits_create(config, &s->limits, err);
	if (rc == 0)
		rc = refusal_log_create(&s->log, err);
	if (rc < 0)
		peer_limits_free(s);
	else
		*ret_limits = s;
	return rc;
}

struct peer_limits *peer_limits_free(struct peer_limits *s)
{
	if (s) {
		limits_free(s->limits);
		refusal_log_free(s->log);
	}
	free(s);
	return NULL;
}

struct limits *peer_limits_table(struct peer_limits *s)
{
	return s->limits;
}

static void audit_refusal(const char *host, const char *reason)
{
	audit_refused(&(struct audit_peer){.host = host}, true, reason);
}

bool peer_limits_is_blocked(struct peer_limits *s, const struct in6_addr *sender, double now)
{
	if (!limits_is_blocked(s->limits, sender, now))
		return false;
	refusal_log_count(s->log, sender, REFUSAL_REJECTED, now);
	return true;
}

void peer_limits_count_refusal(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now)
{
	const struct node_conf *node = &s->config->node;
	char host[INET6_ADDRSTRLEN], reason[160];

	if (!limits_count_refusal(s->limits, sender, kind == REFUSAL_SILENT ? LIMITS_SILENT : 1, now) ||
	    !refusal_log_take_quota(s->log, now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "sender-blocked", "host=%s refusals=%d window=%g seconds=%g", host, node->peer_refusals,
		  node->peer_window, node->peer_block_time);
	snprintf(reason, sizeof(reason), "more than %d refused attempts within %g s: its connections are closed at once for %g s",
		 node->peer_refusals, node->peer_window, node->peer_block_time);
	audit_refusal(host, reason);
}

void peer_limits_count_closed(struct peer_limits *s, const struct in6_addr *sender, const char *reason, double now)
{
	char host[INET6_ADDRSTRLEN];

	if (!refusal_log_may_write(s->log, sender, REFUSAL_REJECTED, now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "connection-closed", "host=%s reason=%s", host, log_quote(reason));
	audit_refusal(host, reason);
}

bool peer_limits_may_log(struct peer_limits *s, const struct in6_addr *sender, enum refusal_kind kind, double now)
{
	return refusal_log_may_write(s->log, sender, kind, now);
}

static void log_unblocked(void *ctx, const struct in6_addr *sender, unsigned long closed)
{
	struct peer_limits *s = ctx;
	char host[INET6_ADDRSTRLEN];

	if (!refusal_log_take_quota(s->log, s->now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_NOTICE, "sender-unblocked", "host=%s closed=%lu", host, closed);
}

static void log_counted(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS], double seconds)
{
	char host[INET6_ADDRSTRLEN] = "", reason[120];

	(void)ctx;
	if (sender)
		network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "connections-summary", "host=%s refused=%lu silent=%lu seconds=%.0f", sender ? host : "several",
		  count[REFUSAL_REJECTED], count[REFUSAL_SILENT], seconds);
	if (count[REFUSAL_REJECTED] == 0)
		return;
	snprintf(reason, sizeof(reason), "%lu more attempts were refused within %.0f s%s", count[REFUSAL_REJECTED], seconds,
		 sender ? "" : ", of several senders");
	audit_refusal(host, reason);
}

void peer_limits_tick(struct peer_limits *s, double now, bool last)
{
	s->now = now;
	limits_tick(s->limits, now, log_unblocked, s);
	refusal_log_tick(s->log, now, last, log_counted, s);
}
