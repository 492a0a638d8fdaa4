/* SPOOL/orphans/: images of SPOOL/instances/ that no row of the journal names, put there at a start.
 *
 * - A crash between an image's rename and its row leaves one: its sender was never told that it is here, and sends it again. But
 *   beside a journal that was lost, or is an older one that was put back, they are exams that were acknowledged. Nobody can tell
 *   the two from each other for sure, so nothing is removed at once, and a person is told.
 * - They keep their names. One that a row names after all (the right journal is back) goes back to its place.
 * - Their time (mtime) is that at which they were put there.
 * - Only the node's manager calls this, at its start and from its loop; whoever looks may count.
 */
#ifndef TOMONODE_NODE_ORPHANS_H
#define TOMONODE_NODE_ORPHANS_H

#include <stdint.h>

#include "kernels/err.h"

#define ORPHANS_FOLDER "orphans"
#define ORPHANS_DAYS 30 /* kept, where node.retention_unassigned_days says nothing */

/* Put instances/NAME there. Durable after orphans_sync(). */
int orphans_set_aside(const char *spool, const char *name, struct err *err);
/* Put back what names() answers 1 for, asked with "instances/NAME". Answers how many; synced. */
int orphans_restore(const char *spool, int (*names)(void *ctx, const char *file), void *ctx, struct err *err);
int orphans_sync(const char *spool, struct err *err);
/* How many are there; no such folder: 0. */
uint64_t orphans_count(const char *spool);
/* Remove those that were put there `days` ago or earlier; answers how many. What has a time to come begins anew. */
int orphans_remove_old(const char *spool, int days, double now, struct err *err);

#endif
