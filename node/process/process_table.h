/* The node's work processes: this program again (/proc/self/exe) with another subcommand.
 *
 * - A work process holds the spool's lock with the node (the descriptor is handed down), so that a new node cannot start
 *   beside an old worker.
 * - It dies with its node (PR_SET_PDEATHSIG); a crash dies with it and comes back as a sentence.
 * - Ctrl-C and a hang-up of the terminal are the node's business: work processes ignore them.
 */
#ifndef TOMONODE_NODE_PROCESS_TABLE_H
#define TOMONODE_NODE_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernels/err.h"
#include "node/config/config.h"

enum process_role { PROCESS_RECEIVER, PROCESS_INDEX, PROCESS_WORKER, PROCESS_DELIVER, PROCESS_STATUS, PROCESS_COMMIT };

struct process {
	pid_t pid; /* 0: it has ended */
	enum process_role role;
	int64_t job;			    /* DELIVER, COMMIT, WORKER (0: it waits for one) */
	char destination[CONFIG_NAME_SIZE]; /* DELIVER, COMMIT */
	int slot;			    /* WORKER */
	int ipc_fd;			    /* WORKER: to talk to it; -1: none */
	int threads;			    /* that it may use; 0: as many as it likes */
	double started;			    /* s, clock_seconds(), as `now` below */
	double kill_at;			    /* SIGTERM was sent, SIGKILL follows then; 0: it may run */
	int listen_fd;			    /* STATUS: handed down; 0: none */
	bool retired; /* of an older configuration: a receiver that lets its associations end, a status page */
	bool hung;    /* killed because it made no progress */
	/* DELIVER, COMMIT, INDEX: for node/serve/schedule_watch.c. */
	double seen;		  /* clock_seconds() of the last sign of life */
	double cpu, cpu_at_event; /* s of the processor that it had used: when it was last looked, at its job's last event */
	double event;		  /* s since the epoch, of that event */
};

#define PROCESS_MAX 64

struct process_table {
	struct process list[PROCESS_MAX];
	size_t n;
	int lock_fd, notify_fd; /* handed down */
};

const char *process_role_name(enum process_role role);

/* fork and exec `tomonode arg0 arg1 ...` (NULL ends them) with "--notify FD" added, for a worker "--ipc FD", too; `p` says
 * what it is (pid, and for a worker the channel, are filled in). */
int process_table_spawn(struct process_table *all, const struct process *p, const char *const *args, double now, struct err *err);
/* fork alone: `run` is the child, its answer the exit code. The caller may hold nothing that does not survive a
 * fork (a journal). */
int process_table_fork(struct process_table *all, const struct process *p, int (*run)(void *ctx), void *ctx, double now,
		       struct err *err);

struct process *process_table_find(struct process_table *all, enum process_role role, int64_t job,
				   const char *destination);		    /* NULL: none */
struct process *process_table_of_slot(struct process_table *all, int slot); /* NULL: none */
/* SIGTERM now, SIGKILL `grace` seconds later (process_table_tick). Once: a second call only shortens. */
void process_stop(struct process *p, double now, double grace);
/* SIGKILL now. */
void process_kill(struct process *p, double now);
/* Send the SIGKILLs that are due. Answers when the next one is; 0: none. */
double process_table_tick(struct process_table *all, double now);
/* One ended process: 1 with *ret_process and *ret_status (as of waitpid), 0: none.
 * Its channel is the caller's to read and close. */
int process_table_reap(struct process_table *all, struct process *ret_process, int *ret_status);

/* s of the processor that it has used; negative: not known. */
double process_cpu(const struct process *p);

/* "died with signal 11 (Segmentation fault)", "ended with exit code 5". */
void process_describe(int status, char *ret_text, size_t size);

#endif
