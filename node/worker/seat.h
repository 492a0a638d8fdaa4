/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pilot's connection at the node. seat_wait.c: accept a pilot; seat_case.c: have it reconstruct a case;
 * seat_result.c: receive its result. */
#ifndef TOMONODE_NODE_SEAT_H
#define TOMONODE_NODE_SEAT_H

#include "node/cluster/link.h"
#include "node/cluster/pilot_case.h"
#include "node/jobs/case_order.h"
#include "node/process/work_process.h"
#include "recon/core/monitor.h"

#define SEAT_HANDSHAKES_MAX 32
#define SEAT_HANDSHAKE_LIMIT 5.0 /* s until HELLO */
#define SEAT_CANCEL_LIMIT 10.0	 /* s until the pilot has stopped a case */
#define SEAT_PINGS_IN_LEASE 6

struct seat {
	struct work_process process;
	char *config_text;	 /* that the pilot gets; NULL: the embedded defaults */
	struct tls_context *tls; /* NULL: without certificates */
	struct link *link;
	struct wire_message hello; /* of the pilot */
	char from[64];		   /* its address */
	int64_t job, attempt;	   /* of the case in work; 0: none */
	bool cancelled;		   /* the manager does not want the case any more */
	bool sending;		   /* files of the case wait to be queued */
	bool rejected;		   /* the pilot returned a result that is not of the case */
	bool left;		   /* the pilot ended by itself, or its secret was removed */
	bool removed;		   /* its secret was */
	double admitted_at;	   /* clock_seconds() when the secret was looked up last */
	bool (*stopped)(void);	   /* SIGTERM */
};

/* Wait for a pilot that is accepted. 0: seat->link and seat->hello are set. ECANCELED: stopped, or the manager ended. Pilots that
 * are refused are told why, and logged. */
int seat_wait(struct seat *seat, struct err *err);

/* Have the pilot reconstruct a case; struct job_run_conf. ctx: struct seat. */
void seat_compute(void *ctx, const struct case_order *order, const char *out_dir, const struct monitor *monitor,
		  struct case_outcome *ret_outcome);
/* Wait for messages of pilot and manager and handle signs of life. 1: *ret_message (link_receive()); 0: none; negative: lost. */
int seat_receive(struct seat *seat, struct wire_message *ret_message, const void **ret_bytes, size_t *ret_n, struct err *err);
/* Tell the pilot to stop a case, and wait until it has. */
int seat_cancel(struct seat *seat, int64_t job, int64_t attempt, struct err *err);

#endif
