/* SPDX-License-Identifier: Apache-2.0 */
/* Counters computed from the journal, so that they survive restarts: each event is counted once, in the journal's order.
 * docs/status-page.md documents them; node/status/metrics_text.c writes them. */
#ifndef TOMONODE_NODE_METRICS_H
#define TOMONODE_NODE_METRICS_H

#include <stdint.h>

#include "node/jobs/jobs.h"

#define METRICS_EVENTS 64
#define METRICS_DESTINATIONS 32 /* the first names in the journal; further destinations are not counted */
#define METRICS_BUCKETS 9

extern const double metrics_bounds[METRICS_BUCKETS]; /* upper bounds of the buckets, s; one more bucket counts longer times */

struct metrics_times {
	uint64_t count, bucket[METRICS_BUCKETS + 1]; /* numbers of times: all, and in each bucket alone */
	double sum;				     /* s */
};

struct metrics_deliveries {
	char name[CONFIG_NAME_SIZE];
	uint64_t sent, refused; /* objects */
	uint64_t failed;	/* attempts */
};

struct metrics { /* starts as {0} */
	uint64_t events[METRICS_EVENTS];
	struct metrics_times wait, reconstruction, delivery, all; /* see metrics_count() */
	struct metrics_deliveries destinations[METRICS_DESTINATIONS];
	size_t n_destinations;
};

/* Count an event, after jobs_apply() applied it to the view `v` of its job. Adds to the times wait (complete to started),
 * reconstruction (started to reconstructed), delivery (reconstructed to delivered), all (last instance to delivered). */
void metrics_count(struct metrics *m, const struct job_view *v, const struct event_row *row);

#endif
