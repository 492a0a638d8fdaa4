/* What one association does with the objects it is sent: to the spool, to the journal, then the status for the response. */
#ifndef TOMONODE_NODE_INTAKE_H
#define TOMONODE_NODE_INTAKE_H

#include "node/admission.h"
#include "node/config.h"

/* Serve the association on `fd` (taken over) to its end, in a process of its own: the journal is opened here. One byte goes to
 * notify_fd (-1: none) for each stored object and at the end. busy: reject it, the node has too many associations. */
void intake_run(int fd, const struct config *config, const struct admission *admission, int notify_fd, bool busy);

#endif
