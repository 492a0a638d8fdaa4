/* SPDX-License-Identifier: Apache-2.0 */
/* The node's work processes. Each runs this program again (/proc/self/exe) with another subcommand.
 *
 * - A work process inherits the descriptor of the spool's lock, so that a new node cannot start while an old worker runs.
 * - It is killed when its node ends (PR_SET_PDEATHSIG). A crash ends this process only, and the node reports it.
 * - It ignores Ctrl-C and a hang-up of the terminal; the node handles them.
 */
#ifndef TOMONODE_NODE_PROCESS_TABLE_H
#define TOMONODE_NODE_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernels/err.h"
#include "node/config/config.h"

enum process_role {
	PROCESS_RECEIVER,
	PROCESS_INDEX,
	PROCESS_WORKER,
	PROCESS_DELIVER,
	PROCESS_STATUS,
	PROCESS_COMMIT,
	PROCESS_RESOLVE,
	PROCESS_CLUSTER,
	PROCESS_ALERT,
	PROCESS_CHECK
};

struct process {
	pid_t pid; /* 0: it has ended */
	enum process_role role;
	int64_t job;			    /* DELIVER, COMMIT, WORKER (0: idle) */
	char destination[CONFIG_NAME_SIZE]; /* DELIVER, COMMIT */
	int slot;			    /* WORKER */
	int ipc_fd;			    /* WORKER, CLUSTER: the manager's end of its socket pair; -1: none */
	int threads;			    /* maximum number of its threads; 0: no limit */
	double started;			    /* s, clock_seconds(), as `now` below */
	double kill_at;			    /* SIGTERM was sent; time at which SIGKILL follows; 0: not being stopped */
	int listen_fd;			    /* STATUS: inherited by it; 0: none */
	bool retired;	/* belongs to an older configuration: a receiver whose last associations are ending, or a status page */
	bool hung;	/* killed because it made no progress */
	bool seat;	/* WORKER: of a pilot; listen_fd is inherited by it */
	bool cancelled; /* WORKER of a pilot: it was told that its job is not needed */
	/* DELIVER, COMMIT, INDEX: used by node/serve/schedule_watch.c to detect a process that hangs. */
	double seen;		  /* clock_seconds() of the last sign of life */
	double cpu, cpu_at_event; /* s of processor time used: at the last check, and at its job's last event */
	double event;		  /* s since the epoch, time of that event */
};

#define PROCESS_MAX 256

struct process_table {
	struct process list[PROCESS_MAX];
	size_t n;
	int lock_fd, notify_fd; /* inherited by every process */
	int ledger_fd;		/* inherited by workers (node/process/memory_ledger.h); 0: none */
};

const char *process_role_name(enum process_role role);

/* Fork and exec `tomonode arg0 arg1 ...` (args ends with NULL) and add "--notify FD", for a worker and the cluster process also
 * "--ipc FD". `p` describes the process; the entry in the table gets its pid and, for these, ipc_fd. */
int process_table_spawn(struct process_table *all, const struct process *p, const char *const *args, double now, struct err *err);
/* Fork without exec: the child calls run(ctx) and exits with its return value. It has every descriptor of the caller but the
 * sockets to the workers: run() must not use a resource that cannot be used after a fork, such as a journal. */
int process_table_fork(struct process_table *all, const struct process *p, int (*run)(void *ctx), void *ctx, double now,
		       struct err *err);

/* For the begin of run() above, where it needs no descriptor of the caller: close all but 0, 1 and 2, so that ports that the
 * caller closes are free while the child runs, and the child can use no file. Ends the process if that fails. */
void process_close_inherited(void);

struct process *process_table_find(struct process_table *all, enum process_role role, int64_t job,
				   const char *destination); /* NULL: none */
size_t process_table_count(const struct process_table *all, enum process_role role, const char *destination);
struct process *process_table_of_slot(struct process_table *all, int slot); /* NULL: none */
/* Send SIGTERM now, and SIGKILL `grace` seconds later (process_table_tick). A second call can only shorten that time. */
void process_stop(struct process *p, double now, double grace);
/* Send SIGKILL now. */
void process_kill(struct process *p, double now);
/* Send the SIGKILLs that are due. Return the time at which the next one is due; 0: none. */
double process_table_tick(struct process_table *all, double now);
/* Collect one process that has ended. 1: *ret_process is a copy of its entry, *ret_status its status as of waitpid(); the caller
 * reads and closes its ipc_fd. 0: none has ended. */
int process_table_reap(struct process_table *all, struct process *ret_process, int *ret_status);

/* Return the processor time that the process has used, in s; negative: unknown. */
double process_cpu_seconds(const struct process *p);

/* Describe a status of waitpid(): "died with signal 11 (Segmentation fault)", "ended with exit code 5". */
void process_describe(int status, char *ret_text, size_t size);

#endif
