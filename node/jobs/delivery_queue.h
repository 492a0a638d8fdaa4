/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of each destination, for reports: find the failed delivery of another job that a due delivery waits for. The
 * scheduler has its own queues (schedule_deliver.c) with the same rules. */
#ifndef TOMONODE_NODE_DELIVERY_QUEUE_H
#define TOMONODE_NODE_DELIVERY_QUEUE_H

#include "node/jobs/jobs.h"

/* Return true if the delivery waits in a queue of its destination. *ret_commit: true: the queue of storage commitment requests;
 * false: the queue of deliveries. */
bool job_send_is_queued(const struct job_view *v, const struct job_send *s, bool *ret_commit);

/* Set `blocked_by` of every send to the send of another job whose last attempt got no association and whose next attempt this one
 * waits for; NULL: it waits for no other job. Valid until the jobs change. */
void delivery_queue_update(struct jobs *jobs);

#endif
