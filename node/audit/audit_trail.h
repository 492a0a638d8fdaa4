/* SPDX-License-Identifier: Apache-2.0 */
/* Make the audit messages "DICOM Instances Transferred" from the journal: received instances and deliveries, and what pilots get
 * and bring back.
 *
 * The manager reads the journal after each change. One message covers the instances of one study that came over one association,
 * or those of one delivery. It is written 3 s after the last instance was added to it, at the latest after 10 minutes. The
 * position in the journal is stored in SPOOL/audit/position: after a crash the next start continues from there, so that each
 * transfer is reported at least once.
 */
#ifndef TOMONODE_NODE_AUDIT_TRAIL_H
#define TOMONODE_NODE_AUDIT_TRAIL_H

#include "node/audit/audit.h"
#include "node/jobs/jobs.h"

#define AUDIT_ID_SIZE 65 /* Study Instance UID, Patient ID */

struct audit_trail;

/* Continue where the last run ended; start at the end of the journal if there was none, or if `audit = "none"` was set meanwhile.
 */
int audit_trail_open(const char *spool, struct journal *j, struct audit_trail **ret_trail, struct err *err);
struct audit_trail *audit_trail_close(struct audit_trail *t); /* takes NULL, returns NULL */

/* Read new events and write the messages that are due; with `last`, all messages. config gives the addresses of destinations,
 * jobs the objects of each job. Returns the time of the next call, s since the epoch; 0: call it when the journal changes. Errors
 * are logged. */
double audit_trail_step(struct audit_trail *t, struct journal *j, const struct jobs *jobs, const struct config *config,
			double now, bool last);

/* Return study and patient of a job, from the classifications of its instances. header: file of the instance whose header gives
 * the patient of the result, because a person said so; NULL: the first one. */
void audit_trail_study(struct journal *j, int64_t job, const char *header, struct audit_study *ret_study,
		       char ret_uid[AUDIT_ID_SIZE], char ret_patient[AUDIT_ID_SIZE]);

#endif
