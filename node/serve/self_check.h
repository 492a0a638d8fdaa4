/* SPDX-License-Identifier: Apache-2.0 */
/* The manager checks its own node: whether its processes run, objects can be written, the journal is the one that it opened,
 * certificates are valid and names of destinations resolve. The facts go to SPOOL/node.json (node/serve/node_report.h); the
 * problems that follow from them are logged when they begin and end.
 */
#ifndef TOMONODE_NODE_SELF_CHECK_H
#define TOMONODE_NODE_SELF_CHECK_H

#include <sys/stat.h>

#include "node/jobs/node_facts.h"
#include "node/receive/receiver_state.h"
#include "node/serve/schedule.h"

struct resolve_page;

struct self_check {
	struct manager_facts facts;
	struct receiver_state *receiver; /* shared with the receiver; NULL: no memory */
	struct resolve_page *names;	 /* shared with the process that resolves names; NULL: no memory */
	struct stat journal;		 /* of journal.db at the start; st_ino 0: not yet known */
	double at, probe_at, names_at;	 /* next checks, on clock_seconds(); 0: at once */
	size_t names_asked;		 /* entries of `names` that the running process resolves */
	struct node_facts *all;		 /* for the log; allocated at the first check */
	struct node_problems *now, *before;
};

void self_check_begin(struct self_check *c);
/* Remember which file the journal is. Only the first call counts. */
void self_check_journal_opened(struct self_check *c, const char *path);
/* A configuration was read: resolve the names again. */
void self_check_reload(struct self_check *c);
/* Do the checks that are due, at most every few seconds. true: facts may have changed. */
bool self_check_step(struct self_check *c, struct schedule *s, const char *journal_path);
/* The process that resolves names has ended. */
void self_check_resolved(struct self_check *c, const struct config *config);
/* Log the problems that began or ended. report: the present state (struct node_report); the rest is seen as from outside. Returns
 * them, valid until the next call; NULL: they are not known. */
const struct node_problems *self_check_log(struct self_check *c, const struct schedule *s, const json_t *report, double now);
/* Forget the certificates, and add one: for tls_files_check(). */
void self_check_forget_certificates(struct self_check *c);
void self_check_add_certificate(struct self_check *c, const struct node_certificate *certificate);
void self_check_clear(struct self_check *c);

#endif
