/* Logs: one line an event, "event key=value key=value", to syslog or, in the foreground, to stderr. Never patient data:
 * UIDs, job numbers, counts, AE titles and reasons only. Thread-safe; after fork the child goes on using it. */
#ifndef TOMONODE_NODE_LOG_H
#define TOMONODE_NODE_LOG_H

#include <stdbool.h>
#include <syslog.h>

enum log_target { LOG_TO_STDERR, LOG_TO_SYSLOG, LOG_TO_NOWHERE };

/* who: the process's role ("serve", "receiver", "worker"), printed with each line. facility: a syslog facility (LOG_LOCAL0, ...). */
void log_start(enum log_target target, int facility, int max_priority, const char *who);

/* log_event(LOG_INFO, "stored", "sop=%s bytes=%zu", uid, n). Values with blanks or quotes: LOGQ() quotes and escapes into a static ring. */
void log_event(int priority, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *log_quote(const char *text);

#endif
