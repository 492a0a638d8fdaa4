/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's part of alerts: what is to be told is stored in SPOOL/alerts.json before it is sent; a short-lived process
 * with few rights sends it, and the manager never waits for it. While webhook or program do not take messages, that is a problem of
 * the node, and the message is tried again. */
#ifndef TOMONODE_NODE_ALERT_WATCH_H
#define TOMONODE_NODE_ALERT_WATCH_H

#include "node/alert/alert_seen.h"
#include "node/serve/schedule.h"

struct alert_page;

struct alert_watch { /* starts as {0} */
	struct alerts alerts;
	struct alert_list seen;
	struct alert_page *page; /* shared with the process that sends; NULL: none yet */
	bool read;		 /* the file was read */
	bool dirty;		 /* the state has changed since the file was written */
	bool unwritten;		 /* the file could not be written, which was logged */
	char fault[300];	 /* why the last message was not taken; "": it was */
};

/* Take the problems that the manager has found, store what changed, and start to send a message that is due. */
void alert_watch_step(struct alert_watch *w, struct schedule *s, const struct node_problems *problems, double now);
/* The process that sends has ended. */
void alert_watch_ended(struct alert_watch *w, int status, const struct schedule *s);
void alert_watch_clear(struct alert_watch *w);

#endif
