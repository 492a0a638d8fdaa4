/* What a service manager (systemd, Type=notify) wants to hear of the node: one datagram to the socket that $NOTIFY_SOCKET names,
 * a path or, after '@', a name in the abstract space: sd_notify(3), "Notes". */
#ifndef TOMONODE_NODE_SERVICE_NOTIFY_H
#define TOMONODE_NODE_SERVICE_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "kernels/err.h"

#define SERVICE_READY "READY=1"
#define SERVICE_STOPPING "STOPPING=1"

struct service_notify {
	struct sockaddr_un address;
	socklen_t size; /* 0: nobody wants to hear anything */
};

/* From the environment, where the name is removed: processes that are started later are not the service. */
int service_notify_take(struct service_notify *ret_notify, struct err *err);
int service_notify_send(const struct service_notify *notify, const char *state, struct err *err); /* waits some seconds at most */

#endif
