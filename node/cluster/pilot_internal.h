/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the pilot: its state, and what its files need of each other. Everything runs in one thread; no function blocks but
 * pilot_dial(). */
#ifndef TOMONODE_NODE_PILOT_INTERNAL_H
#define TOMONODE_NODE_PILOT_INTERNAL_H

#include "node/cluster/link.h"
#include "node/cluster/pilot.h"
#include "node/cluster/pilot_case.h"
#include "node/cluster/transfer.h"
#include "node/process/process_table.h"

#define PILOT_DIAL_LIMIT 10.0  /* s for a connection and its handshake */
#define PILOT_WORKER_GRACE 5.0 /* s from SIGTERM to SIGKILL */

enum pilot_phase {
	PILOT_IDLE,
	PILOT_RECEIVING, /* files of the case are missing */
	PILOT_WAITING,	 /* for the worker to be ready */
	PILOT_RUNNING,
	PILOT_FINISHED, /* the outcome is there: the node has not acknowledged it */
};

struct pilot {
	const struct pilot_conf *conf;
	char instance[33], device_name[96]; /* device_name: as the worker opened it */
	int64_t memory;			    /* of the device, bytes; 0: unknown */
	const char *device;		    /* of the worker: "cuda:0" */
	struct process_table processes;	    /* the worker */
	bool worker_ready;
	int worker_deaths;
	struct link *link;
	bool welcome; /* the node accepted this connection */
	double lease, dial_at, lost_since;
	int dials;
	double warned_at; /* time of the last warning about a connection that failed; 0: none since the last connection */
	uint64_t token;
	enum pilot_phase phase;
	struct pilot_case order;
	json_t *body; /* of the order */
	struct wire_message outcome;
	struct transfer_in in;
	size_t missing; /* files of the case that are not complete */
	struct transfer_out out;
	int64_t *offsets; /* of out */
	int signal_fd;
	int code;      /* exit code; -1: continue */
	char why[120]; /* of its end, for the node; "": the node knows it */
};

/* pilot.c */
void pilot_end(struct pilot *p, int code, const char *why); /* exit code, and the reason for the node; the first one counts */
/* Paths of file i of the case and of object i of its result, and their sizes; of the form that struct transfer_out wants. */
int pilot_file_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err);
int pilot_object_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err);
void pilot_forget_case(struct pilot *p); /* remove its files, and stop a worker that computes it */

/* pilot_worker.c */
struct process *pilot_worker(struct pilot *p); /* NULL: there is none now */
void pilot_start_worker(struct pilot *p);
void pilot_start_case(struct pilot *p);	 /* if case and worker are ready */
void pilot_reap_worker(struct pilot *p); /* read its messages; start another one if it has ended */

/* pilot_node.c. Each drops the connection if it is lost. */
void pilot_dial(struct pilot *p);
void pilot_send(struct pilot *p, const struct wire_message *m);
void pilot_send_outcome(struct pilot *p);
void pilot_finish(struct pilot *p, int code, const char *reason); /* the case failed here: make this its outcome */
void pilot_read_node(struct pilot *p);
void pilot_write_node(struct pilot *p);
bool pilot_is_sending(const struct pilot *p);
void pilot_say_end(struct pilot *p); /* tell the node that this pilot ends */

#endif
