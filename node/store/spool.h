/* The spool folder: where bytes lie. Paths are built from our own numbers, never from a UID or an AE title.
 *
 *   SPOOL/journal.db      the journal
 *   SPOOL/incoming/       *.part while an object arrives; emptied at start
 *   SPOOL/instances/      NAME.dcm, one acknowledged object each
 *   SPOOL/orphans/        images that no row of the journal names (node/store/orphans.h)
 *   SPOOL/outbox/JOB/     results waiting for delivery
 *   SPOOL/work/JOB/       a worker's scratch; emptied at start
 *   SPOOL/audit/          audit messages that wait for syslog, and how far the journal was reported (node/audit/audit_*.h)
 *   SPOOL/node.json       what the manager does, for the status page
 *   SPOOL/node.lock       held (flock) by the running node; holds its process number
 */
#ifndef TOMONODE_NODE_SPOOL_H
#define TOMONODE_NODE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

/* Makes the folders (0700) where they are missing and syncs them. */
int spool_prepare(const char *spool, struct err *err);
/* Take the lock: returns the descriptor to keep open; EBUSY names the process that holds it. */
int spool_lock(const char *spool, struct err *err);
/* Remove what a crash left: *.part in incoming, unfinished files in outbox and work, and instance files that retention had
 * removed from the journal. Instance files that no row names go into orphans/. keep() answers what the journal says of one
 * (negative: not known, it stays). Returns how many were removed. */
enum spool_row { SPOOL_NO_ROW, SPOOL_NAMED, SPOOL_REMOVED };
int spool_sweep(const char *spool, int (*keep)(void *ctx, const char *file), void *ctx, struct err *err);
/* A new incoming file: opens SPOOL/incoming/NAME.part, gives NAME (for spool_commit) and the descriptor. */
int spool_begin(const char *spool, char ret_name[64], struct err *err);
/* fsync(fd), close, rename into instances/, fsync that folder. ret_file: "instances/NAME.dcm". fd is closed in every case.
 * On failure the .part may be left: spool_discard it (fd -1). */
int spool_commit(const char *spool, const char *name, int fd, char ret_file[128], struct err *err);
/* Is a file of the spool ("instances/NAME.dcm") there with this length? */
bool spool_holds(const char *spool, const char *file, uint64_t bytes);
/* Put one committed file in the place of another that was lost or cut short, durably. */
int spool_replace(const char *spool, const char *file, const char *lost, struct err *err);
void spool_discard(const char *spool, const char *name, int fd); /* fd -1: already closed */
/* Bytes free for us on the spool's disk. */
uint64_t spool_free(const char *spool);

#endif
