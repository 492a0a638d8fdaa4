/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: the folder of the node's files. File names are made of the node's own numbers, never of a UID or an AE title.
 *
 *   SPOOL/journal.db      the journal
 *   SPOOL/incoming/       *.part while an object arrives; emptied at start
 *   SPOOL/instances/      NAME.dcm, one acknowledged object each
 *   SPOOL/orphans/        images that no row of the journal names (node/store/orphans.h)
 *   SPOOL/outbox/JOB/     results waiting for delivery
 *   SPOOL/work/JOB/       a worker's scratch; emptied at start
 *   SPOOL/audit/          audit messages that wait for syslog; position in the journal up to which transfers were reported
 *   SPOOL/patient.key    key of the digests of patients in the journal (node/store/patient_key.h)
 *   SPOOL/node.json       state of the manager, for the status page (node/store/node_file.h)
 *   SPOOL/node.lock       process number and last sign of life of the running node, which locks (flock) the folder SPOOL itself
 */
#ifndef TOMONODE_NODE_SPOOL_H
#define TOMONODE_NODE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

/* Create the missing folders (mode 0700) and sync them. */
int spool_prepare(const char *spool, struct err *err);
/* Lock the folder, so that the lock holds also if a file in it is removed. Returns the descriptor; the lock lasts until it is
 * closed. EBUSY: the text names the process that holds it. */
int spool_lock(const char *spool, struct err *err);
/* Write two times of the manager (clock_seconds()) into the lock file: its last sign of life, and when SPOOL/node.json last had
 * its present state. Needs no disk space and no inode. */
void spool_lock_beat(int lock_fd, double alive, double reported);
struct spool_holder {
	long pid;	 /* process that locked the spool; 0: unknown */
	double alive;	 /* clock_seconds() of its last sign of life; 0: none yet */
	double reported; /* clock_seconds() at which node.json last had its present state */
};
/* Return true if a process holds the lock of the spool. */
bool spool_holder(const char *spool, struct spool_holder *ret_holder);
/* Write, sync and remove a file in incoming/, as for an object. EROFS, ENOSPC, EACCES, ENOENT...: no object can be received. */
int spool_probe(const char *spool, struct err *err);
/* Check the folders in which results are made: work/ and outbox/. Errors as above. */
int spool_probe_results(const char *spool, struct err *err);
/* Remove the files that a crash left: *.part in incoming, unfinished files in outbox and work, and instance files that retention
 * has removed from the journal; in a shared spool not those of an attempt that a pilot still computes. Move instance files
 * without a row to orphans/. row_of() returns the enum spool_row of an instance file, or of "work/JOB-ATTEMPT" (SPOOL_NO_ROW:
 * this attempt is not running); negative: an error, the file is left unchanged. Returns the number of removed files. */
enum spool_row {
	SPOOL_NO_ROW,  /* no row of the journal names the file */
	SPOOL_NAMED,   /* a row names it */
	SPOOL_REMOVED, /* a row names it, but retention has removed the instance */
};
int spool_sweep(const char *spool, int (*row_of)(void *ctx, const char *file), void *ctx, struct err *err);
/* Create SPOOL/incoming/NAME.part. Returns its descriptor, and NAME for spool_commit(). */
int spool_begin(const char *spool, char ret_name[64], struct err *err);
/* Fsync and close fd, rename the file into instances/, fsync that folder. ret_file: "instances/NAME.dcm". fd is closed in every
 * case. On failure NAME.part may remain: call spool_discard() with fd -1. */
int spool_commit(const char *spool, const char *name, int fd, char ret_file[128], struct err *err);
/* Return true if the file of the spool ("instances/NAME.dcm") exists with this length. */
bool spool_has_file(const char *spool, const char *file, uint64_t bytes);
/* Rename `file` to `lost`, which was missing or truncated, and sync the folder. Both are relative to the spool. */
int spool_replace(const char *spool, const char *file, const char *lost, struct err *err);
/* Close fd and remove incoming/NAME.part. */
void spool_discard(const char *spool, const char *name, int fd); /* fd -1: already closed */
/* Return the free space on the spool's disk, in bytes. */
uint64_t spool_free_bytes(const char *spool);

#endif
