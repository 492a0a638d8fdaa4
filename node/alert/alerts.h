/* SPDX-License-Identifier: Apache-2.0 */
/* Which troubles are told to the webhook, and when: pure functions of what is wrong now, what was told, and time.
 *
 * - A trouble is told once when it begins and once when it is solved. It begins when it has lasted for `delay`; it is solved when
 *   it has been absent for `settle`, so that one that comes and goes more often is told once.
 * - There is one message at a time, and at least `interval` between the end of one and the next: what begins and ends in between
 *   is joined into the next one. A message does not change until it was told, and is then repeated with the same id.
 * - `wall` is the time of day, s since the epoch, and is stored; waiting times use `clock` (clock_seconds()), which no change of
 *   the time of day disturbs.
 */
#ifndef TOMONODE_NODE_ALERTS_H
#define TOMONODE_NODE_ALERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define ALERT_KEY_SIZE 240 /* "held:JOB", or "ID:SUBJECT" of a problem of the node */
#define ALERT_ID_SIZE 33   /* 32 hexadecimal digits */

/* A trouble that exists now. The pointers are borrowed. */
struct alert_seen {
	char key[ALERT_KEY_SIZE]; /* identifies the trouble as long as it lasts */
	const char *id;		  /* "held", "disk-full" */
	int64_t job;		  /* of a case; 0: a problem of the node */
	bool critical;
	const char *text, *remedy; /* sentences without data of a patient; text NULL: it is `own` */
	char own[160];
	bool known; /* used by alerts_step() */
};

/* A trouble that exists or existed. */
struct alert_item {
	char key[ALERT_KEY_SIZE], id[32];
	char alert[ALERT_ID_SIZE]; /* the same in its two messages */
	int64_t job;
	bool critical;
	char text[700], remedy[400];
	double began, ended; /* wall; ended 0: it exists */
	double first;	     /* clock, when it was first seen by this process */
	double missing;	     /* clock, since when it is absent; 0: it is not. Not stored */
	double missed;	     /* wall, the same */
	bool begun;	     /* it has lasted for `delay`: only such items are stored and told */
	bool begin_told, end_told;
	bool in_begin, in_end; /* its begin or end is in the present message */
};

struct alert_message {
	bool active;
	char id[ALERT_ID_SIZE];
	double made; /* wall */
	int tries;   /* failed attempts */
	double at;   /* clock of the next attempt */
};

struct alerts {			  /* starts as {0} */
	struct alert_item *items; /* in the order in which they were first seen */
	size_t n, capacity;
	struct alert_message message;
	double next; /* clock before which no message is made */
};

struct alert_limits {
	double delay, settle, interval; /* s */
};

/* Take what is wrong now (`seen` is sorted by it), and make a message if one is due. Returns 1: what is to be stored has changed;
 * 0: it has not; negative: no memory, some of `seen` will be taken by a later call. new_id: fills in a new unique text. */
int alerts_step(struct alerts *a, struct alert_seen *seen, size_t n, const struct alert_limits *limits, double wall, double clock,
		void (*new_id)(char ret[ALERT_ID_SIZE]), struct err *err);
/* Return true if the message is to be sent now. */
bool alerts_is_due(const struct alerts *a, double clock);
/* The receiver took the message: forget it, and the troubles that are over. */
void alerts_told(struct alerts *a, const struct alert_limits *limits, double clock);
/* It did not: try again after 5 s, then twice as long each time, up to 5 minutes. */
void alerts_failed(struct alerts *a, double clock);
/* Number of begins and ends that are not told yet. */
size_t alerts_untold(const struct alerts *a);
void alerts_clear(struct alerts *a);

#endif
