/* SPDX-License-Identifier: Apache-2.0 */
/* Make the audit messages "DICOM Instances Transferred" from the journal: received instances and deliveries.
 *
 * The manager reads the journal after each change. The instances of one association and study are one message, those of one
 * delivery another; a message is written when nothing was added for 3 s, at the latest after 10 minutes. The position in the
 * journal is stored in SPOOL/audit/position: after a crash the next start continues from there, so that each transfer is reported
 * at least once.
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

/* Read new events and report what is due; with `last`, everything. config: addresses of destinations; jobs: objects of each job.
 * Returns when to call again, on the wall clock; 0: when the journal changes. Logs. */
double audit_trail_step(struct audit_trail *t, struct journal *j, const struct jobs *jobs, const struct config *config,
			double now, bool last);

/* Return study and patient of a job, from the classifications of its instances. */
void audit_trail_study(struct journal *j, int64_t job, struct audit_study *ret_study, char ret_uid[AUDIT_ID_SIZE],
		       char ret_patient[AUDIT_ID_SIZE]);

#endif
