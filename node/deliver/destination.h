/* A destination of the configuration as a peer to open an association to, and what its failures mean. */
#ifndef TOMONODE_NODE_DESTINATION_H
#define TOMONODE_NODE_DESTINATION_H

#include <jansson.h>

#include "dicom/network/store_scu.h"
#include "node/config/config.h"
#include "node/jobs/jobs.h"

/* A destination, to open an association to. Points into both, which must outlive it. */
struct scu_peer destination_peer(const struct config *config, const struct destination_conf *destination);
/* The one to ask for storage commitment. */
struct scu_peer destination_commitment_peer(const struct config *config, const struct destination_conf *destination);

/* A further failure that may pass (`send` is as it was before): is it time that a person looks? rejected: for good, by an
 * association that was turned away. Pure. */
bool destination_alarming(const struct destination_conf *d, const struct job_send *send, bool rejected, double now);
/* What the event about it holds: "next", "down" (no association: other jobs need not try before), "alarm". Answers whether the
 * alarm is a new one, for destination_alarm(), once the event is written. */
bool destination_failed(json_t *detail, const struct destination_conf *d, const struct job_send *send, bool down, bool rejected,
			double now);
void destination_alarm(int64_t job, const char *destination, const char *reason); /* log: alert */
void destination_recovered(int64_t job, const char *destination);		  /* log: it is over */

#endif
