/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a job's result and the state of each at each destination; private to node/jobs/jobs.c.
 *
 * - After a retry, an object that a destination has stored is not sent to it again, unless its UID has changed.
 * - Events may name no object: `reconstructed` without a list of objects has one object; `sent` and `send-refused` without a UID
 *   apply to all objects. An event about some of many objects has a list of UIDs.
 */
#ifndef TOMONODE_NODE_JOBS_OBJECTS_H
#define TOMONODE_NODE_JOBS_OBJECTS_H

#include <jansson.h>

#include "node/jobs/jobs.h"

/* The functions of type int return 0, -ENOMEM, or -EBADMSG (the event's detail is incomplete). On an error the job is unchanged.
 */

/* Apply `reconstructed`: replace the list of objects. */
int job_objects_apply_reconstructed(struct job_view *v, const json_t *detail);
/* Apply `sent` (sent true) or `send-refused`: the peer stored or refused the objects in the detail. */
int job_objects_apply_response(const struct job_view *v, struct job_send *s, const json_t *detail, bool sent);

/* Apply `committed`: set the objects in the detail to SEND_DONE, whatever their state was: the peer committed to keep them. */
int job_objects_apply_committed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Apply `commit-failed`: set those of the objects in the detail (without a list: of all objects) that are SEND_STORED to
 * SEND_DUE. */
int job_objects_apply_commit_failed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Apply `commit-refused`: set all objects that are SEND_STORED to SEND_REFUSED. */
void job_objects_apply_commit_refused(const struct job_view *v, struct job_send *s);

/* Initialise the send to a destination when the job gets its destinations (again): objects that this destination has stored keep
 * their state, the others are due. ret_send must be all zero. */
int job_send_begin(const struct job_view *v, const char *name, struct job_send *ret_send);
/* Set refused objects to SEND_DUE; stored objects keep their state. */
void job_send_make_refused_due(const struct job_view *v, struct job_send *s);
struct job_send *job_sends_free(struct job_send *sends, size_t n); /* returns NULL */

#endif
