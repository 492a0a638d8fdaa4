/* The beginning and the end that all work processes (index, worker, deliver) share: options, configuration, log, journal. */
#ifndef TOMONODE_NODE_WORK_PROCESS_H
#define TOMONODE_NODE_WORK_PROCESS_H

#include "node/config/config.h"
#include "node/process/sandbox.h"
#include "node/store/journal.h"

struct work_process {
	struct config *config;
	struct journal *journal;
	int notify_fd;		 /* -1: nobody waits for us */
	int ipc_fd;		 /* to talk to who started us; -1: none */
	int listen_fd;		 /* of the status page; -1: none */
	const char *argument[2]; /* what follows the options */
};

/* `n_arguments` (0..2) must be there. 0, or the exit code to return (what is wrong is printed or logged). */
int work_process_begin(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv);
/* The same without the journal: work_process_open_journal() opens it, again after each journal_close(t->journal). */
int work_process_options(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv);
int work_process_open_journal(struct work_process *p, struct err *err);
/* Give up what this role does not need (node/process/sandbox.h), when nothing from outside has been read yet. Negative: it is
 * logged, end the process. detail: of a worker its device. */
int work_process_enter_sandbox(const struct work_process *p, enum sandbox_role role, const char *detail);
/* Wake the node: something new is in the journal. */
void work_process_notify(const struct work_process *p);
void work_process_end(struct work_process *p);

#endif
