/* SPDX-License-Identifier: Apache-2.0 */
/* A configured destination: what its kind does, the peer to connect to, and the record of its failures.
 *
 * A new kind is a line of DESTINATION_KINDS (node/config/config.h), its keys (node/config/destination_keys.c), and a file here that
 * fills a struct destination_kind_actions. */
#ifndef TOMONODE_NODE_DESTINATION_H
#define TOMONODE_NODE_DESTINATION_H

#include <jansson.h>

#include "dicom/network/store_scu.h"
#include "node/config/config.h"
#include "node/deliver/deliver.h"
#include "node/jobs/jobs.h"
#include "node/sandbox/sandbox.h"

/* A session sends objects one after the other, in one process. After DELIVER_TRANSIENT it can only be closed. */
struct destination_kind_actions {
	const char *verb; /* how an object is stored: "C-STORE" */
	/* Write where it is: "STOW-RS to https://..." */
	void (*describe)(const struct destination_conf *d, char *ret, size_t size);
	/* Longest time in which nothing arrives although all is in order, after the connection was opened, s. */
	double (*longest_wait)(const struct destination_conf *d);
	/* What can be found out without sending anything, as the node's user. NULL: nothing. */
	int (*check)(const struct destination_conf *d, struct err *err);
	/* contexts: [n], of the objects that will be sent. All arguments must outlive the session. */
	int (*open)(const struct config *config, const struct destination_conf *d, const struct scu_context *contexts, size_t n,
		    void **ret_session, struct err *err);
	/* path: a Part 10 file. */
	void (*store)(void *session, const char *path, const char *sop_instance, struct store_result *ret);
	void (*close)(void *session); /* session: may be NULL */
	bool association;	      /* a session is a struct scu */
	enum sandbox_role role;	      /* of the process that delivers */
};
#define X(constant, name) extern const struct destination_kind_actions destination_##name; /* store_NAME.c */
DESTINATION_KINDS(X)
#undef X
const struct destination_kind_actions *destination_actions(const struct destination_conf *d);

/* Return the peer for storage. It points into both arguments, which must outlive it. */
struct scu_peer destination_peer(const struct config *config, const struct destination_conf *destination);
/* Return the peer for storage commitment. */
struct scu_peer destination_commitment_peer(const struct config *config, const struct destination_conf *destination);

/* Complete the detail of an event about a failed attempt: add "next" (time of the next attempt), "down" (no association was
 * possible: other jobs wait until that time, too) and "alarm". Returns true if the alarm is new: call destination_alarm() after
 * the event is written. The wait that the peer asks for is at most retry_cap. */
bool destination_failed(json_t *detail, const struct destination_conf *d, const struct job_send *send,
			struct destination_failure failure, double now);
void destination_alarm(int64_t job, const char *destination, const char *reason); /* log an alert */
void destination_recovered(int64_t job, const char *destination);		  /* log that the alarm has ended */

#endif
