/* What a job's destinations have, as the events of deliveries and storage commitments tell; a part of node/jobs/jobs.c.
 *
 * - A destination that failed may be replaced by its fallback: nobody waits for it then. A retry by a person begins with the
 *   first one again, unless the fallback has everything.
 * - One transaction at a time is open for a destination: it is about every object that is stored there and not committed. A
 *   report about an older one is believed where it commits, and of no meaning where it does not.
 */
#ifndef TOMONODE_NODE_JOBS_SENDS_H
#define TOMONODE_NODE_JOBS_SENDS_H

#include <jansson.h>

#include "node/jobs/jobs.h"

/* 0, -ENOMEM, or -EBADMSG: the detail lacks something. With an error nothing is changed. */
int job_sends_event(struct job_view *v, const json_t *detail, const struct event_row *row); /* send*, sent, commit* */
int job_sends_fallback(struct job_view *v, const json_t *detail, const struct event_row *row);
void job_sends_retry(struct job_view *v);

#endif
