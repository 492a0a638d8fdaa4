/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_watch.c - kill deliveries, storage commitment requests and indexers that hang.
 *
 * - Normally each of them ends by itself, because every wait has a time limit. A process that was stopped (SIGSTOP), or hangs in
 *   a lock or in a file system, does not end and would block its destination, or all new instances, forever.
 * - The criterion is processor time: reading, comparing and sending use some, even for a large object on a slow line; a stopped
 *   or hanging process uses none. A process that waits for its peer uses none either, so the limit is longer than any such wait.
 * - Conversely, a process that has used that much processor time without an event of its job is in an endless loop.
 * - A killed process counts as a temporary failure: see schedule_delivery_ended() and the handling of the indexer's end.
 */
#include "node/base/log.h"
#include "node/deliver/destination.h"
#include "node/serve/schedule_internal.h"

#define WAITS 2.0 /* limit as a multiple of the sum of connect, ACSE and DIMSE timeout: a name may have two addresses */
#define LOOKS 8	  /* number of checks within the limit, so that a hang is detected at most 1/LOOKS of the limit late */

static double limit_of(const struct schedule *s, const struct process *p)
{
	const struct destination_conf *d = config_destination(s->config, p->destination);
	double limit = s->config->node.worker_timeout, waits = 0;

	if (d)
		waits = WAITS * (d->connect_timeout + destination_actions(d)->longest_wait(d));
	return waits > limit ? waits : limit;
}

static bool is_stuck(struct schedule *s, struct process *p, double limit)
{
	const struct job_view *v = p->job ? jobs_find(&s->jobs, p->job) : NULL;
	double cpu = process_cpu_seconds(p);

	if (cpu < 0)
		return false;
	if (cpu > p->cpu)
		p->seen = s->clock;
	p->cpu = cpu;
	if (v && v->changed != p->event) {
		p->event = v->changed;
		p->cpu_at_event = cpu;
	}
	return s->clock - p->seen >= limit || (v && cpu - p->cpu_at_event >= limit);
}

void schedule_watch(struct schedule *s, double now)
{
	for (size_t i = 0; i < s->processes.n; i++) {
		struct process *p = &s->processes.list[i];
		double limit = limit_of(s, p);

		if (p->pid <= 0 || p->kill_at > 0 ||
		    (p->role != PROCESS_DELIVER && p->role != PROCESS_COMMIT && p->role != PROCESS_INDEX))
			continue;
		schedule_wake_on_clock(s, s->clock + limit / LOOKS, now);
		if (!is_stuck(s, p, limit))
			continue;
		log_event(LOG_ERR, "process-stuck", "role=%s pid=%ld job=%lld destination=%s idle=%.0f cpu=%.0f",
			  process_role_name(p->role), (long)p->pid, (long long)p->job, log_quote(p->destination),
			  s->clock - p->seen, p->cpu - p->cpu_at_event);
		p->hung = true;
		process_kill(p, s->clock);
	}
}
