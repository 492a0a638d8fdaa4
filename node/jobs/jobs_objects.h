/* The objects of a job's result, and which destination has which; a part of node/jobs/jobs.c.
 *
 * - A destination that has an object keeps it as sent over a retry, as long as the object's UID is the same.
 * - Of the time when a result was one object are events that name none: `reconstructed` without a list of objects, `sent` and
 *   `send-refused` without a UID. They mean the one, or all. An event about some of many objects has a list of UIDs.
 */
#ifndef TOMONODE_NODE_JOBS_OBJECTS_H
#define TOMONODE_NODE_JOBS_OBJECTS_H

#include <jansson.h>

#include "node/jobs/jobs.h"

/* 0, -ENOMEM, or -EBADMSG: the detail lacks something. With an error nothing is changed. */
int job_objects_replace(struct job_view *v, const json_t *detail); /* of `reconstructed` */
/* What a peer said about some objects, of `sent` and `send-refused`. */
int job_objects_answered(const struct job_view *v, struct job_send *s, const json_t *detail, bool sent);

/* Of `committed`: the peer answers for these, whatever was known of them before. */
int job_objects_committed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Of `commit-failed`: what of these is stored is due again; without a list all that is stored. */
int job_objects_not_committed(const struct job_view *v, struct job_send *s, const json_t *detail);
/* Of `commit-refused`: what is stored is refused. */
void job_objects_uncommitted(const struct job_view *v, struct job_send *s);

/* A destination of a job that begins anew: what it has it keeps. ret_send is all zero before. */
int job_send_begin(const struct job_view *v, const char *name, struct job_send *ret_send);
/* What was refused is tried again; what is there stays there. */
void job_send_again(const struct job_view *v, struct job_send *s);
struct job_send *job_sends_free(struct job_send *sends, size_t n); /* returns NULL */

#endif
