/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver: one process that listens, and one process for each association.
 *
 * listener ──fork──► association: TLS handshake, scp_associate() ─► spool_begin, write, spool_commit, journal_add_instance ─►
 * response (node/receive/intake.h)
 * The listener never opens the journal, so that forking is safe; each association opens its own connection. An association writes
 * one byte to `notify_fd` for each stored object and at its end, to wake the node. It asks the listener about limits with the
 * messages of node/receive/association_ipc.h.
 */
#ifndef TOMONODE_NODE_RECEIVER_H
#define TOMONODE_NODE_RECEIVER_H

#include "node/config/config.h"
#include "node/receive/listen.h"
#include "node/receive/receiver_state.h"

/* Accept connections until SIGTERM; then stop accepting, wait for running associations (at most `grace` seconds) and return 0.
 * SIGHUP is ignored: after a reload the node starts a new receiver on the same sockets. Runs in a process of its own, which
 * closes its copies of the sockets. state: where it shows that it works; NULL: nowhere. */
int receiver_run(struct listen_sockets *sockets, const struct config *config, int notify_fd, int grace,
		 struct receiver_state *state, struct err *err);

#endif
