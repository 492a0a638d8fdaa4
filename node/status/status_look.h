/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of results that persons look at: the page's side of `tomonode look` (cmd_look.c), which decodes them.
 *
 * - A process is started at the first request and ended LOOK_IDLE seconds after its last one. It makes one slice at a time. More
 *   of them, up to half of the processors, are started while the others are at work; of the requests that come while all are, only
 *   the last one is kept: a browser asks again.
 * - What was made is kept in memory, up to LOOK_BYTES; what was not used for longest is forgotten first.
 * - A process that has ended since its last slice is replaced, and the new one is asked. If one crashes at its first slice or takes
 *   too long, that slice has a sentence instead, for a minute, and the next one starts another process. */
#ifndef TOMONODE_NODE_STATUS_LOOK_H
#define TOMONODE_NODE_STATUS_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct status;
struct job_view;

#define LOOK_MADE 128		/* number of slices kept at most */
#define LOOK_BYTES (64u << 20)	/* of those */
#define LOOK_ONE_MAX (4u << 20) /* of one */
#define LOOK_MAKERS 4		/* processes at most */

/* Messages between the two processes: a question; an answer, followed by its n bytes. */
struct look_question {
	int64_t job;
	double version; /* when the result was made, s since the epoch */
	long slice;	/* from 1; 0: some slices side by side */
	char file[64];	/* name of an object of the result, in outbox/JOB */
};

struct look_answer {
	int code; /* 200: the slice; 404: there is no such slice; 503: it cannot be made: a sentence */
	size_t n;
};

struct look_made {
	struct look_question of; /* job 0: none */
	struct look_answer head;
	char *bytes; /* terminated; NULL: it is being made */
	double used; /* on clock_seconds() */
};

struct look_maker {	       /* a process */
	struct look_made *now; /* the one that it makes; NULL: none */
	size_t got;	       /* bytes of the answer that have come */
	pid_t pid;
	int fd;	      /* socket to it; -1: it does not run */
	bool is_new;  /* it was started for `now` */
	double until; /* on clock_seconds(): when it is killed, or ended if it makes nothing */
};

struct status_look {
	struct look_made made[LOOK_MADE];
	struct look_maker maker[LOOK_MAKERS];
	struct look_question next; /* job 0: none */
	int makers;		   /* how many may run */
};

struct status_slices { /* those of a result */
	long total;
	int n;	     /* number of those side by side; 2 or more */
	double step; /* distance between neighbours, mm; 0: unknown */
};

/* Return how many slices this machine makes at once: half of its processors, 1 to LOOK_MAKERS. */
int status_look_makers(void);
void status_look_begin(struct status_look *l, int makers);
void status_look_end(struct status_look *l);
/* Find the slices of a result. events: of the case (job_report_events()). false: there are none, or only one. */
bool status_slices_find(const struct status *s, const struct job_view *v, const json_t *events, struct status_slices *ret);
/* Ask for slice `slice` (0: some slices side by side) of a case that has a result (status_has_report()). Returns what was made,
 * valid until the next call; NULL: it is being made, ask again. */
const struct look_made *status_look_get(struct status_look *l, const struct status *s, const struct job_view *v, long slice);
void status_look_receive(struct status_look *l, const struct status *s); /* when an fd is readable, and about once a second */

#endif
