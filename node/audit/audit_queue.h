/* What has happened and was not yet handed to syslog: SPOOL/audit/queue, lines of log_audit_frame().
 *
 * Whatever process has something to report appends and goes on; the manager alone takes lines out, in order. So nobody waits for
 * syslog, and nothing is lost while it is away, nor when a process of the node is killed: a line is handed over at least once.
 */
#ifndef TOMONODE_NODE_AUDIT_QUEUE_H
#define TOMONODE_NODE_AUDIT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define AUDIT_QUEUE_MAX (64ull << 20) /* bytes; about 40 000 messages */
/* What is said of strangers may fill so much of it: while syslog is away they cannot take the place of what peers do. */
#define AUDIT_QUEUE_UNKNOWN_PEERS (AUDIT_QUEUE_MAX / 2)

/* One line without its end. EFBIG: the queue would hold more than `most` bytes; ENOSPC, ...: the disk. Nothing of the line is
 * left then. */
int audit_queue_append(const char *spool, const char *line, size_t n, uint64_t most, struct err *err);
/* Can this process use it? An error says whose it is and what to do. Makes it where there is none. */
int audit_queue_ready(const char *spool, struct err *err);
/* Is there anything? */
bool audit_queue_waiting(const char *spool);
/* Hand over what is there until send() fails; it answers 0, or a negative errno: -EMSGSIZE or -EINVAL drop the line, with
 * anything else it is tried again the next time. Answers 0 (some may be left for the next call), else what send() said. ret_sent,
 * ret_dropped: how many lines. */
int audit_queue_drain(const char *spool, int (*send)(void *ctx, const char *line, size_t n), void *ctx, size_t *ret_sent,
		      size_t *ret_dropped, struct err *err);

#endif
