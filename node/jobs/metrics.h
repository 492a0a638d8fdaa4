/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the journal's events: each event is counted once. Those of settled jobs are recorded in the journal
 * (node/jobs/jobs_settled.h), so that they survive restarts and the deletion of old cases, and need no walk over all events.
 * docs/status-page.md documents them; node/status/metrics_text.c writes them. */
#ifndef TOMONODE_NODE_METRICS_H
#define TOMONODE_NODE_METRICS_H

#include <stdint.h>

#include "node/jobs/jobs.h"

#define METRICS_EVENTS 64
#define METRICS_DESTINATIONS 32 /* the first names in the journal; further destinations are not counted */
#define METRICS_BUCKETS 9

extern const double metrics_bounds[METRICS_BUCKETS]; /* upper bounds of the buckets, s; one more bucket counts longer times */

/* All numbers are whole ones below 2^53, so that sums do not depend on their order: a counter never falls over a restart. */
struct metrics_times {
	double count, bucket[METRICS_BUCKETS + 1]; /* numbers of times: all, and in each bucket alone */
	double sum;				   /* microseconds */
};

struct metrics_deliveries {
	char name[CONFIG_NAME_SIZE];
	double sent, refused; /* objects */
	double failed;	      /* attempts */
};

struct metrics { /* starts as {0} */
	double events[METRICS_EVENTS];
	struct metrics_times wait, reconstruction, delivery, all; /* see metrics_count() */
	struct metrics_deliveries destinations[METRICS_DESTINATIONS];
	size_t n_destinations;
};

/* Count an event, after jobs_apply() applied it to the view `v` of its job. Adds to the times wait (complete to started),
 * reconstruction (started to reconstructed), delivery (reconstructed to delivered), all (last instance to delivered). */
void metrics_count(struct metrics *m, const struct job_view *v, const struct event_row *row);
/* Read what the journal has recorded: *m becomes that. */
int metrics_read(struct metrics *m, struct journal *j, struct err *err);
/* In a transaction of journal_settle_begin(): record it. */
int metrics_record(struct metrics *m, struct journal *j, struct err *err);

#endif
