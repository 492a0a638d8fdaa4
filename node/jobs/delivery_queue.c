/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/delivery_queue.h"

#include <math.h>
#include <string.h>

#define QUEUES_MAX 64 /* at most two per configured destination; beyond that, some sends get no `blocked_by` */

struct queue {
	const char *destination;
	bool commit;
	const struct job_send *down; /* of the failed sends the one with the latest next attempt: all others wait for it */
};

bool job_send_is_queued(const struct job_view *v, const struct job_send *s, bool *ret_commit)
{
	*ret_commit = s->state == SEND_STORED;
	if (!job_send_is_active(s) || (v->state != JOB_RECONSTRUCTED && v->state != JOB_STORED))
		return false;
	return s->state == SEND_DUE || (s->state == SEND_STORED && !(s->transaction[0] && s->accepted));
}

/* The last time in these jobs. */
static double last_reached(struct job_view *const *list, size_t n, const char *destination, double now)
{
	double last = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < list[i]->n_sends; k++) {
			const struct job_send *s = &list[i]->sends[k];

			if (job_send_has_reached(s) && s->time > last && s->time <= now && !strcmp(s->destination, destination))
				last = s->time;
		}
	return last;
}

double delivery_queue_reached(const struct jobs *jobs, const char *destination, double now)
{
	double last = last_reached(jobs->open, jobs->n_open, destination, now);

	for (size_t i = 0; i < jobs->n_reached; i++) {
		const struct jobs_reached *r = &jobs->reached[i];

		if (strcmp(r->destination, destination) != 0 || r->reached <= last)
			continue;
		/* after the clock was set back, an earlier time of a settled job counts */
		last = r->reached <= now ? r->reached : last_reached(jobs->list, jobs->n, destination, now);
	}
	return last;
}

static struct queue *find_queue(struct queue *queues, size_t n, const char *destination, bool commit)
{
	for (size_t i = 0; i < n; i++)
		if (queues[i].commit == commit && !strcmp(queues[i].destination, destination))
			return &queues[i];
	return NULL;
}

static size_t add_blocked(const struct jobs *jobs, struct queue *queues, size_t n, const struct job_view *v,
			  const struct job_send *s)
{
	struct queue *queue;
	bool commit;

	if (!s->down || !job_send_is_queued(v, s, &commit) || s->time < delivery_queue_reached(jobs, s->destination, HUGE_VAL))
		return n;
	queue = find_queue(queues, n, s->destination, commit);
	if (queue && s->next > queue->down->next)
		queue->down = s;
	if (queue || n == QUEUES_MAX)
		return n;
	queues[n] = (struct queue){s->destination, commit, s};
	return n + 1;
}

void delivery_queue_update(struct jobs *jobs)
{
	struct queue queues[QUEUES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < jobs->n_open; i++)
		for (size_t k = 0; k < jobs->open[i]->n_sends; k++)
			n = add_blocked(jobs, queues, n, jobs->open[i], &jobs->open[i]->sends[k]);
	for (size_t i = 0; i < jobs->n_open; i++)
		for (size_t k = 0; k < jobs->open[i]->n_sends; k++) {
			struct job_send *s = &jobs->open[i]->sends[k];
			const struct queue *queue;
			bool commit, waits = job_send_is_queued(jobs->open[i], s, &commit);

			/* A send that failed itself has its own reason; one that a person requested does not wait. */
			waits = waits && !s->immediate && !(s->since > 0);
			queue = waits ? find_queue(queues, n, s->destination, commit) : NULL;
			s->blocked_by = queue && queue->down != s ? queue->down : NULL;
		}
}
