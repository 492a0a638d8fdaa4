/* SPDX-License-Identifier: Apache-2.0 */
/* A case that a seat has its pilot reconstruct: seat_case.c has the conversation, seat_result.c receives the result. */
#ifndef TOMONODE_NODE_SEAT_INTERNAL_H
#define TOMONODE_NODE_SEAT_INTERNAL_H

#include "node/cluster/transfer.h"
#include "node/worker/seat.h"

struct seat_case {
	struct seat *seat;
	const char *out_dir, *spool;
	const struct monitor *monitor;
	struct pilot_case order;
	char **flatfields; /* paths of the files */
	struct transfer_out out;
	int64_t *offsets; /* of out */
	struct transfer_in in;
	struct wire_message outcome; /* of the pilot, while its objects are fetched */
	size_t n_objects;
	uint64_t result_bytes; /* of all objects */
	size_t missing;	       /* objects that are not complete */
	int fetches;
	const char *stage; /* and its fraction: the last progress of the pilot; NULL: none */
	double fraction;
	bool done;
	struct case_outcome *result;
};

/* seat_case.c. The case ends with this outcome; code 0: reconstructed. */
void seat_end_case(struct seat_case *c, int code, const char *reason);

/* seat_result.c: handle a message of the pilot about its result. Negative: the connection cannot be used any more. */
int seat_on_outcome(struct seat_case *c, struct wire_message *m, struct err *err);
int seat_on_file(struct seat_case *c, const struct wire_message *m, struct err *err);
int seat_on_data(struct seat_case *c, const void *bytes, size_t n, struct err *err);

#endif
