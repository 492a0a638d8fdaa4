/* SPDX-License-Identifier: Apache-2.0 */
/* The audit trail: records of access to patients' data, as audit messages over syslog (DICOM PS3.15 A.5).
 *
 * A process calls audit_start() once; then each function below records one event and returns at once, whatever the state of
 * syslog. With `audit = "none"` nothing is recorded. A message that cannot be stored raises an alarm in the log ("audit-lost").
 * Transfers of instances are taken from the journal: see node/audit/audit_trail.h.
 */
#ifndef TOMONODE_NODE_AUDIT_H
#define TOMONODE_NODE_AUDIT_H

#include <stdint.h>

#include "node/audit/audit_message.h"
#include "node/config/config.h"

enum audit_mode {
	AUDIT_QUEUED, /* processes of the node: append to the spool's queue, which the manager empties */
	AUDIT_DIRECT, /* commands that run without a node: send at once; append to the queue if that fails */
};

struct audit_peer {
	const char *aet, *host; /* NULL or "": unknown */
	const char *pilot;	/* its ID, which it has instead of an AE title; NULL: it is no pilot */
};

/* Set the configuration (copied) and the mode. who: role of this process in the messages. Call it again after a reload. */
void audit_start(const struct node_conf *node, enum audit_mode way, const char *who);
bool audit_is_on(void);

/* The node has started (true) or is stopping (false). */
void audit_application_activity(bool started);
/* A peer was refused (limit true: because it exceeded a limit), or a connection failed before the association began: the TLS
 * handshake failed, or the bytes were not DICOM. */
void audit_refused(const struct audit_peer *peer, bool limit, const char *reason);
/* A new configuration was accepted, or rejected with this reason. */
void audit_configured(bool taken, const char *reason);
/* A pilot has connected (true), or its connection ended. reason: why it was lost; NULL: it ended regularly. */
void audit_pilot(const struct audit_peer *pilot, bool connected, const char *reason);
/* The Slurm job of a pilot was submitted (true) or cancelled. job: its number, 0: unknown. reason: why that failed; NULL: it did
 * not. */
void audit_slurm_job(const char *pilot, bool submitted, uint64_t job, const char *reason);
/* Instances of these studies are about to be sent to a destination or a pilot. time: s since the epoch; 0: now. */
void audit_begin_transfer(const struct audit_peer *to, double time, const struct audit_study *studies, size_t n);
struct audit_transfer {
	struct audit_peer from, to; /* the one without an AE title and ID is this node */
	double time;
	enum audit_outcome outcome;
	const char *reason;
};
/* Instances of this study were received or delivered. */
void audit_transferred(const struct audit_transfer *t, const struct audit_study *study);
/* Retention removed a study's images. */
void audit_removed(const struct audit_study *study);
/* A person (by) requested that images of these studies are reconstructed again. */
void audit_redo(const char *by, double time, const struct audit_study *studies, size_t n);
/* A person (by) stated that instances with these Patient IDs are of one patient. */
void audit_same_patient(const char *by, double time, const struct audit_study *studies, size_t n);
/* A person (by) changed what is done with the images of these studies: retried or cancelled their case. */
void audit_case_changed(const char *by, double time, const struct audit_study *studies, size_t n);
/* A command exported files for other programs, or imported such files. path: file or folder; code: exit code of the command. */
void audit_exported(const char *path, const struct audit_study *studies, size_t n, int code);
void audit_imported(const char *path, const struct audit_study *studies, size_t n, int code);

/* Send the queued messages; the manager calls it in each turn of its loop. While syslog is not reachable it tries every 2 s.
 * clock: clock_seconds(). Returns the time of the next call; 0: call it when audit_has_due_messages() is true. */
double audit_flush(double clock);
const char *audit_delay(void); /* why messages wait in the queue, as the manager knows; "": they do not, or audit is off */
bool audit_has_due_messages(double clock); /* true: messages are queued, and the next attempt to send them is due */

#endif
