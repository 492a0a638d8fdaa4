/* SPDX-License-Identifier: Apache-2.0 */
/* A configured destination: the peer to connect to, and the record of its failures. */
#ifndef TOMONODE_NODE_DESTINATION_H
#define TOMONODE_NODE_DESTINATION_H

#include <jansson.h>

#include "dicom/network/store_scu.h"
#include "node/config/config.h"
#include "node/jobs/jobs.h"

/* Return the peer for storage. It points into both arguments, which must outlive it. */
struct scu_peer destination_peer(const struct config *config, const struct destination_conf *destination);
/* Return the peer for storage commitment. */
struct scu_peer destination_commitment_peer(const struct config *config, const struct destination_conf *destination);

/* Complete the detail of an event about a failed attempt: add "next" (time of the next attempt), "down" (no association was
 * possible: other jobs wait until that time, too) and "alarm". Returns true if the alarm is new: call destination_alarm() after
 * the event is written. */
struct destination_failure {
	bool down, rejected; /* the kind of failure */
	double wait;	     /* time that the peer asks to wait, s; at most retry_cap is waited; 0: it does not say */
};
bool destination_failed(json_t *detail, const struct destination_conf *d, const struct job_send *send,
			struct destination_failure failure, double now);
void destination_alarm(int64_t job, const char *destination, const char *reason); /* log an alert */
void destination_recovered(int64_t job, const char *destination);		  /* log that the alarm has ended */

#endif
