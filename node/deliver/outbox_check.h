/* SPDX-License-Identifier: Apache-2.0 */
/* Verify the files of a result against their digests before any of them is sent. */
#ifndef TOMONODE_NODE_OUTBOX_CHECK_H
#define TOMONODE_NODE_OUTBOX_CHECK_H

#include "node/jobs/jobs.h"

/* Compare each file that is still due for `send` with its digest in the event `reconstructed`; a file without a digest is not
 * compared. EBADMSG: a file is damaged or missing; the text names it. Other errors are temporary. */
int outbox_verify(const char *spool, const struct job_view *v, const struct job_send *send, struct err *err);

#endif
