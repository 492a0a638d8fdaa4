/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: the pilots (reconstruction processes on other machines) that run as Slurm jobs, and how many of them there should
 *be.
 *
 * Pure: events and times in, the next action out. node/fleet/cmd_cluster.c carries the actions out.
 *
 *	 submit          squeue: running          dials in                 idle too long
 *	────────► PENDING ──────────────► RUNNING ─────────► connected ──────────────────► ENDING ──► GONE
 *	             ▲                       │                                               │ still in the queue: scancel
 *	             └───── requeued ────────┘
 *
 * - Wanted are as many pilots as there are cases that a pilot computes or that wait for a device, at least `min`, at most `max`.
 *A job that Slurm started again and that waits in its queue is not counted for this.
 * - A pilot that is not wanted ends after it was idle for `idle` s; a job that waits in Slurm's queue is cancelled after no more
 *   pilots were wanted for that time. Above `max` both happen at once; with a `max` of 0 jobs whose pilot is not
 *   connected are cancelled, too. A pilot that computes is never ended.
 * - The job of a pilot that did not answer when its case was cancelled is cancelled, and no longer counted.
 * - A job that is submitted but whose number is unknown (sbatch gave no reply) is a pilot: squeue finds it by its name.
 * - After a failed submission, and after a job that ended without its pilot having connected, the next submission waits
 *   FLEET_WAIT_FIRST s, doubled each time up to FLEET_WAIT_CAP. A pilot that connects ends this.
 */
#ifndef TOMONODE_NODE_FLEET_H
#define TOMONODE_NODE_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLEET_MAX 64
#define FLEET_ID_SIZE 24
#define FLEET_ID_PREFIX "tomonode-" /* of the names of jobs; 12 hexadecimal digits follow */
#define FLEET_TEXT_SIZE 300
#define FLEET_WAIT_FIRST 5.0
#define FLEET_WAIT_CAP 600.0
#define FLEET_CONNECT_LIMIT 180.0 /* s that a running job may be without a connection before it is cancelled */
#define FLEET_UNLISTED_LIMIT 60.0 /* s after which a job of unknown number that squeue does not list does not exist */
#define FLEET_END_LIMIT 30.0	  /* s from the request to end, or from scancel, to (another) scancel */
#define FLEET_FULL_AFTER 60.0	  /* s in the queue after which the cluster is reported as full */

enum fleet_state { FLEET_PENDING, FLEET_RUNNING, FLEET_ENDING, FLEET_GONE };

struct fleet_pilot {
	char id[FLEET_ID_SIZE]; /* also the name of its Slurm job */
	uint64_t job;		/* number of that job; 0: unknown */
	enum fleet_state state;
	double submitted;  /* time of the submission */
	double since;	   /* start of the state; RUNNING: also of the last loss of the connection */
	double idle_since; /* of a connected pilot */
	double cancelled;  /* time of the last scancel; 0: none */
	bool connected, busy;
	bool was_connected;
	bool existed;	 /* its job was in Slurm, also if its number is unknown */
	bool unanswered; /* it did not answer a cancellation, and has not connected again */
	bool requeued;	 /* PENDING: it ran before; Slurm lets such a job wait for minutes */
	char reason[80]; /* PENDING: why it waits, as Slurm names it */
};

/* Of Slurm: what the last command found out. */
enum fleet_controller {
	FLEET_UP,
	FLEET_DOWN,	/* it does not reply */
	FLEET_BUSY,	/* it accepts no more jobs now */
	FLEET_REFUSES,	/* it refuses these jobs */
	FLEET_DRAINING, /* jobs wait, and not because others run */
	FLEET_FULL,	/* jobs wait until others end */
	FLEET_FAILING,	/* jobs end, or run, without their pilot connecting */
};

struct fleet {
	struct fleet_pilot list[FLEET_MAX]; /* start with {0} */
	size_t n;
	int waiting;		       /* cases that no device is free for */
	double surplus_since;	       /* time since when more pilots exist than are wanted; 0: not */
	enum fleet_controller replied; /* of the last command: UP, DOWN, BUSY or REFUSES */
	char reply[FLEET_TEXT_SIZE];   /* its error */
	char failure[FLEET_TEXT_SIZE]; /* how the last pilot failed; "": a pilot has connected since */
	int failures;		       /* in a row */
	double not_before;	       /* no submission before */
	uint64_t submitted, requeued;  /* since the start: jobs submitted; jobs that Slurm started again */
	uint64_t started;	       /* jobs that were seen to start, and the sum of their times in the queue, s */
	double queued_seconds;
};

struct fleet_limits {
	int min, max;
	double idle; /* s */
};

/* A line of squeue. */
struct fleet_row {
	char id[FLEET_ID_SIZE];
	uint64_t job;
	enum fleet_state state;	   /* PENDING or RUNNING; ENDING: it is completing */
	double submitted, started; /* s since the epoch; 0: unknown */
	char reason[80];
};

/* A pilot that is connected to the node. */
struct fleet_seat {
	char id[FLEET_ID_SIZE];
	bool busy;
};

enum fleet_action_kind {
	FLEET_NOTHING,
	FLEET_SUBMIT, /* a new pilot; report with fleet_submitted() or fleet_failed() */
	FLEET_END,    /* ask the idle pilot `id` to end */
	FLEET_CANCEL, /* scancel `job` */
	FLEET_TEST,   /* have Slurm check whether it accepts jobs again; report with fleet_submission_ok() or fleet_failed() */
	FLEET_FORGET, /* the pilot `id` no longer exists: remove its secret */
};

struct fleet_action {
	enum fleet_action_kind kind;
	char id[FLEET_ID_SIZE];
	uint64_t job;
};

struct fleet_counts {
	int pending, running, idle, busy; /* jobs in the queue; jobs that run, of which are connected: idle and busy */
};

/* Add a pilot whose secret was found at the start; squeue will show whether its job exists. used: the pilot has connected before,
 * so that its job was in Slurm; else its submission may not have ended yet. */
void fleet_adopt(struct fleet *f, const char *id, bool used, double now);
/* sbatch was called for `id`. job 0: it gave no reply, and the job may exist. */
void fleet_submitted(struct fleet *f, const char *id, uint64_t job, double now);
/* Slurm would accept a job again. */
void fleet_submission_ok(struct fleet *f);
/* A submission, or a test of one, failed. */
void fleet_failed(struct fleet *f, enum fleet_controller why, const char *text, double now);
/* A command other than a submission succeeded (UP) or failed. */
void fleet_replied(struct fleet *f, enum fleet_controller why, const char *text);
/* All jobs of this user, as squeue lists them; others than those of the fleet are ignored. */
void fleet_listed(struct fleet *f, const struct fleet_row *rows, size_t n, double now);
/* All connected pilots, and the number of cases that no device is free for. */
void fleet_connected(struct fleet *f, const struct fleet_seat *seats, size_t n, int waiting, double now);
/* The pilot `id` did not stop a case that was cancelled. */
void fleet_unanswered(struct fleet *f, const char *id);
/* Return the next action; the fleet then counts it as carried out. Call it until it returns FLEET_NOTHING. *ret_next: latest time
 * of the next call. */
struct fleet_action fleet_next(struct fleet *f, const struct fleet_limits *limits, double now, double *ret_next);

struct fleet_counts fleet_count(const struct fleet *f);
/* Return the state of Slurm and describe it in a sentence ("" for FLEET_UP). */
enum fleet_controller fleet_describe(const struct fleet *f, double now, char ret_text[FLEET_TEXT_SIZE]);
const char *fleet_controller_name(enum fleet_controller state);
/* Return true if a pending job waits for a reason that the end of other jobs does not remove. */
bool fleet_reason_blocks(const char *reason);

#endif
