/* SPDX-License-Identifier: Apache-2.0 */
/* Connect to a node as a pilot with a given token and version, and print what it replies:
 *	pilot_hello HOST:PORT ID SECRET NUMBER VERSION */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <poll.h>

#include "node/cluster/link.h"

int main(int argc, char **argv)
{
	struct wire_message hello = {.kind = WIRE_HELLO, .wire = WIRE_VERSION, .name = "test", .device = "cpu"}, reply;
	struct link *l = NULL;
	struct err err = {0};
	const void *bytes;
	size_t n;
	int got = 0;

	if (argc != 6)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	snprintf(hello.version, sizeof(hello.version), "%s", argv[5]);
	if (link_dial(argv[1], &(struct link_pilot){argv[2], argv[3], NULL}, strtoull(argv[4], NULL, 10), 10, &l, &err) == 0 &&
	    link_send(l, &hello, &err) == 0 && link_drain(l, 10, &err) == 0)
		while ((got = link_receive(l, &reply, &bytes, &n, &err)) == 0) {
			struct pollfd p = {.fd = link_fd(l), .events = POLLIN};

			poll(&p, 1, 10000);
		}
	if (got == 1)
		printf("%s %s\n", wire_kind_name(reply.kind), reply.text);
	else
		printf("%s\n", err.msg);
	link_close(l);
	return got == 1 ? 0 : 1;
}
