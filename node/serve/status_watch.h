/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's part of the status page: the listening socket and the process that serves it (node/status/cmd_status.c), which is
 * started again when it ends. After a failure, which is logged, the node runs without the page and tries again. */
#ifndef TOMONODE_NODE_STATUS_WATCH_H
#define TOMONODE_NODE_STATUS_WATCH_H

#include "node/process/process_table.h"

struct status_watch {
	int listen_fd; /* -1: none */
	char bind[64]; /* address of that socket */
	int port;
	double at;	  /* when to start the process, on clock_seconds(); 0: none is to be started */
	bool logged;	  /* the present failure has been logged */
	char reason[300]; /* of the present failure; "": none */
};

void status_watch_begin(struct status_watch *w);
/* Apply a configuration that was read: end the process of the page, close or reopen its socket, plan a new process. */
void status_watch_reload(struct status_watch *w, const struct config *config, struct process_table *all, double clock);
/* Open the socket and start the process if they are due. */
void status_watch_step(struct status_watch *w, const struct config *config, const char *config_path, struct process_table *all,
		       double clock);
void status_watch_ended(struct status_watch *w, const struct process *p, const char *how, double clock);
void status_watch_end(struct status_watch *w); /* close the socket; no process is started any more */

#endif
