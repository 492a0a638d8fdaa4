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

/* Read the socket's address from $NOTIFY_SOCKET and unset that variable, so that child processes cannot send reports. */
int service_notify_read_address(struct service_notify *ret_notify, struct err *err);
/* Send a state such as SERVICE_READY; does nothing without a service manager. Waits at most a few seconds. */
int service_notify_send(const struct service_notify *notify, const char *state, struct err *err);

#endif
