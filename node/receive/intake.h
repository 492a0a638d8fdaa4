/* What one association does with the objects it is sent: to the spool, to the journal, then the status for the response. */
#ifndef TOMONODE_NODE_INTAKE_H
#define TOMONODE_NODE_INTAKE_H

#include "node/config/config.h"
#include "node/receive/admission.h"

struct intake_place { /* all borrowed */
	const struct config *config;
	const struct admission *admission;
	const struct listener_conf *listener;
	const struct tls_context *tls; /* NULL: plain */
	int notify_fd;		       /* one byte for each stored object and at the end; -1: none */
	int ipc_fd;		       /* see node/receive/association_ipc.h; -1: none */
	bool busy;		       /* reject it, the node has too many associations */
};

/* Before the process enters its sandbox. */
void intake_prepare(const struct config *config);
/* Serve the association on `fd` (taken over) to its end, in a process of its own: the journal is opened here. */
void intake_run(int fd, const struct intake_place *place);

#endif
