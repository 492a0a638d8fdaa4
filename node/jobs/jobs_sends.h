/* SPDX-License-Identifier: Apache-2.0 */
/* Apply the events of deliveries and storage commitments to a job's destinations; private to node/jobs/jobs.c.
 *
 * - A destination that failed may be replaced by its fallback; the job then does not wait for it. After a manual retry the result
 * is sent to the original destination again, unless the fallback has all objects.
 * - A destination has at most one open storage commitment request: for every object that is stored there and not committed. Of
 *   a report about an older request only the committed objects are used; its failures are ignored.
 */
#ifndef TOMONODE_NODE_JOBS_SENDS_H
#define TOMONODE_NODE_JOBS_SENDS_H

#include <jansson.h>

#include "node/jobs/jobs.h"

/* Both return 0, -ENOMEM, or -EBADMSG (the event's detail is incomplete). On an error nothing changes. */
int job_sends_event(struct job_view *v, const json_t *detail, const struct event_row *row); /* send*, sent, commit* */
int job_sends_fallback(struct job_view *v, const json_t *detail, const struct event_row *row);
void job_sends_retry(struct job_view *v); /* a person requested a retry */

#endif
