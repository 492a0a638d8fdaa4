/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a job's result and the state of each at each destination; private to node/jobs/jobs.c.
 *
 * - An object that a destination stores is not sent again after a retry if its UID is unchanged.
 * - Events may name no object: `reconstructed` without a list of objects has one object; `sent` and `send-refused` without a UID
 *   apply to all objects. An event about some of many objects has a list of UIDs.
 */
#ifndef TOMONODE_NODE_JOBS_OBJECTS_H
#define TOMONODE_NODE_JOBS_OBJECTS_H

#include <jansson.h>

#include "node/jobs/jobs.h"

/* The functions that return int return 0, -ENOMEM, or -EBADMSG (the event's detail is incomplete). On an error nothing changes.
 */

/* Apply `reconstructed`: replace the list of objects. */
int job_objects_replace(struct job_view *v, const json_t *detail);
/* Apply `sent` (sent true) or `send-refused`: the peer stored or refused the objects in the detail. */
int job_objects_answered(const struct job_view *v, struct job_send *s, const json_t *detail, bool sent);

/* Apply `committed`: the peer committed these objects, whatever their state was. */
int job_objects_committed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Apply `commit-failed`: those of the listed objects (without a list: all) that are stored become due. */
int job_objects_not_committed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Apply `commit-refused`: stored objects become refused. */
void job_objects_uncommitted(const struct job_view *v, struct job_send *s);

/* Initialise a destination of a job that is routed again; objects that it stores stay stored. ret_send must be all zero. */
int job_send_begin(const struct job_view *v, const char *name, struct job_send *ret_send);
/* Make refused objects due again; stored ones stay stored. */
void job_send_again(const struct job_view *v, struct job_send *s);
struct job_send *job_sends_free(struct job_send *sends, size_t n); /* returns NULL */

#endif
