/* Counters that follow from the journal, so that they survive restarts: each event is counted once, in the order of the journal.
 * What they mean is in docs/status-page.md; node/status/metrics_text.c writes them down. */
#ifndef TOMONODE_NODE_METRICS_H
#define TOMONODE_NODE_METRICS_H

#include <stdint.h>

#include "node/jobs/jobs.h"

#define METRICS_EVENTS 64
#define METRICS_DESTINATIONS 32 /* by name, as they come; of more, the rest has no figures */
#define METRICS_BUCKETS 9

extern const double metrics_bounds[METRICS_BUCKETS]; /* s; the last bucket is all that is longer */

struct metrics_times {
	uint64_t count, bucket[METRICS_BUCKETS + 1];
	double sum; /* s */
};

struct metrics_deliveries {
	char name[CONFIG_NAME_SIZE];
	uint64_t sent, refused; /* objects */
	uint64_t failed;	/* attempts */
};

struct metrics { /* {0} to begin with */
	uint64_t events[METRICS_EVENTS];
	struct metrics_times wait, reconstruction, delivery, all; /* see metrics_count() */
	struct metrics_deliveries destinations[METRICS_DESTINATIONS];
	size_t n_destinations;
};

/* An event, once jobs_apply() has taken it into the view `v` of its job. wait: complete to started; reconstruction: started to
 * reconstructed; delivery: reconstructed to delivered; all: last instance to delivered. */
void metrics_count(struct metrics *m, const struct job_view *v, const struct event_row *row);

#endif
