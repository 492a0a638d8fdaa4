/* "DICOM Instances Transferred" out of the journal: what was received and indexed, and how deliveries went.
 *
 * The manager looks after each change of the journal. Instances of one association and study are one message, those that one
 * delivery sent another: written when nothing was added for 3 s, at the latest after 10 minutes. How far the journal was reported
 * is kept in SPOOL/audit/position; what a crash leaves unreported is reported at the next start, now and then something twice,
 * never less than once.
 */
#ifndef TOMONODE_NODE_AUDIT_TRAIL_H
#define TOMONODE_NODE_AUDIT_TRAIL_H

#include "node/audit/audit.h"
#include "node/jobs/jobs.h"

#define AUDIT_ID_SIZE 65 /* Study Instance UID, Patient ID */

struct audit_trail;

/* Where the last run ended; from now on where there was none, or with `audit = "none"` in between. */
int audit_trail_open(const char *spool, struct journal *j, struct audit_trail **ret_trail, struct err *err);
struct audit_trail *audit_trail_close(struct audit_trail *t); /* takes NULL, returns NULL */

/* Read on, report what is due; all of it at the end (`last`). config and jobs say who a destination is and which objects a job
 * has. Answers when to come again, on the wall clock; 0: when the journal changes. Logs. */
double audit_trail_step(struct audit_trail *t, struct journal *j, const struct jobs *jobs, const struct config *config,
			double now, bool last);

/* Study and patient of a job, out of the findings of its instances. */
void audit_trail_study(struct journal *j, int64_t job, struct audit_study *ret_study, char ret_uid[AUDIT_ID_SIZE],
		       char ret_patient[AUDIT_ID_SIZE]);

#endif
