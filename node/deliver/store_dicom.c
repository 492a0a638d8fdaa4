/* SPDX-License-Identifier: Apache-2.0 */
/* store_dicom.c - destinations of kind dicom: C-STORE over an association. */
#include <stdio.h>

#include "node/deliver/destination.h"

static void describe_peer(const struct destination_conf *d, char *ret, size_t size)
{
	bool elsewhere = d->commitment_aet[0] || d->commitment_host[0] || d->commitment_port;
	int n = snprintf(ret, size, "%s at %s port %d%s, %s", d->aet, d->host, d->port,
			 !d->tls	  ? ""
			 : d->verify_name ? ", TLS"
					  : ", TLS, for any name",
			 d->commitment ? "storage commitment" : "no storage commitment");

	if (d->commitment && elsewhere && n > 0 && (size_t)n < size)
		snprintf(ret + n, size - (size_t)n, " by %s at %s port %d", d->commitment_aet[0] ? d->commitment_aet : d->aet,
			 d->commitment_host[0] ? d->commitment_host : d->host, d->commitment_port ? d->commitment_port : d->port);
}

static double longest_wait(const struct destination_conf *d)
{
	return d->acse_timeout + d->dimse_timeout;
}

static int open_association(const struct config *config, const struct destination_conf *d, const struct scu_context *contexts,
			    size_t n, void **ret_session, struct err *err)
{
	struct scu_peer peer = destination_peer(config, d);

	return scu_open(&peer, contexts, n, (struct scu **)ret_session, err);
}

static void send_object(void *session, const char *path, const char *sop_instance, struct store_result *ret)
{
	struct scu *scu = session;
	struct err err = {0};
	const char *meaning;
	uint16_t status = 0;

	(void)sop_instance; /* the file has it */
	if (scu_store(scu, path, &status, &err) < 0) {
		*ret = (struct store_result){.outcome = deliver_classify_error(err.code), .code = err.code};
		snprintf(ret->reason, sizeof(ret->reason), "%s", err.msg);
		return;
	}
	*ret = (struct store_result){.outcome = deliver_classify(status, &meaning)};
	snprintf(ret->status, sizeof(ret->status), "%04X", status);
	deliver_reason(meaning, ret->outcome == DELIVER_STORED ? "" : scu_comment(scu), ret->reason, sizeof(ret->reason));
}

static void close_association(void *session)
{
	scu_close(session);
}

const struct destination_kind_actions destination_dicom = {
	.verb = "C-STORE",
	.describe = describe_peer,
	.longest_wait = longest_wait,
	.open = open_association,
	.store = send_object,
	.close = close_association,
	.association = true,
	.role = SANDBOX_DELIVER,
};
