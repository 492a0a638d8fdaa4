/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line per event, "event key=value key=value", to syslog or, in the foreground, to stderr. Never log patient data:
 * only UIDs, job numbers, counts, AE titles and reasons. Thread-safe; a child process may use it after fork. If the program that
 * reads stderr or the syslog socket stops reading, one log call waits for at most one second; further lines are dropped and
 * counted without waiting, and the count is logged when reading resumes. */
#ifndef TOMONODE_NODE_LOG_H
#define TOMONODE_NODE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

enum log_target { LOG_TO_STDERR, LOG_TO_SYSLOG, LOG_TO_NOWHERE };

/* Start logging. who: role of this process ("serve", "receiver", "worker"), printed with each line. facility: a syslog facility
 * (LOG_LOCAL0, ...). max_priority: lowest severity that is logged (LOG_INFO, ...). */
void log_start(enum log_target target, int facility, int max_priority, const char *who);

/* Write one line. Example: log_event(LOG_INFO, "stored", "sop=%s bytes=%zu", uid, n). Control characters and bytes beyond ASCII
 * are written as \n, \t, \xNN. */
void log_event(int priority, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Quote a value for key=value: unchanged if it needs no quotes, otherwise in double quotes with \" and \\ escaped ("" if empty),
 * cut at 600 characters. Returns one of 16 static buffers of the thread: use at most 16 in one log_event(). */
const char *log_quote(const char *text);

/* Format an audit message for syslog: RFC 5424 with MSGID DICOM+RFC3881 (DICOM PS3.15 A.6). xml: one line of UTF-8; severity:
 * LOG_NOTICE, LOG_WARNING, ...; who: the APP-NAME. Returns one line, which the caller frees; NULL: out of memory. */
char *log_audit_frame(int facility, int severity, double when, const char *who, const char *xml);
/* Send a formatted message of n bytes to the syslog daemon that listens on this socket, without waiting. Returns 0 or -errno:
 * -EAGAIN: the daemon is busy; -ENOENT, -ECONNREFUSED: no daemon listens; -EMSGSIZE: the message is too long, do not retry. */
int log_audit_send(const char *socket_path, const char *frame, size_t n);
/* Does a syslog daemon listen on this socket? Sends nothing. Returns 0 or an errno. */
int log_socket_check(const char *socket_path);
#define LOG_SYSLOG_SOCKET "/dev/log" /* of syslog(3) */

#endif
