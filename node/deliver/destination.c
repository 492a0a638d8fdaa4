/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/destination.h"

#include <math.h>

#include "node/base/backoff.h"
#include "node/base/log.h"

const struct destination_kind_actions *destination_actions(const struct destination_conf *d)
{
	static const struct destination_kind_actions *const kinds[] = {
#define X(constant, name) [DESTINATION_##constant] = &destination_##name,
		DESTINATION_KINDS(X)
#undef X
	};

	return kinds[d->kind];
}

struct scu_peer destination_peer(const struct config *config, const struct destination_conf *d)
{
	const struct node_conf *node = &config->node;
	bool own = d->certificate[0] != '\0';

	return (struct scu_peer){
		.host = d->host,
		.port = d->port,
		.called = d->aet,
		.calling = node->aet,
		.max_pdu = node->max_pdu,
		.connect_timeout = d->connect_timeout,
		.acse_timeout = d->acse_timeout,
		.dimse_timeout = d->dimse_timeout,
		.use_tls = d->tls,
		.tls = {.certificate = own ? d->certificate : node->tls_certificate,
			.key = own ? d->key : node->tls_key,
			.authorities = d->authorities[0] ? d->authorities : node->tls_authorities,
			.crl = d->authorities[0] || d->crl[0] ? d->crl : node->tls_crl},
		.tls_name = !d->verify_name  ? ""
			    : d->tls_name[0] ? d->tls_name
					     : d->host,
	};
}

struct scu_peer destination_commitment_peer(const struct config *config, const struct destination_conf *destination)
{
	struct scu_peer peer = destination_peer(config, destination);

	if (destination->commitment_aet[0])
		peer.called = destination->commitment_aet;
	if (destination->commitment_host[0]) {
		peer.host = destination->commitment_host;
		if (destination->verify_name && !destination->tls_name[0])
			peer.tls_name = peer.host;
	}
	if (destination->commitment_port)
		peer.port = destination->commitment_port;
	return peer;
}

/* Return true if one more temporary failure requires a person's attention. `send` is the state before this failure. rejected: the
 * peer rejected the association (deliver_needs_operator). */
static bool alarm_due(const struct destination_conf *d, const struct job_send *send, bool rejected, double now)
{
	bool long_since = d->alarm_after > 0 && send->since > 0 && now - send->since >= d->alarm_after;

	return (send->alarm && !send->unconfigured) || long_since ||
	       (rejected && d->alarm_rejections > 0 && send->failures + 1 >= d->alarm_rejections);
}

bool destination_failed(json_t *detail, const struct destination_conf *d, const struct job_send *send,
			struct destination_failure failure, double now)
{
	bool alarm = alarm_due(d, send, failure.rejected, now);
	double wait = backoff_seconds(send->failures + 1, d->retry_first, d->retry_cap);

	wait = fmax(wait, fmin(failure.wait, d->retry_cap));
	json_object_set_new(detail, "next", json_real(now + wait));
	if (failure.down)
		json_object_set_new(detail, "down", json_true());
	if (alarm)
		json_object_set_new(detail, "alarm", json_true());
	return alarm && (!send->alarm || send->unconfigured);
}

void destination_alarm(int64_t job, const char *destination, const char *reason)
{
	log_event(LOG_ALERT, "delivery-alarm", "job=%lld destination=%s reason=%s", (long long)job, destination,
		  log_quote(reason));
}

void destination_recovered(int64_t job, const char *destination)
{
	log_event(LOG_NOTICE, "delivery-recovered", "job=%lld destination=%s", (long long)job, destination);
}
