/* Who waits for a destination behind whom: what a case that is due, and has not failed itself, waits for. For people; the
 * scheduler keeps its own queues (schedule_deliver.c), which this mirrors. */
#ifndef TOMONODE_NODE_DELIVERY_QUEUE_H
#define TOMONODE_NODE_DELIVERY_QUEUE_H

#include "node/jobs/jobs.h"

/* Is it in a queue of its destination? *ret_commit: of those that ask for storage commitment; else of deliveries. */
bool job_send_is_queued(const struct job_view *v, const struct job_send *s, bool *ret_commit);

/* Sets `blocked_by` of every send: that of another job, whose last attempt got no association, so that this one waits for the
 * next attempt of it; NULL: it waits behind nobody. True until the jobs change. */
void delivery_queue_update(struct jobs *jobs);

#endif
