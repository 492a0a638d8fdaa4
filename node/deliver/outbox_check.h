/* Are the objects of a result still what was made? Looked at before anything of it is sent. */
#ifndef TOMONODE_NODE_OUTBOX_CHECK_H
#define TOMONODE_NODE_OUTBOX_CHECK_H

#include "node/jobs/jobs.h"

/* The files of those objects that `send` is due: each against the digest in its event `reconstructed`, where it has one. EBADMSG:
 * one is damaged or gone, the sentence names it. Other errors may pass. */
int outbox_check(const char *spool, const struct job_view *v, const struct job_send *send, struct err *err);

#endif
