/* SPDX-License-Identifier: Apache-2.0 */
/* Audit messages not yet sent to syslog: SPOOL/audit/queue, lines made by log_audit_frame().
 *
 * Any process appends a line and continues; only the manager removes lines, in order. So no process waits for syslog, and no
 * message is lost while syslog is down or when a process is killed: each line is sent at least once.
 */
#ifndef TOMONODE_NODE_AUDIT_QUEUE_H
#define TOMONODE_NODE_AUDIT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define AUDIT_QUEUE_MAX (64ull << 20) /* bytes; about 40 000 messages */
/* Bytes up to which messages about unknown peers may fill the queue, so that while syslog is down space remains for messages
 * about known peers. */
#define AUDIT_QUEUE_UNKNOWN_PEERS (AUDIT_QUEUE_MAX / 2)

/* Append a line, given without its newline. EFBIG: the queue would exceed `most` bytes; ENOSPC and other values: the write
 * failed. On error no part of the line is in the queue. */
int audit_queue_append(const char *spool, const char *line, size_t n, uint64_t most, struct err *err);
/* Create the queue if needed and check that this process can use it. An error names its owner and the remedy. */
int audit_queue_ready(const char *spool, struct err *err);
/* Return true if the queue has lines. */
bool audit_queue_has_lines(const char *spool);
/* Send the lines in order until send() fails. send() returns 0 or a negative errno: after -EMSGSIZE and -EINVAL the line is
 * dropped; after any other error the next call sends it again. Returns 0 (lines may remain for the next call) or the error of
 * send(). ret_sent, ret_dropped: numbers of lines. */
int audit_queue_drain(const char *spool, int (*send)(void *ctx, const char *line, size_t n), void *ctx, size_t *ret_sent,
		      size_t *ret_dropped, struct err *err);

#endif
