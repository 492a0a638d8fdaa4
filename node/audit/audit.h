/* The audit trail: what the node tells the people who watch over access to patients' data (DICOM PS3.15 A.5, through syslog).
 *
 * A process says once with audit_start() where to; then each function below reports one thing and returns at once, whatever state
 * syslog is in. Nothing is reported with `audit = "none"`. What could not be kept is an alarm in the log ("audit-lost").
 * Transfers of instances follow from the journal: see audit_trail.h.
 */
#ifndef TOMONODE_NODE_AUDIT_H
#define TOMONODE_NODE_AUDIT_H

#include "node/audit/audit_message.h"
#include "node/config/config.h"

enum audit_way {
	AUDIT_QUEUED, /* processes of the node: into the spool's queue, which the manager empties */
	AUDIT_DIRECT, /* commands that run without a node: at once; into the queue where that fails */
};

struct audit_peer {
	const char *aet, *host; /* NULL or "": not known */
};

/* who: the process's role. May be called again after a reload. */
void audit_start(const struct node_conf *node, enum audit_way way, const char *who);
bool audit_is_on(void);

void audit_application(bool started);
/* Somebody was turned away (`limit`: for a limit's sake), or the connection never became one: TLS that failed, no DICOM. */
void audit_refused(const struct audit_peer *peer, bool limit, const char *reason);
/* A new configuration was taken, or not (with the reason). */
void audit_configured(bool taken, const char *reason);
void audit_begin(const struct audit_peer *to, const struct audit_study *study);
struct audit_transfer {
	struct audit_peer from, to; /* we are the one that has no AE title here */
	double time;
	enum audit_outcome outcome;
	const char *reason;
};
void audit_transferred(const struct audit_transfer *t, const struct audit_study *study);
/* Retention removed a study's images. */
void audit_removed(const struct audit_study *study);
/* A command wrote files for other programs, or made objects of such files. path: file or folder. */
void audit_exported(const char *path, const struct audit_study *studies, size_t n, int code);
void audit_imported(const char *path, const struct audit_study *studies, size_t n, int code);

/* The manager, at each turn of its loop: empty the queue. While syslog is away it is tried every 2 s. Answers when to come again,
 * on the same clock; 0: when audit_waiting(). */
double audit_flush(double clock);
bool audit_waiting(double clock);

#endif
