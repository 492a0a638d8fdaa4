/* SPDX-License-Identifier: Apache-2.0 */
/* Compute, for reports, which deliveries wait because their destination is down: while it is, the node tries the delivery of one
 * job only, and those of the others wait. The scheduler has its own queues (schedule_deliver.c) with the same rules. */
#ifndef TOMONODE_NODE_DELIVERY_QUEUE_H
#define TOMONODE_NODE_DELIVERY_QUEUE_H

#include "node/jobs/jobs.h"

/* Return true if the delivery waits in a queue of its destination. *ret_commit is then true for the queue of storage commitment
 * requests and false for the queue of deliveries. */
bool job_send_is_queued(const struct job_view *v, const struct job_send *s, bool *ret_commit);

/* Return the time of the last response with which the destination stored or refused an object of any job, s since the epoch; 0:
 * none. Times after `now` are ignored: they were written before the clock was set back. A delivery that got no association before
 * that time does not make the others wait. */
double delivery_queue_reached(const struct jobs *jobs, const char *destination, double now);

/* Set `blocked_by` of each send: the send of another job to the same destination that failed to get an association and is tried
 * again first; NULL: this send waits for no other job. The pointers are valid until the jobs change. */
void delivery_queue_update(struct jobs *jobs);

#endif
