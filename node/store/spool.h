/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: the folder of the node's files. File names are made of the node's own numbers, never of a UID or an AE title.
 *
 *   SPOOL/journal.db      the journal
 *   SPOOL/incoming/       *.part while an object arrives; emptied at start
 *   SPOOL/instances/      NAME.dcm, one acknowledged object each
 *   SPOOL/orphans/        images that no row of the journal names (node/store/orphans.h)
 *   SPOOL/outbox/JOB/     results waiting for delivery
 *   SPOOL/work/JOB/       a worker's scratch; emptied at start
 *   SPOOL/audit/          audit messages that wait for syslog, and the position in the journal up to which transfers were
 * reported (node/audit/audit_*.h) SPOOL/node.json       state of the manager, for the status page SPOOL/node.lock       held
 * (flock) by the running node; holds its process number
 */
#ifndef TOMONODE_NODE_SPOOL_H
#define TOMONODE_NODE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

/* Create the missing folders (mode 0700) and sync them. */
int spool_prepare(const char *spool, struct err *err);
/* Take the lock. Returns the descriptor, which must stay open. EBUSY: the text names the process that holds it. */
int spool_lock(const char *spool, struct err *err);
/* Remove the files that a crash left: *.part in incoming, unfinished files in outbox and work, and instance files that retention
 * has removed from the journal. Move instance files without a row to orphans/. keep() returns the state of an instance file in
 * the journal (negative: unknown, the file stays). Returns the number of removed files. */
enum spool_row { SPOOL_NO_ROW, SPOOL_NAMED, SPOOL_REMOVED };
int spool_sweep(const char *spool, int (*keep)(void *ctx, const char *file), void *ctx, struct err *err);
/* Create SPOOL/incoming/NAME.part. Returns its descriptor, and NAME for spool_commit(). */
int spool_begin(const char *spool, char ret_name[64], struct err *err);
/* Fsync and close fd, rename the file into instances/, fsync that folder. ret_file: "instances/NAME.dcm". fd is closed in every
 * case. On failure NAME.part may remain: call spool_discard() with fd -1. */
int spool_commit(const char *spool, const char *name, int fd, char ret_file[128], struct err *err);
/* Return true if the file of the spool ("instances/NAME.dcm") exists with this length. */
bool spool_holds(const char *spool, const char *file, uint64_t bytes);
/* Durably replace a lost or truncated file by another committed file. */
int spool_replace(const char *spool, const char *file, const char *lost, struct err *err);
void spool_discard(const char *spool, const char *name, int fd); /* fd -1: already closed */
/* Return the free space on the spool's disk, in bytes. */
uint64_t spool_free(const char *spool);

#endif
