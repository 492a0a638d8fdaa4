#include "node/receive/senders.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/audit/audit.h"
#include "node/base/log.h"
#include "node/base/network.h"

struct senders {
	const struct config *config; /* borrowed */
	struct limits *limits;
	struct alerts *alerts;
	double now; /* of the tick under way */
};

int senders_create(const struct config *config, struct senders **ret_senders, struct err *err)
{
	struct senders *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, ENOMEM, "senders: no memory");
	s->config = config;
	rc = limits_create(config, &s->limits, err);
	if (rc == 0)
		rc = alerts_create(&s->alerts, err);
	if (rc < 0)
		senders_free(s);
	else
		*ret_senders = s;
	return rc;
}

struct senders *senders_free(struct senders *s)
{
	if (s) {
		limits_free(s->limits);
		alerts_free(s->alerts);
	}
	free(s);
	return NULL;
}

struct limits *senders_limits(struct senders *s)
{
	return s->limits;
}

static void tell_audit(const char *host, const char *reason)
{
	audit_refused(&(struct audit_peer){NULL, host}, true, reason);
}

bool senders_shut_out(struct senders *s, const struct in6_addr *sender, double now)
{
	if (!limits_shut_out(s->limits, sender, now))
		return false;
	alerts_count(s->alerts, sender, ALERTS_REFUSED, now);
	return true;
}

void senders_refused(struct senders *s, const struct in6_addr *sender, enum alerts_kind kind, double now)
{
	const struct node_conf *node = &s->config->node;
	char host[INET6_ADDRSTRLEN], reason[160];

	if (!limits_refused(s->limits, sender, kind == ALERTS_SILENT ? LIMITS_SILENT : 1, now) || !alerts_room(s->alerts, now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "sender-shut-out", "host=%s refusals=%d window=%g seconds=%g", host, node->peer_refusals,
		  node->peer_window, node->refusal_pause);
	snprintf(reason, sizeof(reason), "more than %d refused attempts within %g s: its connections are closed at once for %g s",
		 node->peer_refusals, node->peer_window, node->refusal_pause);
	tell_audit(host, reason);
}

void senders_turned_away(struct senders *s, const struct in6_addr *sender, const char *reason, double now)
{
	char host[INET6_ADDRSTRLEN];

	if (!alerts_note(s->alerts, sender, ALERTS_REFUSED, now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "connection-closed", "host=%s reason=%s", host, log_quote(reason));
	tell_audit(host, reason);
}

bool senders_may_tell(struct senders *s, const struct in6_addr *sender, enum alerts_kind kind, double now)
{
	return alerts_note(s->alerts, sender, kind, now);
}

static void let_in(void *ctx, const struct in6_addr *sender, unsigned long closed)
{
	struct senders *s = ctx;
	char host[INET6_ADDRSTRLEN];

	if (!alerts_room(s->alerts, s->now))
		return;
	network_print(sender, host, sizeof(host));
	log_event(LOG_NOTICE, "sender-let-in", "host=%s closed=%lu", host, closed);
}

static void tell_counted(void *ctx, const struct in6_addr *sender, const unsigned long count[ALERTS_KINDS], double seconds)
{
	char host[INET6_ADDRSTRLEN] = "", reason[120];

	(void)ctx;
	if (sender)
		network_print(sender, host, sizeof(host));
	log_event(LOG_WARNING, "connections-counted", "host=%s refused=%lu silent=%lu seconds=%.0f", sender ? host : "several",
		  count[ALERTS_REFUSED], count[ALERTS_SILENT], seconds);
	if (count[ALERTS_REFUSED] == 0)
		return;
	snprintf(reason, sizeof(reason), "%lu more attempts were turned away within %.0f s%s", count[ALERTS_REFUSED], seconds,
		 sender ? "" : ", of several senders");
	tell_audit(host, reason);
}

void senders_tick(struct senders *s, double now, bool last)
{
	s->now = now;
	limits_tick(s->limits, now, let_in, s);
	alerts_tick(s->alerts, now, last, tell_counted, s);
}
