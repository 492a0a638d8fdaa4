/* schedule_watch.c - deliveries, requests of commitment and indexers that do nothing any more.
 *
 * - Each of them ends by itself: whatever it waits for has a limit of time. One that was stopped (SIGSTOP), or hangs in a lock or
 *   in a file system, does not, and would hold up all that is for its destination, or every new instance, for ever.
 * - The sign of life is time of the processor: to read, compare, send takes some, however large the object and however slow the
 *   line; to be stopped or to hang takes none. A process that waits for its peer shows none either, so that the limit is beyond
 *   all that it may wait for.
 * - The other way round, one that has used as much of the processor without an event of its job goes round in a circle.
 * - What is killed here has failed in a way that may pass: schedule_delivery_ended() and the indexer's end see to that.
 */
#include "node/base/log.h"
#include "node/serve/schedule_internal.h"

#define WAITS 2.0 /* times connect, ACSE and DIMSE timeout together: a name may have two addresses */
#define LOOKS 8	  /* within the limit: it is late by so much at most */

static double limit_of(const struct schedule *s, const struct process *p)
{
	const struct destination_conf *d = config_destination(s->config, p->destination);
	double limit = s->config->node.worker_timeout, waits = 0;

	if (d)
		waits = WAITS * (d->connect_timeout + d->acse_timeout + d->dimse_timeout);
	return waits > limit ? waits : limit;
}

static bool is_stuck(struct schedule *s, struct process *p, double limit)
{
	const struct job_view *v = p->job ? jobs_find(&s->jobs, p->job) : NULL;
	double cpu = process_cpu(p);

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
