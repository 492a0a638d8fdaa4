/* SPDX-License-Identifier: Apache-2.0 */
/* Report the node's state to a service manager (systemd, Type=notify): one datagram to the socket named by $NOTIFY_SOCKET, which
 * is a path or, after '@', an abstract name. See sd_notify(3), "Notes". */
#ifndef TOMONODE_NODE_SERVICE_NOTIFY_H
#define TOMONODE_NODE_SERVICE_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "kernels/err.h"

#define SERVICE_READY "READY=1"
#define SERVICE_STOPPING "STOPPING=1"

struct service_notify {
	struct sockaddr_un address;
	socklen_t size; /* 0: no service manager */
};

/* Read and remove $NOTIFY_SOCKET, so that child processes cannot report in the node's name. */
int service_notify_take(struct service_notify *ret_notify, struct err *err);
int service_notify_send(const struct service_notify *notify, const char *state,
			struct err *err); /* waits at most a few seconds */

#endif
