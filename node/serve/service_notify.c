/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/service_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define VARIABLE "NOTIFY_SOCKET"
#define SEND_SECONDS 5 /* longest wait if the service manager's queue is full */

static int read_address(const char *name, struct service_notify *ret_notify, struct err *err)
{
	struct service_notify n = {.address.sun_family = AF_UNIX};
	size_t length = strlen(name);

	if (name[0] != '/' && name[0] != '@')
		return err_set(err, EAFNOSUPPORT, VARIABLE " is '%.100s': neither a path nor an abstract name ('@...')", name);
	if (length < 2 || length >= sizeof(n.address.sun_path))
		return err_set(err, ENAMETOOLONG, VARIABLE " has %zu bytes, allowed 2..%zu", length,
			       sizeof(n.address.sun_path) - 1);
	memcpy(n.address.sun_path, name, length);
	if (name[0] == '@')
		n.address.sun_path[0] = '\0';
	n.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	*ret_notify = n;
	return 0;
}

int service_notify_read_address(struct service_notify *ret_notify, struct err *err)
{
	const char *name = getenv(VARIABLE);
	struct service_notify none = {.size = 0};
	int ret = 0;

	*ret_notify = none;
	if (name && name[0])
		ret = read_address(name, ret_notify, err);
	unsetenv(VARIABLE);
	return ret;
}

int service_notify_send(const struct service_notify *notify, const char *state, struct err *err)
{
	struct timeval wait = {.tv_sec = SEND_SECONDS};
	size_t n = strlen(state);
	int fd, ret = 0;

	if (notify->size == 0)
		return 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "cannot send %s to the service manager: %s", state, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    sendto(fd, state, n, MSG_NOSIGNAL, (const struct sockaddr *)&notify->address, notify->size) != (ssize_t)n)
		ret = err_set(err, errno, "cannot send %s to the service manager: %s", state, strerror(errno));
	close(fd);
	return ret;
}
