/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the main loop; private to node/serve/serve*.c. */
#ifndef TOMONODE_NODE_SERVE_INTERNAL_H
#define TOMONODE_NODE_SERVE_INTERNAL_H

#include "node/audit/audit_trail.h"
#include "node/serve/alert_watch.h"
#include "node/serve/cluster_watch.h"
#include "node/serve/journal_check.h"
#include "node/serve/node_report.h"
#include "node/serve/schedule.h"
#include "node/serve/self_check.h"
#include "node/serve/serve.h"
#include "node/serve/service_notify.h"
#include "node/serve/status_watch.h"

#define SERVE_GRACE 20 /* s; longest time for which a stopping node waits for running associations and deliveries */

struct serve {
	struct serve_conf conf;
	struct schedule s;
	struct status_watch status;
	struct cluster_watch fleet;
	struct alert_watch alert;
	struct node_report report;
	struct self_check check;
	struct journal_check journal_check;
	struct service_notify notify;
	bool ready; /* SERVICE_READY was sent to the service manager */
	char journal_path[300], config_copy[300];
	int signal_fd, pipe_fd[2];
	int64_t version;	   /* of the journal, at the last check */
	struct audit_trail *trail; /* NULL: not yet opened */
	/* on clock_seconds(): */
	double journal_at;	     /* when to try to open the journal again; 0: it is open */
	double receiver_at;	     /* when to start a receiver; 0: not planned */
	double certificates_at;	     /* when to check the expiry of certificates */
	double cluster_at;	     /* when to try to listen for pilots again; 0: not planned */
	struct cluster_conf cluster; /* of s.cluster_fd */
	double stop_at;		     /* 0: running; else when the remaining processes get SIGTERM */
};

/* serve_config.c */
/* Write the copy of the configuration that work processes read; text NULL: the embedded defaults. On failure the old copy is
 * unchanged.
 */
int serve_write_copy(struct serve *v, const char *text, struct err *err);
void serve_start_log(const struct config *c, const char *who); /* start log and audit trail as configured */
void serve_reload(struct serve *v, double clock);
void serve_watch_certificates(struct serve *v, double clock); /* read the certificates, log those that end soon */

/* Listen for pilots as configured; on failure, try again at cluster_at. */
void serve_open_cluster(struct serve *v, double clock);
/* Return the devices that local workers use; "": none. */
const char *serve_devices(const struct config *c);

/* serve_start.c: set up signals, copy the configuration, clean the spool, then start the permanent child processes. */
int serve_begin(struct serve *v, struct err *err);

void serve_notify(const struct serve *v, const char *state); /* to the service manager, if there is one */

/* serve_children.c */
void serve_start_receiver(struct serve *v, double clock);
void serve_open_journal(struct serve *v, double clock); /* on failure, try again at journal_at */
void serve_reap(struct serve *v, double now);
void serve_stop(struct serve *v, double clock); /* the second call does not wait */
void serve_stop_children(struct serve *v, double clock);

#endif
