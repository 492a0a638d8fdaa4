/* SPDX-License-Identifier: Apache-2.0 */
/* What the jobs show about each destination: how many cases wait for it, and whether it accepts results. */
#ifndef TOMONODE_NODE_DESTINATION_STATE_H
#define TOMONODE_NODE_DESTINATION_STATE_H

#include "node/config/config.h"
#include "node/jobs/jobs.h"

#define DESTINATION_STATES_MAX 32
/* Requests of storage commitment that failed one behind the other. A report that did not come, or refuses, counts at once. */
#define DESTINATION_UNCONFIRMED 2

struct destination_state {
	char name[CONFIG_NAME_SIZE];
	const struct destination_conf *conf; /* NULL: no longer in the configuration */
	size_t waiting, refused;	     /* numbers of cases */
	size_t unanswered;		     /* part of `refused`: given up because no report of storage commitment came */
	double last_sent, last_failed;	     /* times, s since the epoch; 0: never; sent: whether or not it is committed */
	double next;			     /* time of the next attempt, s since the epoch; 0: none is planned */
	int failures;			     /* number of consecutive failed attempts; the maximum over all cases */
	bool down;			     /* cases wait, and the last attempt failed */
	char reason[240];		     /* reason of that failure */
	size_t unconfirmed;	      /* cases that were sent, and whose storage commitment failed: DESTINATION_UNCONFIRMED */
	char unconfirmed_reason[240]; /* of the last of these failures */
};

/* Fill the list with the destinations of the configuration and those that cases wait for. Returns their number. Pure. */
size_t destination_states(const struct config *config, const struct jobs *jobs,
			  struct destination_state ret_list[DESTINATION_STATES_MAX]);

#endif
