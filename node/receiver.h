/* The receiver: a process that listens, and a process per association that stores.
 *
 * listener ──fork──► association: scp_associate() ─► spool_begin, write, spool_commit, journal_add_instance ─► response
 * (node/intake.h) The listener never opens the journal, so that forking is safe; each association opens its own. Each stored
 * object and each end of an association writes one byte to `notify_fd`, to wake the node.
 */
#ifndef TOMONODE_NODE_RECEIVER_H
#define TOMONODE_NODE_RECEIVER_H

#include "node/config.h"

/* Bind and listen; answers the descriptor, or EADDRINUSE and the like with address and port in the sentence. port 0: any free
 * one, read back into *ret_port. */
int receiver_listen(const char *bind, int port, int *ret_port, struct err *err);

/* Accept until SIGTERM: stop accepting, wait for running associations (at most grace seconds), return 0.
 * SIGHUP is ignored here (the node starts a new receiver on the same descriptor after a reload). Runs in its own process. */
int receiver_run(int listen_fd, const struct config *config, int notify_fd, int grace, struct err *err);

#endif
