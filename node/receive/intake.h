/* SPDX-License-Identifier: Apache-2.0 */
/* Receive the objects of one association: write each to the spool, record it in the journal, then send the response. */
#ifndef TOMONODE_NODE_INTAKE_H
#define TOMONODE_NODE_INTAKE_H

#include "node/config/config.h"
#include "node/receive/admission.h"

struct intake_place { /* what intake_run() needs; the pointers must stay valid until it returns */
	const struct config *config;
	const struct admission *admission;
	const struct listener_conf *listener;
	const struct tls_context *tls; /* NULL: no TLS */
	const char *host;	       /* numeric address of the peer */
	int notify_fd;		       /* gets one byte for each stored object and one at the end; -1: none */
	int ipc_fd;		       /* see node/receive/association_ipc.h; -1: none */
	bool busy;		       /* reject the association, because the node has too many */
};

/* Create the journal's files if they are missing, which the sandbox does not allow later. Call it before the process enters its
 * sandbox. */
void intake_prepare(const struct config *config);
/* Serve the association on the connection `fd` until it ends, and close fd. Runs in a separate process, which opens its own
 * connection to the journal. */
void intake_run(int fd, const struct intake_place *place);

#endif
