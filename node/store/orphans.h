/* SPDX-License-Identifier: Apache-2.0 */
/* Orphans: images in SPOOL/instances/ that no row of the journal names. At a start they are moved to SPOOL/orphans/.
 *
 * - A crash between the rename of an image's file and the insertion of its row leaves an orphan; its sender got no response and
 * sends it again. But if the journal was lost, or an older one was restored, orphans are images that were acknowledged. The two
 * cases cannot be distinguished with certainty, so nothing is removed at once, and an alarm is logged.
 * - A move does not change the file name. If a row names an orphan later (the right journal was restored), it is moved back.
 * - Their mtime is the time at which they were moved.
 * - Only the manager calls these functions, at its start and from its loop; any process may call orphans_count().
 */
#ifndef TOMONODE_NODE_ORPHANS_H
#define TOMONODE_NODE_ORPHANS_H

#include <stdint.h>

#include "kernels/err.h"

#define ORPHANS_FOLDER "orphans"
#define ORPHANS_DAYS 30 /* days until an orphan is removed, if node.retention_unassigned_days is 0 */

/* Move instances/NAME to orphans/. Durable after orphans_sync(). */
int orphans_set_aside(const char *spool, const char *name, struct err *err);
/* Move back every orphan for which names(ctx, "instances/NAME") returns 1, and sync. Returns their number. */
int orphans_restore(const char *spool, int (*names)(void *ctx, const char *file), void *ctx, struct err *err);
int orphans_sync(const char *spool, struct err *err);
/* Return the number of orphans; 0 if there is no such folder. */
uint64_t orphans_count(const char *spool);
/* Remove the orphans that were moved at least `days` days ago. Returns their number. An orphan whose mtime is in the future gets
 * the current time. */
int orphans_remove_old(const char *spool, int days, double now, struct err *err);

#endif
