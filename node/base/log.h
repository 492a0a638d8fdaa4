/* Logs: one line an event, "event key=value key=value", to syslog or, in the foreground, to stderr. Never patient data:
 * UIDs, job numbers, counts, AE titles and reasons only. Thread-safe; after fork the child goes on using it. A stderr or a syslog
 * daemon that nobody reads any more holds a process up for a second, once; what is lost is counted, and said when somebody reads
 * again. */
#ifndef TOMONODE_NODE_LOG_H
#define TOMONODE_NODE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

enum log_target { LOG_TO_STDERR, LOG_TO_SYSLOG, LOG_TO_NOWHERE };

/* who: the process's role ("serve", "receiver", "worker"), printed with each line. facility: a syslog facility (LOG_LOCAL0,
 * ...). */
void log_start(enum log_target target, int facility, int max_priority, const char *who);

/* log_event(LOG_INFO, "stored", "sop=%s bytes=%zu", uid, n). Control characters and bytes beyond ASCII come out as \n, \t,
 * \xNN. */
void log_event(int priority, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A value as key=value wants it: plain where it can be, else in double quotes with \" and \\ escaped ("" for an empty one).
 * At most 600 characters. The answer lies in a ring of 16 per thread: at most 16 in one log_event. */
const char *log_quote(const char *text);

/* The audit trail takes the same way with another envelope: RFC 5424, MSGID DICOM+RFC3881, as DICOM PS3.15 A.6 has it.
 * `xml` is one line of UTF-8; severity: LOG_NOTICE, LOG_WARNING, ...; who: a word for APP-NAME. One line, the caller frees it;
 * NULL: no memory. */
char *log_audit_frame(int facility, int severity, double when, const char *who, const char *xml);
/* Hand a frame to the syslog daemon that listens on this socket, without waiting: 0, or -errno (-EAGAIN: it is behind; -ENOENT,
 * -ECONNREFUSED: nobody listens; -EMSGSIZE: it will never be taken). */
int log_audit_send(const char *socket_path, const char *frame, size_t n);

#endif
