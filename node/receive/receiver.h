/* The receiver: a process that listens, and a process per association that stores.
 *
 * listener ──fork──► association: TLS handshake, scp_associate() ─► spool_begin, write, spool_commit, journal_add_instance ─►
 * response (node/receive/intake.h)
 * The listener never opens the journal, so that forking is safe; each association opens its own. Each stored object and each end
 * of an association writes one byte to `notify_fd`, to wake the node. What associations ask the listener about limits goes over
 * node/receive/association_ipc.h.
 */
#ifndef TOMONODE_NODE_RECEIVER_H
#define TOMONODE_NODE_RECEIVER_H

#include "node/config/config.h"
#include "node/receive/listen.h"

/* Accept until SIGTERM: stop accepting, wait for running associations (at most grace seconds), return 0.
 * SIGHUP is ignored here (the node starts a new receiver on the same sockets after a reload). Runs in its own process, which
 * closes its copies of the sockets. */
int receiver_run(struct listen_sockets *sockets, const struct config *config, int notify_fd, int grace, struct err *err);

#endif
