/* SPDX-License-Identifier: Apache-2.0 */
/* A node for measurements: its own spool, ports and exams in a folder that is removed at the end. Its results go to a folder, so that
 * no archive is measured. */
#ifndef TOMONODE_NODE_BENCH_NODE_H
#define TOMONODE_NODE_BENCH_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

#define BENCH_NODE_SENDERS_MAX 32

struct bench_node_options {
	const char *folder; /* in which the folder is created */
	const char *device;
	bool full; /* exams as a system makes them; false: tiny ones, so that what is measured is the node */
};

struct bench_node;

/* Make the exam, start the node and wait until it answers. */
int bench_node_start(const struct bench_node_options *o, struct bench_node **ret_node, struct err *err);
/* Stop it and remove its folder, but for a log that an error named; takes NULL, returns NULL. */
struct bench_node *bench_node_end(struct bench_node *b);

/* Return what is sent, for the line of a result: "3 images of 10 kB". */
const char *bench_node_sizes(const struct bench_node *b);
/* Send single images of one open case, an association each, by several senders at a time. ret_seconds: from the first to the last. */
int bench_node_associations(struct bench_node *b, int senders, int each, double *ret_seconds, struct err *err);
/* Send an exam and wait for its result. ret_seconds: from the last response to the delivery. */
int bench_node_wait(struct bench_node *b, double *ret_seconds, struct err *err);
/* Send n exams, one behind the other. ret_seconds: from the first byte to the last delivery. */
int bench_node_exams(struct bench_node *b, int n, double *ret_seconds, struct err *err);

#endif
