/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of every work process (index, worker, deliver, ...): options, configuration, log, journal. */
#ifndef TOMONODE_NODE_WORK_PROCESS_H
#define TOMONODE_NODE_WORK_PROCESS_H

#include "node/config/config.h"
#include "node/sandbox/sandbox.h"
#include "node/store/journal.h"

struct work_process {
	struct config *config;
	struct journal *journal;
	int notify_fd;		 /* to wake the node; -1: none */
	int ipc_fd;		 /* socket to the parent process; -1: none */
	int ledger_fd;		 /* of the memory shared by all workers (node/process/memory_ledger.h); 0: none */
	int listen_fd;		 /* of the status page; -1: none */
	const char *argument[2]; /* the arguments after the options */
};

/* Parse the options, require `n_arguments` (0..2) arguments, load the configuration, open log and journal. False: return
 * *ret_code from the command, *p is unchanged; the help or the error has been printed or logged. */
bool work_process_begin(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv,
			int *ret_code);
/* Do the same but do not open the journal. */
bool work_process_options(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv,
			  int *ret_code);
/* Open p->journal: after work_process_options(), and again after journal_close(p->journal). */
int work_process_open_journal(struct work_process *p, struct err *err);
/* Drop the rights that this role does not need (node/sandbox/sandbox.h); call it before any data from outside is read. detail:
 * as of sandbox_enter(). Negative: failed, the error is logged; the caller must end the process. */
int work_process_enter_sandbox(const struct work_process *p, enum sandbox_role role, const char *detail);
/* Wake the node: the journal has a new event. */
void work_process_notify(const struct work_process *p);
void work_process_end(struct work_process *p);
/* SIGTERM from now on stops this process: work_process_stopped() is true, and the messages of the parent process end, so that a
 * wait for them does. */
void work_process_catch_stop(const struct work_process *p);
bool work_process_stopped(void);

#endif
